// SPDX-License-Identifier: Apache-2.0
#include "cli/result_paths.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "core/atomic_file.h"
#include "toto/error.hpp"
#include "toto/tools/data.hpp"

namespace toto::cli {

namespace {

std::string target(const NamedPath& one) { return one.path == "-" ? "/dev/stdout" : one.path; }

/// The files that are read: of a folder its tables.
std::vector<std::string> files_of(const std::vector<std::string>& inputs) {
  std::vector<std::string> files;
  for (const std::string& input : inputs) {
    std::error_code error;
    if (input.empty() || input == "-") continue;
    if (!std::filesystem::is_directory(input, error)) {
      files.push_back(input);
      continue;
    }
    for (std::string& file : data::csv_files({input})) files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

void require_inputs_kept(const std::vector<std::string>& inputs,
                         const std::vector<NamedPath>& results) {
  const std::vector<std::string> files = files_of(inputs);
  for (const NamedPath& result : results) {
    for (const std::string& file : files) {
      if (result.path.empty() || !same_target(file, target(result))) continue;
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
