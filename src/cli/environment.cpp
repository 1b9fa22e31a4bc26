// SPDX-License-Identifier: Apache-2.0
// The TOTO_* variables: which ones this version reads, and warnings about the others.
#include "cli/environment.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/command.h"
#include "toto/settings.hpp"

namespace toto::cli {
namespace {

std::vector<std::string> known_variables() {
  std::vector<std::string> known;
  for (const std::string_view name : setting_variables()) known.emplace_back(name);
  return known;
}

}  // namespace

std::vector<std::string> unknown_variables() {
  const std::vector<std::string> known = known_variables();
  std::vector<std::string> unknown;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view pair = *entry;
    const std::string_view name = pair.substr(0, pair.find('='));
    if (!name.starts_with("TOTO_")) continue;
    if (std::find(known.begin(), known.end(), name) == known.end()) unknown.emplace_back(name);
  }
  return unknown;
}

void warn_about_environment() {
  const std::vector<std::string> known = known_variables();
  for (const std::string& name : unknown_variables()) {
    const std::string_view near = closest(name, known);
    std::string message = name + " is set, but this version does not read it";
    if (!near.empty()) message.append(" (did you mean ").append(near).append("?)");
    warn(message);
  }
}

}  // namespace toto::cli
