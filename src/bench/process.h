// SPDX-License-Identifier: Apache-2.0
// What the operating system says about this process and this machine.
#pragma once

#include <cstdint>
#include <string>

namespace toto {

/// Forgets the highest resident size so far; where the system does not let us, peaks are those of
/// the whole process.
void reset_peak_rss();
/// Bytes.
std::uint64_t peak_rss();
std::string processor_name();

}  // namespace toto
