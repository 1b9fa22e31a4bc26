// SPDX-License-Identifier: Apache-2.0
// Widths of heads, and outputs of attention beyond the last head.
#pragma once

#include <cstdint>

#include "backend/cuda/ops/attend_rows.cuh"
#include "toto/error.hpp"

namespace toto::cuda {

/// Calls run(room) with room for d channels.
template <typename Run>
void with_room(std::int32_t d, const Run& run) {
  if (d == 64) {  // of the published model
    run(attend::Room<64, true>{});
  } else if (d <= 128) {
    run(attend::Room<128, false>{});
  } else {
    throw Error(ExitStatus::usage, "unsupported_model",
                "the cuda backend has no heads of more than 128 channels", {}, "use --device cpu");
  }
}

/// Zeros from `width` to `pitch`, fewer than 32; by one warp.
template <typename T>
__device__ void clear_padding(T* out, std::int64_t row, std::int32_t width, std::int32_t pitch) {
  const std::int32_t at = width + static_cast<std::int32_t>(threadIdx.x) % 32;
  if (at < pitch) put(out, row * pitch + at, 0);
}

}  // namespace toto::cuda
