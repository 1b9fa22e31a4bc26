// SPDX-License-Identifier: Apache-2.0
// A batch as it lies in a staging buffer, for the host and for a device: head, blocks, first query
// groups, ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/backend.h"

namespace toto {

/// Queries that one thread block takes in time attention on a device.
inline constexpr std::int32_t kQueryGroup = 64;

/// Groups of a block: its queries of one variate, in order of trajectory and token.
inline std::int32_t query_groups(const Block& b, bool last_only) {
  const std::int32_t queries = b.trajectories * (last_only ? 1 : b.tokens);
  return (queries + kQueryGroup - 1) / kQueryGroup * b.variates;
}

/// Offsets of the parts of an image with room for so many blocks and ids.
struct BatchLayout {
  std::size_t blocks, groups, last_groups, ids, bytes;

  BatchLayout(std::int64_t block_count, std::int64_t id_count) {
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

/// Fills the image at `host`, which operations read at `device`.
inline void write_image(const Batch& batch, const BatchLayout& layout, std::byte* host,
                        const std::byte* device) {
  LiveBatch head;
  head.count = batch.count;
  head.rows = batch.rows;
  head.lanes = batch.lanes;
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
  if (ids > 0 && batch.ids != nullptr)
    std::memcpy(host + layout.ids, batch.ids, ids * sizeof(std::int32_t));
}

/// The batch of an image, as operations of a host backend take it.
inline Batch batch_of_image(const std::byte* host) {
  const auto& head = *reinterpret_cast<const LiveBatch*>(host);
  return {head.blocks, head.ids, head.count, head.rows, head.lanes};
}

}  // namespace toto
