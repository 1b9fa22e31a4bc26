// SPDX-License-Identifier: Apache-2.0
// A batch as it lies in the memory of the device: the head, blocks, first groups, ids; and finding
// the block of a row, a lane or a group there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/backend.h"
#include "core/philox.h"

namespace toto::cuda {

/// Queries that one block of threads takes in time attention.
inline constexpr std::int32_t kQueryGroup = 64;

/// Groups of a block: its queries of one variate, in order of trajectory and token.
inline std::int32_t query_groups(const Block& b, bool last_only) {
  const std::int32_t queries = b.trajectories * (last_only ? 1 : b.tokens);
  return (queries + kQueryGroup - 1) / kQueryGroup * b.variates;
}

/// Offsets of the parts of an image with room for so many blocks and ids.
struct LiveLayout {
  std::size_t blocks, groups, last_groups, ids, bytes;

  LiveLayout(std::int64_t block_count, std::int64_t id_count) {
    const auto n = static_cast<std::size_t>(block_count);
    const auto round = [](std::size_t at) { return (at + 15) / 16 * 16; };
    blocks = round(sizeof(LiveBatch));
    groups = round(blocks + n * sizeof(Block));
    last_groups = round(groups + (n + 1) * sizeof(std::int32_t));
    ids = round(last_groups + (n + 1) * sizeof(std::int32_t));
    bytes = (ids + static_cast<std::size_t>(id_count) * sizeof(std::int32_t) + 255) / 256 * 256;
  }
};

inline std::int64_t ids_of(const Batch& batch) {
  std::int64_t last = 0;
  for (std::int32_t i = 0; i < batch.count; ++i) {
    const Block& b = batch.blocks[i];
    const std::int64_t end = b.ids + std::int64_t{b.variates} * b.tokens;
    last = end > last ? end : last;
  }
  return last;
}

/// Fills the image at `host`, to be copied to `device`.
inline void write_image(const Batch& batch, std::uint64_t seed, const LiveLayout& layout,
                        std::byte* host, const std::byte* device) {
  LiveBatch head;
  head.count = batch.count;
  head.rows = batch.rows;
  head.lanes = batch.lanes;
  head.seed = seed;
  head.blocks = reinterpret_cast<const Block*>(device + layout.blocks);
  head.ids = reinterpret_cast<const std::int32_t*>(device + layout.ids);
  head.groups = reinterpret_cast<const std::int32_t*>(device + layout.groups);
  head.last_groups = reinterpret_cast<const std::int32_t*>(device + layout.last_groups);
  std::memcpy(host, &head, sizeof head);
  const auto count = static_cast<std::size_t>(batch.count);
  std::memcpy(host + layout.blocks, batch.blocks, count * sizeof(Block));
  auto* groups = reinterpret_cast<std::int32_t*>(host + layout.groups);
  auto* last_groups = reinterpret_cast<std::int32_t*>(host + layout.last_groups);
  groups[0] = last_groups[0] = 0;
  for (std::size_t i = 0; i < count; ++i) {
    groups[i + 1] = groups[i] + query_groups(batch.blocks[i], false);
    last_groups[i + 1] = last_groups[i] + query_groups(batch.blocks[i], true);
  }
  const auto ids = static_cast<std::size_t>(ids_of(batch));
  if (ids > 0) std::memcpy(host + layout.ids, batch.ids, ids * sizeof(std::int32_t));
}

/// The block in whose range `at` lies, of `all` in all: the last one whose first(block) <= at.
/// Where series are alike it is found at once.
template <typename First>
TOTO_HOST_DEVICE inline std::int32_t find_block(std::int32_t count, std::int32_t at,
                                                std::int32_t all, const First& first) {
  std::int32_t low = 0;
  std::int32_t high = count;
  if (count > 2) {
    const auto guess = static_cast<std::int32_t>(std::int64_t{at} * count / all);
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
