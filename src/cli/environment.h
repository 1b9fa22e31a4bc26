// SPDX-License-Identifier: Apache-2.0
// Variables that are set and mean something else here than they say, or nothing.
#pragma once

#include <string>
#include <vector>

namespace toto::cli {

struct Session;

/// Warns about each TOTO_* variable that nothing reads: such a setting is how people fool
/// themselves.
void warn_about_environment();

/// Says what the variables of PyTorch that are set mean here.
void note_about_environment(const Session& session);

/// The names of the TOTO_* variables that nothing reads.
std::vector<std::string> unknown_variables();

}  // namespace toto::cli
