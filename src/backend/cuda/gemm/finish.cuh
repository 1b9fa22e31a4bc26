// SPDX-License-Identifier: Apache-2.0
// Where the sums of a warpgroup's tensor core steps go: in pieces of 32 columns, so that a kernel
// can do one piece after another while tensor cores have the next tile. What a piece reads is asked
// for first.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backend/cuda/gemm/product.h"
#include "backend/cuda/runtime/warp.cuh"

namespace toto::cuda {

constexpr int kPieceColumns = 32;

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

/// The place of a warp's sums, sixteen rows by N outputs, in y[rows][out]: `row` and `row` + 8 are
/// the lane's rows. `out` is a multiple of four.
struct Place {
  std::int32_t row, rows, out0, out;
};
__device__ inline Place place_of(std::int32_t warp_row, std::int32_t rows, std::int32_t out0,
                                 std::int32_t out) {
  return {warp_row + static_cast<std::int32_t>(threadIdx.x) % 32 / 4, rows, out0, out};
}
/// The first of the four columns that exchange() gives a lane, of sixteen.
__device__ inline int shift_of(int lane) { return lane % 2 * 8 + lane % 4 / 2 * 4; }

/// Of a piece, for each sixteen of its columns.
struct PieceBias {
  float4 of[2];
};
__device__ inline PieceBias load_bias(const float* __restrict__ bias, const Place& p, int piece) {
  const std::int32_t column =
      p.out0 + piece * kPieceColumns + shift_of(static_cast<int>(threadIdx.x) % 32);
  PieceBias b;
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    b.of[j] = bias != nullptr && column + j * 16 < p.out
                  ? __ldg(reinterpret_cast<const float4*>(bias + column + j * 16))
                  : float4{0, 0, 0, 0};
  }
  return b;
}

/// What is in y before a residual is added, of a whole tile: [half][sixteen of its columns].
template <int N>
__device__ void load_before(float4 (&before)[2][N / 16], const float* y, const Place& p) {
  const std::int32_t column = p.out0 + shift_of(static_cast<int>(threadIdx.x) % 32);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float* const from = y + std::int64_t{p.row + half * 8} * p.out + column;
#pragma unroll
    for (int j = 0; j < N / 16; ++j) {
      before[half][j] = p.row + half * 8 < p.rows && column + j * 16 < p.out
                            ? *reinterpret_cast<const float4*>(from + j * 16)
                            : float4{0, 0, 0, 0};
    }
  }
}

/// What becomes of a piece: it is stored, added to what was there before, or added there.
enum class Into : std::uint8_t { store, add_before, add_there };

/// y += v in the cache, so that nobody waits for y: the bits of add_residual(). Hopper and later.
__device__ inline void add_four(float* y, const float4& v) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(y), "f"(v.x),
               "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
#endif
}

/// A piece of a tile: sums times `by`, plus bias. `before`: for Into::add_before. To a y in
/// bfloat16 goes their SiLU.
template <int N, Into I, typename T>
__device__ void finish_piece(const float (&sum)[N / 2], int piece, const PieceBias& bias,
                             const float (&by)[2], const float4 (*before)[N / 16], T* y,
                             const Place& p) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int32_t column = p.out0 + piece * kPieceColumns + shift_of(lane);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    T* const to = y + std::int64_t{p.row + half * 8} * p.out + column;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const float* const s = sum + piece * 16 + j * 8 + half * 2;
      float4 v = exchange(lane, s[0], s[1], s[4], s[5]);
      const float4& add = bias.of[j];
      v = {__fmaf_rn(v.x, by[half], add.x), __fmaf_rn(v.y, by[half], add.y),
           __fmaf_rn(v.z, by[half], add.z), __fmaf_rn(v.w, by[half], add.w)};
      if constexpr (I == Into::add_before) {
        const float4& b = before[half][piece * 2 + j];
        v = {b.x + v.x, b.y + v.y, b.z + v.z, b.w + v.w};
      }
      if constexpr (!std::is_same_v<T, float>) v = {silu(v.x), silu(v.y), silu(v.z), silu(v.w)};
      if (p.row + half * 8 >= p.rows || column + j * 16 >= p.out) continue;
      if constexpr (I == Into::add_there) {
        add_four(to + j * 16, v);
      } else {
        put_four(to + j * 16, v);
      }
    }
  }
}

/// A whole tile.
template <int N, bool Residual, typename T>
__device__ void finish_rows(const float (&sum)[N / 2], const float* __restrict__ bias,
                            const float* scale, T* y, std::int32_t row, std::int32_t rows,
                            std::int32_t out0, std::int32_t out) {
  const Place p = place_of(row, rows, out0, out);
  float by[2];
  float4 before[2][N / 16];
  load_scales(by, scale, p.row, rows);
  if constexpr (Residual) load_before<N>(before, y, p);
  PieceBias add[N / kPieceColumns];
#pragma unroll
  for (int i = 0; i < N / kPieceColumns; ++i) add[i] = load_bias(bias, p, i);
#pragma unroll
  for (int i = 0; i < N / kPieceColumns; ++i) {
    finish_piece<N, Residual ? Into::add_before : Into::store>(sum, i, add[i], by, before, y, p);
  }
}

}  // namespace toto::cuda
