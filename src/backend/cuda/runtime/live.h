// SPDX-License-Identifier: Apache-2.0
// Finding the block of a row, a lane or a group in a device batch (backend/batch_image.h).
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "backend/batch_image.h"
#include "core/philox.h"

namespace toto::cuda {

/// The block in whose range `at` lies, of `all` in all: the last one whose first(block) <= at.
/// Where series are alike it is found at once, and without a division where each has one.
template <typename First>
TOTO_HOST_DEVICE inline std::int32_t find_block(std::int32_t count, std::int32_t at,
                                                std::int32_t all, const First& first) {
  std::int32_t low = 0;
  std::int32_t high = count;
  if (count > 2) {
    const auto guess =
        count == all ? at : static_cast<std::int32_t>(std::int64_t{at} * count / all);
    const bool below = guess + 1 < count && first(guess + 1) <= at;
    const bool above = first(guess) > at;
    if (!below && !above) return guess;
    low = below ? guess + 1 : 0;
    high = above ? guess : count;
  }
  while (high - low > 1) {
    const std::int32_t middle = (low + high) / 2;
    if (first(middle) <= at) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

TOTO_HOST_DEVICE inline std::int32_t block_of_row(const LiveBatch& live, std::int32_t row) {
  return find_block(live.count, row, live.rows, [&](std::int32_t i) { return live.blocks[i].row; });
}
TOTO_HOST_DEVICE inline std::int32_t block_of_lane(std::int32_t count, std::int32_t lanes,
                                                   const Block* blocks, std::int32_t lane) {
  return find_block(count, lane, lanes, [&](std::int32_t i) { return blocks[i].lane; });
}
TOTO_HOST_DEVICE inline std::int32_t block_of_lane(const LiveBatch& live, std::int32_t lane) {
  return block_of_lane(live.count, live.lanes, live.blocks, lane);
}

}  // namespace toto::cuda
