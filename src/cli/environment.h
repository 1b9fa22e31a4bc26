// SPDX-License-Identifier: Apache-2.0
// The TOTO_* variables: which ones this version reads, and warnings about the others.
#pragma once

#include <string>
#include <vector>

namespace toto::cli {

/// Warns about each TOTO_* variable that nothing reads: such a setting is how people fool
/// themselves.
void warn_about_environment();

/// Their names.
std::vector<std::string> unknown_variables();

}  // namespace toto::cli
