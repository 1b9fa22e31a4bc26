// SPDX-License-Identifier: Apache-2.0
// Finding the slice of a row or a lane in a call that lies on the device.
#pragma once

#include "backend/cuda/runtime/live.h"
#include "backend/ops2.h"

namespace toto::cuda {

/// One token of a call.
struct Token {
  const CallSlice& s;
  std::int32_t slice;  // its index
  std::int32_t variate;
  std::int32_t token;

  [[nodiscard]] __device__ std::int32_t patch() const { return s.patch + token; }
};

__device__ inline Token token_of(const LiveCall& call, std::int32_t row) {
  const std::int32_t i =
      find_block(call.count, row, call.rows, [&](std::int32_t at) { return call.slices[at].row; });
  const CallSlice& s = call.slices[i];
  return {s, i, (row - s.row) / s.tokens, (row - s.row) % s.tokens};
}

/// One variate of a slice.
struct LaneOfCall {
  const CallSlice& s;
  std::int32_t slice;
  std::int32_t variate;
};

__device__ inline LaneOfCall lane_of_call(const LiveCall& call, std::int32_t lane) {
  const std::int32_t i = find_block(call.count, lane, call.lanes,
                                    [&](std::int32_t at) { return call.first_lanes[at]; });
  return {call.slices[i], i, lane - call.first_lanes[i]};
}

}  // namespace toto::cuda
