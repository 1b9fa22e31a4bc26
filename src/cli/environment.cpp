// SPDX-License-Identifier: Apache-2.0
#include "cli/environment.h"

#include "cli/command.h"
#include "toto/settings.hpp"

namespace toto::cli {

std::vector<std::string> unknown_variables() {
  std::vector<std::string> unknown;
  for (const VariableNote& variable : explain(process_variables())) {
    if (variable.severity == Severity::warning) unknown.push_back(variable.name);
  }
  return unknown;
}

void warn_about_environment() {
  for (const VariableNote& variable : explain(process_variables())) {
    if (variable.severity == Severity::warning) warn(variable.meaning);
  }
}

void note_about_environment(const Session& session) {
  for (const VariableNote& variable : explain(process_variables())) {
    if (variable.severity == Severity::info) note(session, variable.meaning);
  }
}

}  // namespace toto::cli
