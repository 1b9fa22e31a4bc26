// SPDX-License-Identifier: Apache-2.0
// How often this program has called operator new.
#pragma once

#include <cstdint>

namespace toto::test {

std::uint64_t allocations();
/// False under a sanitizer, which brings its own allocator.
bool allocations_are_counted();

}  // namespace toto::test
