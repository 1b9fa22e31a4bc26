// SPDX-License-Identifier: Apache-2.0
#include "cli/result_paths.h"

#include <fmt/format.h>

#include "core/atomic_file.h"
#include "toto/error.hpp"

namespace toto::cli {

void require_distinct(const std::vector<NamedPath>& results) {
  const auto target = [](const NamedPath& one) {
    return one.path == "-" ? std::string("/dev/stdout") : one.path;
  };
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
