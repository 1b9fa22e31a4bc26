// SPDX-License-Identifier: Apache-2.0
// Root mean square norm of a row (spec B3) where a product follows, of any width: what is
// multiplied is the row itself, and what comes of it is multiplied with the inverse of the root.
// The same bits in all kernels. In bfloat16 squares are summed over sixteens of columns, neighbours
// first, so that a product of few rows can leave the sums of the sixteens that it stores; then over
// the sixteens of a slice of kSliceBf16 columns; then over the slices, in order. In float32 each of
// kFourLanes lanes has the fours at its place of all slices.
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

/// No multiply-add: it would round the squares of some columns and not those of others.
__device__ inline float square(float v) { return __fmul_rn(v, v); }
/// The sum of lanes whose numbers differ in the bits from First on, below End.
template <int First, int End>
__device__ float sum_across(float sum) {
#pragma unroll
  for (int bit = First; bit < End; bit *= 2) {
    sum = __fadd_rn(sum, __shfl_xor_sync(~0U, sum, bit));
  }
  return sum;
}

/// The sum of squares of a slice, of all kSliceLanes neighbouring lanes that have a part of it.
__device__ inline float slice_squares(const float4 (&v)[kSliceFours]) {
  float of[kSliceFours];  // of the sixteen that a lane has a four of
#pragma unroll
  for (int i = 0; i < kSliceFours; ++i) {
    of[i] = sum_across<1, 4>(__fadd_rn(__fadd_rn(square(v[i].x), square(v[i].y)),
                                       __fadd_rn(square(v[i].z), square(v[i].w))));
  }
  return sum_across<4, 16>(__fadd_rn(__fadd_rn(of[0], of[1]), of[2]));
}

inline constexpr int kSixteen = 16;                           // columns
inline constexpr int kSliceSixteens = kSliceBf16 / kSixteen;  // in fours, as below
static_assert(kSliceFours == 3 && kSliceSixteens == 4 * kSliceFours);

/// The same from sums of sixteens [width / kSixteen] of a row whose width is a multiple of 64.
struct SliceSixteens {
  float4 of[kSliceFours];

  __device__ void load(const float* row, int slice, std::int32_t width) {
    const int first = slice * kSliceSixteens;
#pragma unroll
    for (int i = 0; i < kSliceFours; ++i) {
      const int at = first + i * 4;
      of[i] = at * kSixteen < width ? *reinterpret_cast<const float4*>(row + at) : float4{};
    }
  }
  [[nodiscard]] __device__ float sum() const {
    const auto place = [](float a, float b, float c) { return __fadd_rn(__fadd_rn(a, b), c); };
    return __fadd_rn(__fadd_rn(place(of[0].x, of[1].x, of[2].x), place(of[0].y, of[1].y, of[2].y)),
                     __fadd_rn(place(of[0].z, of[1].z, of[2].z), place(of[0].w, of[1].w, of[2].w)));
  }
};

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
