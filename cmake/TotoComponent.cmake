# toto_component(NAME [FOLDER folder] [TOOLS] [USES component...] [LIBRARIES target...])
#   The sources of src/FOLDER (default: NAME) as an object library `toto_NAME`.
#
# The compiler enforces the arrows: a component's include path holds its own folder, the folders of the
# components that it names in USES (and of those that they name), the public headers, and nothing else of
# src. The headers of include/toto/tools are seen with TOOLS only. Each component has an include root of
# its own in the build folder, a link to its sources under their path in src:
#   arrows/engine/engine -> src/engine      so that "engine/plan_table.h" is found by who may see it.
# tests/arrows tries every pair of components.

# The public headers without tools/: a link for each.
set(toto_public_root ${PROJECT_BINARY_DIR}/arrows/public)
file(GLOB toto_public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/toto/*.h
     ${PROJECT_SOURCE_DIR}/include/toto/*.hpp)
file(REMOVE_RECURSE ${toto_public_root})
file(MAKE_DIRECTORY ${toto_public_root}/toto)
foreach(header ${toto_public_headers})
  get_filename_component(name ${header} NAME)
  file(CREATE_LINK ${header} ${toto_public_root}/toto/${name} SYMBOLIC)
endforeach()

function(toto_component name)
  cmake_parse_arguments(arg "TOOLS" "FOLDER" "USES;LIBRARIES" ${ARGN})
  if(NOT arg_FOLDER)
    set(arg_FOLDER ${name})
  endif()
  set(folder ${PROJECT_SOURCE_DIR}/src/${arg_FOLDER})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  set(closure ${name})
  foreach(used ${arg_USES})
    get_property(inner GLOBAL PROPERTY toto_closure_${used})
    list(APPEND closure ${inner})
  endforeach()
  list(REMOVE_DUPLICATES closure)
  set_property(GLOBAL PROPERTY toto_closure_${name} ${closure})
  set_property(GLOBAL PROPERTY toto_folder_${name} ${arg_FOLDER})
  set_property(GLOBAL APPEND PROPERTY toto_components ${name})

  set(root ${PROJECT_BINARY_DIR}/arrows/${name})
  get_filename_component(parent ${root}/${arg_FOLDER} DIRECTORY)
  file(MAKE_DIRECTORY ${parent})
  file(CREATE_LINK ${folder} ${root}/${arg_FOLDER} SYMBOLIC)

  add_library(toto_${name} OBJECT ${sources})
  target_include_directories(toto_${name} PUBLIC ${root} ${toto_public_root})
  if(arg_TOOLS)
    target_include_directories(toto_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include)
    set_property(GLOBAL APPEND PROPERTY toto_components_with_tools ${name})
  endif()
  set_target_properties(toto_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(toto_${name} PRIVATE toto_options PUBLIC ${arg_LIBRARIES})
  foreach(used ${arg_USES})
    target_link_libraries(toto_${name} PUBLIC toto_${used})
  endforeach()
endfunction()

# toto_link(TARGET component...): the objects of the components and of all they use.
function(toto_link target)
  set(all)
  foreach(name ${ARGN})
    get_property(closure GLOBAL PROPERTY toto_closure_${name})
    list(APPEND all ${closure})
  endforeach()
  list(REMOVE_DUPLICATES all)
  foreach(name ${all})
    get_property(extra GLOBAL PROPERTY toto_extra_objects_${name})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:toto_${name}> ${extra})
    target_link_libraries(${target} PRIVATE toto_${name})
  endforeach()
  target_link_libraries(${target} PRIVATE toto_options)
endfunction()

# toto_library(component...): the library that users link, shared as `toto` and static as `toto_static`.
function(toto_library)
  set(objects)
  foreach(name ${ARGN})
    get_property(extra GLOBAL PROPERTY toto_extra_objects_${name})
    list(APPEND objects $<TARGET_OBJECTS:toto_${name}> ${extra})
  endforeach()
  get_property(cuda_libraries GLOBAL PROPERTY toto_cuda_libraries)
  add_library(toto SHARED ${objects})
  add_library(toto_static STATIC ${objects})
  foreach(library toto toto_static)
    add_library(toto::${library} ALIAS ${library})
    target_include_directories(${library} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                 $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endforeach()
  # What data uses: zstd by its name alone, since it has no CMake package everywhere.
  target_link_libraries(toto_static PRIVATE fmt::fmt Threads::Threads date::date-tz ZLIB::ZLIB zstd
                        ${CMAKE_DL_LIBS} ${cuda_libraries})
  set_target_properties(toto_static PROPERTIES OUTPUT_NAME toto)

  # By file, not by target: a program that links the shared library needs no development files of fmt
  # and the others.
  target_link_libraries(toto PRIVATE $<TARGET_LINKER_FILE:fmt::fmt> $<TARGET_LINKER_FILE:date::date-tz>
                        $<TARGET_LINKER_FILE:ZLIB::ZLIB> zstd ${CMAKE_DL_LIBS} ${cuda_libraries})
  set(map ${PROJECT_BINARY_DIR}/libtoto.map)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/libtoto.map.in ${map} @ONLY)
  target_link_options(toto PRIVATE -Wl,--version-script=${map})
  if(TOTO_SANITIZE)
    target_link_options(toto PRIVATE -fsanitize=${TOTO_SANITIZE})
  else()
    target_link_options(toto PRIVATE -Wl,--no-undefined)
  endif()
  set_target_properties(toto PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                        LINK_DEPENDS ${map})
endfunction()
