// SPDX-License-Identifier: Apache-2.0
// Rotary embedding with xPos of two channels (spec A8): the same bits in whichever kernel.
#pragma once

#include <cuda_runtime.h>

namespace toto::cuda {

/// A pair of a query, turned by an angle and scaled by its factors; of a key by their inverses.
__device__ inline float2 rotate_pair(float2 v, float cosine, float sine, float even, float odd) {
  return {v.x * cosine * even + -v.y * sine * even, v.y * cosine * odd + v.x * sine * odd};
}

}  // namespace toto::cuda
