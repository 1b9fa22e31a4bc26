// SPDX-License-Identifier: Apache-2.0
// The queries of a block of threads in time attention, and where their rows lie.
#pragma once

#include <cstdint>

#include "backend/cuda/runtime/live.h"
#include "backend/few_keys.h"

namespace toto::cuda {

/// Some queries of one variate and head, in order of trajectory and token; `tokens` of each
/// trajectory.
struct Group {
  const Block& b;
  std::int32_t variate, first, count, tokens;
  bool last_only;

  /// The trajectory and variate of query q.
  [[nodiscard]] __device__ std::int32_t lane(std::int32_t q) const {
    return (tokens == 1 ? first + q : (first + q) / tokens) * b.variates + variate;
  }
  [[nodiscard]] __device__ std::int32_t token(std::int32_t q) const {
    return tokens == 1 ? b.tokens - 1 : (first + q) % tokens;
  }
  [[nodiscard]] __device__ std::int64_t row(std::int32_t q) const {
    return b.row + std::int64_t{lane(q)} * b.tokens + token(q);
  }
  /// Its row of the output.
  [[nodiscard]] __device__ std::int64_t out_row(std::int32_t q) const {
    return last_only ? b.lane + lane(q) : row(q);
  }
  /// Keys of the suffix that it sees.
  [[nodiscard]] __device__ std::int32_t seen(std::int32_t q) const {
    return b.suffix + token(q) + 1;
  }
};

__device__ inline Group group_of(const LiveBatch& live, const std::int32_t* groups, std::int32_t at,
                                 bool last_only) {
  const std::int32_t index =
      find_block(live.count, at, groups[live.count], [&](std::int32_t i) { return groups[i]; });
  Group g{live.blocks[index], 0, 0, 0, 0, last_only};
  g.tokens = last_only ? 1 : g.b.tokens;
  const std::int32_t of_variate = g.b.trajectories * g.tokens;
  const std::int32_t per_variate = (of_variate + kQueryGroup - 1) / kQueryGroup;
  g.variate = (at - groups[index]) / per_variate;
  g.first = (at - groups[index]) % per_variate * kQueryGroup;
  g.count = min(kQueryGroup, of_variate - g.first);
  return g;
}

/// Series whose lanes see few keys in all. Which series these are is a matter of their own counts.
__device__ inline bool sees_few_keys(const Block& b) {
  const std::int32_t own = b.suffix + b.tokens;
  return (b.prefix | static_cast<std::int32_t>(own > kFewKeys)) == 0;
}

}  // namespace toto::cuda
