# cmake --install: headers, the shared and the static library, their CMake package and pkg-config files, the
# model that ships with toto. (The program is installed where it is defined.)
include(CMakePackageConfigHelpers)

set(toto_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/toto)
install(DIRECTORY include/toto TYPE INCLUDE FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(TARGETS toto EXPORT toto-targets)
install(TARGETS toto_static EXPORT toto-static-targets)
foreach(export toto-targets toto-static-targets)
  install(EXPORT ${export} NAMESPACE toto:: DESTINATION ${toto_package_dir})
endforeach()
configure_package_config_file(cmake/toto-config.cmake.in ${PROJECT_BINARY_DIR}/toto-config.cmake
                              INSTALL_DESTINATION ${toto_package_dir} PATH_VARS CMAKE_INSTALL_DATADIR)
# 0.x: a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/toto-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/toto-config.cmake ${PROJECT_BINARY_DIR}/toto-config-version.cmake
              cmake/toto-data-folder.cpp.in DESTINATION ${toto_package_dir})

file(RELATIVE_PATH toto_prefix_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
foreach(package toto toto-c)
  configure_file(cmake/${package}.pc.in ${PROJECT_BINARY_DIR}/${package}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

# Pages for man and what the shells complete; the program writes them itself.
if(TARGET toto_cli AND NOT CMAKE_CROSSCOMPILING)
  install(CODE "set(program \"$<TARGET_FILE:toto_cli>\")")
  # The prefix may be given when it is installed.
  install(CODE "set(man \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man1\")")
  install(CODE "set(data \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")")
  install(SCRIPT cmake/install_help.cmake)
endif()

foreach(model toto-nano toto-nano-2)
  if(EXISTS ${PROJECT_SOURCE_DIR}/models/${model}/model.safetensors)
    install(DIRECTORY models/${model} DESTINATION ${CMAKE_INSTALL_DATADIR}/toto/models PATTERN "curve*.csv" EXCLUDE)
  endif()
endforeach()
