// SPDX-License-Identifier: Apache-2.0
// Root mean square norm of a row (spec B3) where a product follows, of any width: what is
// multiplied is the row itself, and what comes of it is multiplied with the inverse of the root.
// The same bits in all kernels. In bfloat16 the sum of squares is formed over slices of kSliceBf16
// columns, then over the slices, in order: whoever has a slice to multiply has its squares at hand.
// In float32 each of kFourLanes lanes has the fours at its place of all slices.
#pragma once

#include <cuda_bf16.h>

#include "backend/cuda/gemm/product.h"
#include "backend/cuda/runtime/warp.cuh"

namespace toto::cuda {

inline constexpr int kFourLanes = kSlice / 4;  // of a warp
static_assert(kFourLanes <= 32);

/// In float32: the sum of squares of a row of whole fours, whose slices lie `apart`, by a warp.
__device__ inline float row_squares(const float* row, int apart, std::int32_t width) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float sum = 0;
  if (lane < kFourLanes) {
#pragma unroll 4
    for (std::int32_t k = lane * 4; k < width; k += kSlice, row += apart) {
      const float4 v = *reinterpret_cast<const float4*>(row + lane * 4);
      sum = __fmaf_rn(v.x, v.x, sum);
      sum = __fmaf_rn(v.y, v.y, sum);
      sum = __fmaf_rn(v.z, v.z, sum);
      sum = __fmaf_rn(v.w, v.w, sum);
    }
  }
  return sum_of_lanes(sum);
}

inline constexpr int kSliceLanes = 16;                              // that share a slice
inline constexpr int kSliceFours = kSliceBf16 / (4 * kSliceLanes);  // columns of a lane, in fours
static_assert(kSliceFours * 4 * kSliceLanes == kSliceBf16);

/// A lane's part of a slice: of kSliceLanes fours the one at `own`, and as many further on. Zero
/// where the row is not `there`, and from `left` columns behind `own` on.
__device__ inline void load_slice(float4 (&v)[kSliceFours], const float* own, bool there,
                                  std::int32_t left) {
#pragma unroll
  for (int i = 0; i < kSliceFours; ++i) {
    const int k = i * kSliceLanes * 4;
    v[i] = there && k < left ? *reinterpret_cast<const float4*>(own + k) : float4{};
  }
}

/// The sum of squares of a slice, of all kSliceLanes neighbouring lanes that have a part of it.
__device__ inline float slice_squares(const float4 (&v)[kSliceFours]) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kSliceFours; ++i) {
    sum = __fmaf_rn(v[i].x, v[i].x, sum);
    sum = __fmaf_rn(v[i].y, v[i].y, sum);
    sum = __fmaf_rn(v[i].z, v[i].z, sum);
    sum = __fmaf_rn(v[i].w, v[i].w, sum);
  }
#pragma unroll
  for (int offset = 1; offset < kSliceLanes; offset *= 2) {
    sum += __shfl_xor_sync(~0U, sum, offset);
  }
  return sum;
}

/// Of the sum of a row's slices.
__device__ inline float inverse_root(float squares, std::int32_t width, float epsilon) {
  return __frsqrt_rn(squares / static_cast<float>(width) + epsilon);
}

/// Four values as bfloat16, eight bytes.
__device__ inline uint2 four_bf16(const float4& v) {
  const __nv_bfloat162 low = __floats2bfloat162_rn(v.x, v.y);
  const __nv_bfloat162 high = __floats2bfloat162_rn(v.z, v.w);
  return {*reinterpret_cast<const std::uint32_t*>(&low),
          *reinterpret_cast<const std::uint32_t*>(&high)};
}

}  // namespace toto::cuda
