# toto_assets(TARGET folder file...): files of `folder` as functions of C++, compiled into TARGET. page.html
# becomes std::string_view toto::assets::page_html(); @VERSION@ in a file is the version of the project.
function(toto_assets target folder)
  foreach(file ${ARGN})
    set(input ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/${file})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${input})
    string(MAKE_C_IDENTIFIER ${file} name)
    set(VERSION ${PROJECT_VERSION})
    configure_file(${input} ${PROJECT_BINARY_DIR}/assets/${file} @ONLY)
    file(READ ${PROJECT_BINARY_DIR}/assets/${file} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "((0x..,){24})" "\\1\n" bytes "${bytes}")
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/assets/${name}.cpp CONTENT "// Made of ${file}.
#include <string_view>
namespace toto::assets {
namespace {
constexpr unsigned char kBytes[] = {
@bytes@};
}
std::string_view ${name}();
std::string_view ${name}() { return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes)}; }
}  // namespace toto::assets
" @ONLY)
    target_sources(${target} PRIVATE ${PROJECT_BINARY_DIR}/assets/${name}.cpp)
  endforeach()
endfunction()
