# The CUDA backend is a part of the library that may or may not be there (TOTO_CUDA). The runtime is linked
# statically and finds the driver when it is first used, so the program also runs where there is none.
#
# Kernels are compiled by nvcc, one object for each file, for sm_80 and sm_90, with code for later
# architectures; a file whose name ends in _sm90a for that one alone, whose instructions no other has: it
# is asked at run time whether the device is one. All other code goes through the compiler of the rest of
# the project.
set(TOTO_CUDA_TARGETS "arch=compute_80,code=sm_80;arch=compute_90,code=[sm_90,compute_90]" CACHE STRING
    "What nvcc compiles for: one -gencode for each")
set(TOTO_CUDA_HOME "$ENV{CUDA_HOME}" CACHE PATH
    "Folder of the CUDA toolkit, with bin/nvcc; empty: the one on the PATH, then /usr/local/cuda")
set(toto_cuda_found FALSE)
if(TOTO_CUDA)
  if(NOT TOTO_CUDA_HOME STREQUAL TOTO_CUDA_FOUND_FOR)  # what was found of another toolkit is forgotten
    unset(TOTO_NVCC CACHE)
    unset(TOTO_CUDART CACHE)
    unset(TOTO_CUDA_INCLUDE CACHE)
    set(TOTO_CUDA_FOUND_FOR "${TOTO_CUDA_HOME}" CACHE INTERNAL "The toolkit that was searched")
  endif()
  if(TOTO_CUDA_HOME)
    find_program(TOTO_NVCC nvcc PATHS ${TOTO_CUDA_HOME}/bin NO_DEFAULT_PATH)
  else()
    find_program(TOTO_NVCC nvcc PATHS /usr/local/cuda/bin)
  endif()
  if(TOTO_NVCC)
    execute_process(COMMAND ${TOTO_NVCC} --version OUTPUT_VARIABLE nvcc_version ERROR_QUIET)
    string(REGEX MATCH "release ([0-9]+)\\.[0-9]+" nvcc_release "${nvcc_version}")
    set(nvcc_major 0${CMAKE_MATCH_1})
    execute_process(COMMAND ${TOTO_NVCC} -dryrun -c -x cu /dev/null -o /dev/null
                    OUTPUT_QUIET ERROR_VARIABLE nvcc_dryrun)
    string(REGEX MATCH "#\\$ TOP=([^\n]+)" nvcc_top "${nvcc_dryrun}")
    get_filename_component(toto_cuda_root "${CMAKE_MATCH_1}" ABSOLUTE)
    find_library(TOTO_CUDART cudart_static HINTS ${toto_cuda_root} PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib
                 NO_DEFAULT_PATH)
    find_path(TOTO_CUDA_INCLUDE cuda_runtime_api.h HINTS ${toto_cuda_root}
              PATH_SUFFIXES include targets/x86_64-linux/include NO_DEFAULT_PATH)
  endif()
  if(TOTO_NVCC AND TOTO_CUDART AND TOTO_CUDA_INCLUDE AND nvcc_major GREATER_EQUAL 13)
    set(toto_cuda_found TRUE)
    message(STATUS "CUDA backend: ${TOTO_NVCC} (CUDA ${nvcc_release})")
  elseif(TOTO_CUDA STREQUAL "AUTO")
    message(STATUS "CUDA backend: left out, no CUDA 13 compiler with its static runtime was found")
  else()
    message(FATAL_ERROR "TOTO_CUDA is ON, but no CUDA 13 compiler with its static runtime was found")
  endif()
endif()

set(toto_nvcc_flags -std=c++20 -O3 -fmad=false --expt-relaxed-constexpr -Werror all-warnings
    -Xcompiler=-fPIC,-Wall,-Wextra,-ffp-contract=off)
set(toto_nvcc_targets "")
foreach(toto_cuda_target ${TOTO_CUDA_TARGETS})
  list(APPEND toto_nvcc_targets -gencode=${toto_cuda_target})
endforeach()

# toto_cuda_sources(TARGET): adds the kernels of src/backend/cuda to it.
function(toto_cuda_sources target)
  if(NOT toto_cuda_found)
    return()
  endif()
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/cuda/*.cu)
  foreach(kernel ${kernels})
    get_filename_component(name ${kernel} NAME_WE)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/cuda/${name}.o)
    set(targets ${toto_nvcc_targets})
    if(name MATCHES "_sm90a$")
      set(targets -gencode=arch=compute_90a,code=sm_90a)
    endif()
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${TOTO_NVCC} ${toto_nvcc_flags} ${targets} -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/include
              -MD -MF ${object}.d -c ${kernel} -o ${object}
      DEPENDS ${kernel} DEPFILE ${object}.d
      COMMENT "Building CUDA object ${name}.o" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/cuda)
  # Objects of another compiler are not among the objects of an object library: what links it takes both.
  set_property(GLOBAL PROPERTY toto_extra_objects_backend ${objects})
  set_property(GLOBAL PROPERTY toto_cuda_libraries ${TOTO_CUDART} ${CMAKE_DL_LIBS} rt)
  add_custom_target(toto_cuda_kernels DEPENDS ${objects})
  add_dependencies(${target} toto_cuda_kernels)
  target_compile_definitions(${target} PRIVATE TOTO_CUDA)
  target_include_directories(${target} SYSTEM PRIVATE ${TOTO_CUDA_INCLUDE})
  # What links the objects needs these; the runtime loads the driver when it is first called.
  target_link_libraries(${target} PUBLIC ${TOTO_CUDART} ${CMAKE_DL_LIBS} rt)
endfunction()
