// SPDX-License-Identifier: Apache-2.0
#include "models/checkpoint/shipped_model.h"

#include <dlfcn.h>

#include <filesystem>

/// PREFIX/share/toto. Defined by programs that link the static library through its CMake package
/// (cmake/toto-config.cmake.in): an archive does not know where it was installed. Elsewhere null.
extern "C" __attribute__((weak, visibility("hidden"))) const char* toto_package_data_folder();

namespace toto {
namespace {

namespace fs = std::filesystem;

bool has_model(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "config.json", ignored);
}

/// The folder of the file that this code is in, links resolved. Empty: not known.
std::string folder_of_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&find_shipped_model), &info) == 0) return {};
  std::error_code error;
  const fs::path file = fs::canonical(info.dli_fname, error);
  // Of a program the loader knows what it was called as, which need not be a path.
  return error || !file.has_parent_path() ? std::string() : file.parent_path().string();
}

std::string folder_of_program() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? std::string() : program.parent_path().string();
}

}  // namespace

std::string find_shipped_model(const std::string& folder, std::string_view name) {
  if (folder.empty()) return {};
  const fs::path below = fs::path("models") / name;
  fs::path at = folder;
  if (has_model(at / below)) return (at / below).string();
  for (int level = 0; level < 4; ++level) {
    at = at.parent_path();
    for (const fs::path& model : {at / "share" / "toto" / below, at / below}) {
      if (has_model(model)) return model.string();
    }
  }
  return {};
}

std::string shipped_model(std::string_view name) {
  for (const std::string& folder : {folder_of_library(), folder_of_program()}) {
    if (std::string model = find_shipped_model(folder, name); !model.empty()) return model;
  }
  const char* package = toto_package_data_folder != nullptr ? toto_package_data_folder() : "";
  for (const fs::path data : {package, TOTO_DATA_FOLDER}) {
    const fs::path model = data / "models" / name;
    if (data.is_absolute() && has_model(model)) return model.string();
  }
  return {};
}

}  // namespace toto
