// SPDX-License-Identifier: Apache-2.0
#include "data/file_name.h"

#include "core/utf8.h"

namespace toto::data {

std::string stem_of(std::string_view file) {
  if (file == "<stdin>") return "stdin";
  std::string_view name = file.substr(file.rfind('/') + 1);
  for (const std::string_view packing : {".gz", ".zst", ".zip"}) {
    if (name.ends_with(packing) && name.find('.') < name.rfind('.')) {
      name.remove_suffix(packing.size());
    }
  }
  name = name.substr(0, name.rfind('.'));
  const bool usable = !name.empty() && first_invalid_utf8(name) == std::string_view::npos;
  return usable ? std::string(name) : "series";
}

std::string folder_of(std::string_view file) {
  const std::size_t end = file.rfind('/');
  if (end == std::string_view::npos) return {};
  std::string_view name = file.substr(0, end);
  name = name.substr(name.rfind('/') + 1);
  const bool usable =
      name != "." && name != ".." && first_invalid_utf8(name) == std::string_view::npos;
  return usable ? std::string(name) : std::string();
}

}  // namespace toto::data
