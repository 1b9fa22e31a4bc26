// SPDX-License-Identifier: Apache-2.0
// The norm of a row of `Fours` times 128 by one warp: the same bits in the kernel that only norms
// and in those that multiply at once.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace toto::cuda {

/// A lane's part of such a row: element 128 i + 4 lane and the three after it.
template <int Fours>
__device__ void load_part(float4 (&v)[Fours], const float* row) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < Fours; ++i) {
    v[i] = *reinterpret_cast<const float4*>(row + i * 128 + lane * 4);
  }
}

/// v / sqrt(mean(v^2) + 1e-8) * gain.
template <int Fours>
__device__ void norm_part(float4 (&v)[Fours], const float4 (&gain)[Fours]) {
  float4 chains = {};  // of every fourth channel
#pragma unroll
  for (int i = 0; i < Fours; ++i) {
    chains.x = __fmaf_rn(v[i].x, v[i].x, chains.x);
    chains.y = __fmaf_rn(v[i].y, v[i].y, chains.y);
    chains.z = __fmaf_rn(v[i].z, v[i].z, chains.z);
    chains.w = __fmaf_rn(v[i].w, v[i].w, chains.w);
  }
  float squares = (chains.x + chains.y) + (chains.z + chains.w);
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    squares += __shfl_xor_sync(~0U, squares, offset);
  }
  const float root = sqrtf(squares / static_cast<float>(Fours * 128) + 1e-8F);
  const float inverse = 1.0F / root;
  // v / root, rounded once: the remainder of the product with the inverse puts it right
  // (Markstein).
  const auto divide = [&](float x) {
    const float q = x * inverse;
    return __fmaf_rn(__fmaf_rn(-root, q, x), inverse, q);
  };
#pragma unroll
  for (int i = 0; i < Fours; ++i) {
    const float4 g = gain[i];
    v[i] = {divide(v[i].x) * g.x, divide(v[i].y) * g.y, divide(v[i].z) * g.z, divide(v[i].w) * g.w};
  }
}

}  // namespace toto::cuda
