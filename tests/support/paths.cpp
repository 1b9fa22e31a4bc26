// SPDX-License-Identifier: Apache-2.0
// This file, and cli/program.cpp, are compiled with the place of the clone: all others are the same
// in every clone, and a compiler cache finds them there.
#include "support/paths.h"

namespace toto::test {

std::string source_path(const std::string& name) {
  return std::string(TOTO_SOURCE_DIR) + "/" + name;
}
std::string data_path(const std::string& name) { return source_path("tests/data/" + name); }

}  // namespace toto::test
