// SPDX-License-Identifier: Apache-2.0
// The one file that is compiled with the place of the sources: the others are the same in every
// clone, and a compiler cache finds them there.
#include "paths.h"

namespace toto::test {

std::string source_path(const std::string& name) {
  return std::string(TOTO_SOURCE_DIR) + "/" + name;
}
std::string data_path(const std::string& name) { return source_path("tests/data/" + name); }

}  // namespace toto::test
