// SPDX-License-Identifier: Apache-2.0
// What the operating system says about the memory of this process.
#pragma once

#include <cstdint>

namespace toto {

/// The highest resident size of this process so far, bytes.
std::uint64_t peak_rss();

}  // namespace toto
