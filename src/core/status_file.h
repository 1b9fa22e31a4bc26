// SPDX-License-Identifier: Apache-2.0
// Files like /proc/cpuinfo, in which Linux tells about a machine or a process.
#pragma once

#include <string>

namespace toto {

/// The rest of the first line of `file` that begins with `name`, blanks and the colon left out.
/// Empty where there is no such line or file.
std::string status_field(const char* file, const std::string& name);

}  // namespace toto
