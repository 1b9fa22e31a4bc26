// SPDX-License-Identifier: Apache-2.0
// What the operating system says about the memory of this process.
#pragma once

#include <cstdint>

namespace toto {

/// Forgets the highest resident size so far; where the system does not let us, peaks are those of
/// the whole process.
void reset_peak_rss();
/// Bytes.
std::uint64_t peak_rss();

}  // namespace toto
