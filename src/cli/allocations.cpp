// SPDX-License-Identifier: Apache-2.0
#include "cli/allocations.h"

#include <atomic>

namespace toto::cli {
namespace {

std::atomic<std::uint64_t> g_allocations{0};

}  // namespace

std::uint64_t allocations() { return g_allocations.load(std::memory_order_relaxed); }

void count_allocation() noexcept { g_allocations.fetch_add(1, std::memory_order_relaxed); }

}  // namespace toto::cli
