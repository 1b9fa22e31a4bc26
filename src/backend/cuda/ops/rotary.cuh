// SPDX-License-Identifier: Apache-2.0
// Rotary embedding with xPos (spec A8): the same bits in whichever kernel.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backend/cuda/ops/rotary_tables.h"

namespace toto::cuda {

/// A pair of a query, turned by an angle and scaled by its factors; of a key by their inverses.
__device__ inline float2 rotate_pair(float2 v, float cosine, float sine, float even, float odd) {
  return {v.x * cosine * even + -v.y * sine * even, v.y * cosine * odd + v.x * sine * odd};
}

/// Turns four channels of a query by the tables of its token: those from `e` on, a multiple of
/// four; d is a multiple of eight.
struct Rotation {
  float2 cosine, sine;
  float4 factor;

  Rotation() = default;
  __device__ Rotation(const RotaryTables& rotary, const Block& b, std::int32_t token,
                      std::int32_t e, std::int32_t d) {
    const std::int32_t half = d / 2;
    const std::int64_t t = b.position + token;
    cosine = *reinterpret_cast<const float2*>(rotary.cosine + t * half + e / 2);
    sine = *reinterpret_cast<const float2*>(rotary.sine + t * half + e / 2);
    factor = *reinterpret_cast<const float4*>(rotary.factor +
                                              (t - b.centre + rotary.positions) * half + e % half);
  }
  /// Keys are scaled by the inverse of what queries are scaled by.
  [[nodiscard]] __device__ Rotation of_key() const {
    Rotation r = *this;
    r.factor = {1.0F / factor.x, 1.0F / factor.y, 1.0F / factor.z, 1.0F / factor.w};
    return r;
  }
  [[nodiscard]] __device__ float4 operator()(const float4& v) const {
    const float2 low = rotate_pair({v.x, v.y}, cosine.x, sine.x, factor.x, factor.y);
    const float2 high = rotate_pair({v.z, v.w}, cosine.y, sine.y, factor.z, factor.w);
    return {low.x, low.y, high.x, high.y};
  }
};

}  // namespace toto::cuda
