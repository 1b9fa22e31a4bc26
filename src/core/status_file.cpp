// SPDX-License-Identifier: Apache-2.0
#include "core/status_file.h"

#include <fstream>

namespace toto {

std::string status_field(const char* file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(name)) continue;
    const std::size_t at = line.find_first_not_of(" \t:", name.size());
    return at == std::string::npos ? std::string() : line.substr(at);
  }
  return {};
}

}  // namespace toto
