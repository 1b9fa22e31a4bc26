// SPDX-License-Identifier: Apache-2.0
// Flags that name files of one command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace toto::cli {

struct NamedPath {
  std::string_view flag;
  std::string path;  // "": the flag was not given; "-": standard output
};

/// Throws Error conflicting_flags (2) where two of the flags name one file: the result of one would
/// overwrite that of the other.
void require_distinct(const std::vector<NamedPath>& results);

/// Throws Error conflicting_flags (2) where a result would overwrite a file that is read, also one
/// of a folder.
void require_inputs_kept(const std::vector<std::string>& inputs,
                         const std::vector<NamedPath>& results);

}  // namespace toto::cli
