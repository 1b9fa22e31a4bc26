// SPDX-License-Identifier: Apache-2.0
// Where the sums of a warpgroup's tensor core steps go in float32.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backend/cuda/gemm/product.h"
#include "backend/cuda/runtime/warp.cuh"

namespace toto::cuda {

/// Two pairs of neighbours, eight columns apart, of each lane: four neighbours, of the first eight
/// columns in even lanes, of the others in odd ones.
__device__ inline float4 exchange(int lane, float a0, float a1, float b0, float b1) {
  const bool odd = lane % 2 != 0;
  const float c0 = __shfl_xor_sync(~0U, odd ? a0 : b0, 1);
  const float c1 = __shfl_xor_sync(~0U, odd ? a1 : b1, 1);
  return odd ? float4{c0, c1, b0, b1} : float4{a0, a1, c0, c1};
}

/// What sums of rows `row` and `row` + 8 are multiplied with (ProductArgs::scale).
__device__ inline void load_scales(float (&by)[2], const float* scale, std::int32_t row,
                                   std::int32_t rows) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    by[half] = scale != nullptr && row + half * 8 < rows ? scale[row + half * 8] : 1.0F;
  }
}

/// What a warp has summed: sixteen rows from `row` on by N outputs from `out0` on, to y[rows][out]
/// or, as a residual, added to it. All that is to be read is asked for before any of it is used.
/// `out` is a multiple of four. To a y in bfloat16 goes their SiLU.
template <int N, bool Residual, typename T>
__device__ void finish_rows(const float (&sum)[N / 2], const float* __restrict__ bias,
                            const float* scale, T* y, std::int32_t row, std::int32_t rows,
                            std::int32_t out0, std::int32_t out) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  row += lane / 4;
  const int shift = lane % 2 * 8 + lane % 4 / 2 * 4;  // of the four that exchange() gives
  // Not all of it at once: beside the stages there is room for about 28 KiB on their way.
  constexpr int kAtOnce = N % 96 == 0 ? 6 : N >= 64 ? 4 : 2;
  const std::int32_t left = out - out0 - shift;
  T* const to = y + std::int64_t{row} * out + out0 + shift;
  float by[2];
  load_scales(by, scale, row, rows);
  float4 b[N / 16];
#pragma unroll
  for (int j = 0; j < N / 16; ++j) {
    b[j] = bias != nullptr && j * 16 < left
               ? __ldg(reinterpret_cast<const float4*>(bias + out0 + shift + j * 16))
               : float4{0, 0, 0, 0};
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const bool there = row + half * 8 < rows;
    T* const to_row = to + std::int64_t{half * 8} * out;
#pragma unroll
    for (int first = 0; first < N / 16; first += kAtOnce) {
      float4 before[kAtOnce];
      if constexpr (Residual) {
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          const int column = (first + j) * 16;
          before[j] = there && column < left ? *reinterpret_cast<const float4*>(to_row + column)
                                             : float4{0, 0, 0, 0};
        }
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const int column = (first + j) * 16;
        const float* const s = sum + column / 2 + half * 2;
        float4 v = exchange(lane, s[0], s[1], s[4], s[5]);
        const float4& add = b[first + j];
        v = {__fmaf_rn(v.x, by[half], add.x), __fmaf_rn(v.y, by[half], add.y),
             __fmaf_rn(v.z, by[half], add.z), __fmaf_rn(v.w, by[half], add.w)};
        if constexpr (Residual) {
          v = {before[j].x + v.x, before[j].y + v.y, before[j].z + v.z, before[j].w + v.w};
        }
        if constexpr (!std::is_same_v<T, float>) v = {silu(v.x), silu(v.y), silu(v.z), silu(v.w)};
        if (there && column < left) put_four(to_row + column, v);
      }
    }
  }
}

}  // namespace toto::cuda
