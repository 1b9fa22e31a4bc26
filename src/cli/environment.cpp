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
void warn_about_environment() {
  std::vector<std::string> known;
  for (const std::string_view name : setting_variables()) known.emplace_back(name);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view pair = *entry;
    const std::string_view name = pair.substr(0, pair.find('='));
    if (!name.starts_with("TOTO_")) continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string_view near = closest(name, known);
    std::string message = std::string(name) + " is set, but this version does not read it";
    if (!near.empty()) message.append(" (did you mean ").append(near).append("?)");
    warn(message);
  }
}

}  // namespace toto::cli
