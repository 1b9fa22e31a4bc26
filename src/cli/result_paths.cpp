// SPDX-License-Identifier: Apache-2.0
#include "cli/result_paths.h"

#include <fmt/format.h>

#include "core/atomic_file.h"
#include "toto/error.hpp"

namespace toto::cli {

namespace {

std::string target(const NamedPath& one) { return one.path == "-" ? "/dev/stdout" : one.path; }

}  // namespace

void require_inputs_kept(const std::vector<std::string>& inputs,
                         const std::vector<NamedPath>& results) {
  for (const NamedPath& result : results) {
    for (const std::string& input : inputs) {
      if (result.path.empty() || input.empty() || input == "-") continue;
      if (!same_target(input, target(result))) continue;
      throw Error(ExitStatus::usage, "conflicting_flags",
                  fmt::format("{} would overwrite what is read", result.flag), result.path,
                  "give the result a name of its own");
    }
  }
}

void require_distinct(const std::vector<NamedPath>& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const NamedPath& first = results[j];
      const NamedPath& second = results[i];
      if (first.path.empty() || second.path.empty() || !same_target(target(first), target(second)))
        continue;
      throw Error(ExitStatus::usage, "conflicting_flags",
                  first.flag == second.flag
                      ? fmt::format("{} names one file twice", first.flag)
                      : fmt::format("{} and {} name one file", first.flag, second.flag),
                  second.path, "give each a name of its own");
    }
  }
}

}  // namespace toto::cli
