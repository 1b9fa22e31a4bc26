// SPDX-License-Identifier: Apache-2.0
// Running this very program once more.
#pragma once

#include <string>
#include <vector>

namespace toto::cli {

/// Starts the program with these arguments (its name excluded) and returns what it writes to
/// standard output, which may be any bytes. Throws Error second_process (70), with what it said on
/// standard error, where it cannot be started or does not end with status 0.
std::string run_second_process(const std::vector<std::string>& arguments);

/// For the process that was started: goes when the one that waits for it goes.
void end_with_parent();

}  // namespace toto::cli
