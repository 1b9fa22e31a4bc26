// SPDX-License-Identifier: Apache-2.0
// How often this program has called operator new.
#pragma once

#include <cstdint>

namespace toto::cli {

std::uint64_t allocations();

}  // namespace toto::cli
