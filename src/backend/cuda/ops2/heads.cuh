// SPDX-License-Identifier: Apache-2.0
// Heads of queries and keys before attention: norm (spec B7.1) and rotation (spec B7.4). By a warp.
#pragma once

#include "backend/cuda/ops/rotary_tables.h"
#include "backend/cuda/runtime/warp.cuh"
#include "backend/ops2.h"

namespace toto::cuda {

/// Gains of queries and keys; nullptr: there is no norm.
struct HeadGains {
  const float* query;
  const float* key;
  float epsilon;
  explicit HeadGains(const HeadNorm& norm)
      : query(typed<float>(norm.query)),
        key(typed<float>(norm.key)),
        epsilon(static_cast<float>(norm.epsilon)) {}
};

/// Norms `width` channels in place.
__device__ inline void norm_head(float* head, const float* gain, std::int32_t width,
                                 float epsilon) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float squares = 0;
  for (std::int32_t i = lane; i < width; i += 32) squares = __fmaf_rn(head[i], head[i], squares);
  const float root = sqrtf(sum_of_lanes(squares) / static_cast<float>(width) + epsilon);
  for (std::int32_t i = lane; i < width; i += 32) head[i] = head[i] / root * gain[i];
  __syncwarp();
}

/// Angles and factors of one token.
struct TokenRotation {
  const float* cosine;
  const float* sine;
  const float* factor;  // nullptr: there is none
  std::int32_t pairs;

  __device__ TokenRotation(const RotaryTables& rotary, const CallSlice& s, std::int64_t patch,
                           std::int32_t qk)
      : cosine(rotary.cosine + patch * (qk / 4)),
        sine(rotary.sine + patch * (qk / 4)),
        factor(rotary.factor == nullptr
                   ? nullptr
                   : rotary.factor + (patch - s.centre + rotary.positions) * (qk / 4)),
        pairs(qk / 4) {}

  /// Rotates the first half of a head, in place or to elsewhere; of a key the factors are inverted.
  __device__ void rotate(const float* head, float* to, std::int32_t qk, bool key) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (std::int32_t m = lane; m < pairs; m += 32) {
      float by = factor == nullptr ? 1.0F : factor[m];
      if (key) by = 1.0F / by;
      const float a = head[2 * m];
      const float b = head[2 * m + 1];
      to[2 * m] = (cosine[m] * a - sine[m] * b) * by;
      to[2 * m + 1] = (cosine[m] * b + sine[m] * a) * by;
    }
    if (head != to) {
      for (std::int32_t i = 2 * pairs + lane; i < qk; i += 32) to[i] = head[i];
    }
    __syncwarp();
  }
};

}  // namespace toto::cuda
