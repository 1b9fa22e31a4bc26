// SPDX-License-Identifier: Apache-2.0
// Root mean square norm (spec A6) of a row of kNormedWidth where a product follows: what is
// multiplied is the row times the gain, and what comes of it is multiplied with the inverse of the
// root, so that nobody has to wait for the sum of squares first. That sum is formed in groups of
// eight columns, which those who compute the row have by themselves. The same bits in all kernels.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backend/cuda/gemm/product.h"

namespace toto::cuda {

inline constexpr int kNormGroup = 8;  // columns
inline constexpr int kNormGroups = kNormedWidth / kNormGroup;

/// Of two neighbours; those of a group are added in pairs, then pairs of pairs.
__device__ inline float pair_squares(float a, float b) { return __fmaf_rn(b, b, a * a); }

/// Groups p, p + 16, ... of a row, as many as three, are added in order, then the halves of each p,
/// then all p in a butterfly. Where a group's sum lies so that a lane finds its three together:
inline constexpr int kSquareWords = 128;  // of a row; every fourth is not used
__device__ inline int square_at(int row, int column) {
  const unsigned group = static_cast<unsigned>(column) / kNormGroup;
  const unsigned i = group / 16;
  return row * kSquareWords + static_cast<int>(group % 16 * 8 + i / 3 * 4 + i % 3);
}
static_assert(kNormGroups == 6 * 16);

/// `squares`: the sum of a row.
__device__ inline float inverse_root_mean(float squares) {
  return __frsqrt_rn(__fmaf_rn(squares, 1.0F / kNormedWidth, 1e-8F));
}

/// A lane's part of such a row: element 128 i + 4 lane and the three after it.
template <int Fours>
__device__ void load_part(float4 (&v)[Fours], const float* row) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < Fours; ++i) {
    v[i] = *reinterpret_cast<const float4*>(row + i * 128 + lane * 4);
  }
}

/// Multiplies a row with its gain and returns the inverse of its root; by a warp.
__device__ inline float norm_part(float4 (&v)[kNormedWidth / 128],
                                  const float4 (&gain)[kNormedWidth / 128]) {
  float half[2] = {};
#pragma unroll
  for (int i = 0; i < kNormedWidth / 128; ++i) {
    const float own = pair_squares(v[i].x, v[i].y) + pair_squares(v[i].z, v[i].w);
    const float group = own + __shfl_xor_sync(~0U, own, 1);
    half[i / 3] = i % 3 == 0 ? group : half[i / 3] + group;
    const float4 g = gain[i];
    v[i] = {v[i].x * g.x, v[i].y * g.y, v[i].z * g.z, v[i].w * g.w};
  }
  float sum = half[0] + half[1];
#pragma unroll
  for (int offset = 2; offset < 32; offset *= 2) sum += __shfl_xor_sync(~0U, sum, offset);
  return inverse_root_mean(sum);
}

}  // namespace toto::cuda
