// SPDX-License-Identifier: Apache-2.0
// How often this program has called operator new (counted_new.cpp).
#pragma once

#include <cstdint>

namespace toto::cli {

std::uint64_t allocations();
[[gnu::visibility("default")]] void count_allocation() noexcept;

}  // namespace toto::cli
