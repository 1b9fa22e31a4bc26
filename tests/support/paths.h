// SPDX-License-Identifier: Apache-2.0
// Where the files lie that tests read.
#pragma once

#include <string>

namespace toto::test {

/// A file of tests/data.
std::string data_path(const std::string& name);
/// A file of the repository.
std::string source_path(const std::string& name);

}  // namespace toto::test
