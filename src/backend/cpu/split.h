// SPDX-License-Identifier: Apache-2.0
// How the items of an operation (rows, lanes, queries) are divided among the threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/backend.h"
#include "core/thread_team.h"

namespace toto::cpu {

/// Calls body(first, end, thread) for contiguous shares of 0 .. count-1. `cost` is about the cycles
/// of one item: work that is over sooner than a fork-join stays on the calling thread.
template <typename Body>
void split(ThreadTeam& team, std::int64_t count, std::int64_t cost, const Body& body) {
  constexpr std::int64_t kWorthwhile = 10000;  // cycles for each thread
  const auto threads = static_cast<int>(std::clamp<std::int64_t>(
      count * cost / kWorthwhile, 1, std::min<std::int64_t>(count, team.size()) + (count == 0)));
  team.run(threads, [&](int thread) noexcept {
    const Range mine = share(count, threads, thread);
    if (mine.size() > 0) body(mine.begin, mine.end, thread);
  });
}

/// The items of a batch, numbered through all blocks: calls visit(block index, block, item of the
/// block) for the items first .. end-1. `items(block)` is how many a block has.
template <typename Items, typename Visit>
void for_each_item(const Batch& batch, std::int64_t first, std::int64_t end, const Items& items,
                   const Visit& visit) {
  std::int64_t base = 0;
  for (std::int32_t i = 0; i < batch.count && base < end; ++i) {
    const Block& b = batch.blocks[i];
    const std::int64_t count = items(b);
    const std::int64_t last = std::min(end - base, count);
    for (std::int64_t at = std::max<std::int64_t>(first - base, 0); at < last; ++at) {
      visit(i, b, static_cast<std::int32_t>(at));
    }
    base += count;
  }
}

}  // namespace toto::cpu
