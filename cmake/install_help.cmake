# Run by cmake --install: `program` writes its pages for man to the folder `man`, and the scripts of the shells
# below the folder `data`.
function(toto_help)
  execute_process(COMMAND "${program}" ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(MAKE_DIRECTORY "${man}")
toto_help(help --man-pages "${man}")
foreach(script bash:bash-completion/completions/toto zsh:zsh/site-functions/_toto fish:fish/vendor_completions.d/toto.fish)
  string(REPLACE ":" ";" parts "${script}")
  list(GET parts 0 shell)
  list(GET parts 1 path)
  get_filename_component(folder "${data}/${path}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  toto_help(completion ${shell} OUTPUT_FILE "${data}/${path}")
endforeach()
message(STATUS "Installed: ${man}/toto*.1, completion of bash, zsh and fish below ${data}")
