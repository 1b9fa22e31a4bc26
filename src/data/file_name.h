// SPDX-License-Identifier: Apache-2.0
// What the name of a file says of the series in it.
#pragma once

#include <string>
#include <string_view>

namespace toto::data {

/// The name of a file without its folder, its last extension and .gz, .zst or .zip: what series of
/// a table without ids are called. "series" where that is no name.
std::string stem_of(std::string_view file);

/// The last folder of a path; empty if it has none with a name.
std::string folder_of(std::string_view file);

}  // namespace toto::data
