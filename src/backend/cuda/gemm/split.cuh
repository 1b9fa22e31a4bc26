// SPDX-License-Identifier: Apache-2.0
// Products in float32 on tensor cores, which take operands of eleven bits (tf32) and sum in
// float32. Every operand is split into a high part, rounded to eleven bits, and the rest, the low
// part, of which the first eleven bits are taken. Of the four products of parts, low by low is
// below 2^-22 of the whole and is left out. What is lost so has either sign and is no more than
// what products and sums in float32 lose to rounding. Where operands are only rounded (tf32), the
// first of the four products is all there is.
//
// An output is formed over k in slices of kSplitSlice, zero beyond `in`. A slice has two chains (in
// tf32 only the first) of steps of eight k, each beginning at zero: high x by high w over the
// slice's k; and low x by high w, going on with high x by low w. (Tensor cores cut sums off instead
// of rounding them, so chains are short, and small terms stay among themselves.) The two are added,
// and the slices in order, to zero. Whatever the kernel, this is the order, so that the number of
// rows changes no bit.
#pragma once

#include <cstdint>

#include "backend/cuda/gemm/mma.cuh"
#include "backend/cuda/gemm/product.h"

namespace toto::cuda {

inline constexpr std::uint32_t kHighBits = 0xFFFFE000U;  // what tensor cores look at

/// The bits of an input's parts: the high one rounded, the low one then is exact and has a sign of
/// its own.
__device__ inline void split_input(std::uint32_t x, std::uint32_t& high, std::uint32_t& low) {
  high = (x + kHighHalf) & kHighBits;
  low = __float_as_uint(__uint_as_float(x) - __uint_as_float(high));
}

/// Weights lie on the device with half of the last high bit added to their bits: tensor cores,
/// which cut off what they do not look at, then find the high part rounded. The bits of the low
/// part, where `half` is kHighHalf:
__device__ inline std::uint32_t low_weight(std::uint32_t stored, std::uint32_t half = kHighHalf) {
  return __float_as_uint(__uint_as_float(stored - half) - __uint_as_float(stored & kHighBits));
}

/// Inputs of up to eight rows over `S` slices as a first operand, high parts in its first eight
/// rows and in the others low parts, or nothing where inputs are only rounded: of 16 k from 16 q on
/// a lane has those 4 i + lane % 4, i = 0..3, of row lane / 4.
template <int S, Operands O>
class SplitInputs {
  static_assert(O != Operands::whole);

 public:
  static constexpr int kQuads = 2 * S;

  __device__ void set(int q, const uint4& x) {
    set_part(x.x, part_[q][0][0], part_[q][0][1]);
    set_part(x.y, part_[q][0][2], part_[q][0][3]);
    set_part(x.z, part_[q][1][0], part_[q][1][1]);
    set_part(x.w, part_[q][1][2], part_[q][1][3]);
  }
  /// The slices' sums with eight outputs, whose weights lie as the inputs do: of row lane / 4 and
  /// outputs 2 (lane % 4) + 0, 1. `nothing` is zero; where inputs are split it is not needed at
  /// once.
  __device__ void multiply(float2 (&sum)[S], const std::uint32_t (&w)[kQuads][4],
                           std::uint32_t nothing = 0) const {
    float high[S][4] = {};
    const auto steps = [&](float(&to)[S][4], const auto& part_of) {
#pragma unroll
      for (int k = 0; k < kSplitSlice / 8; ++k) {
#pragma unroll
        for (int s = 0; s < S; ++s) {
          const int q = 2 * s + k / 2;
          multiply_add_tf32(to[s], part_[q][k % 2], part_of(w[q][k % 2 * 2]),
                            part_of(w[q][k % 2 * 2 + 1]));
        }
      }
    };
    if constexpr (O == Operands::rounded) {
      steps(high, [&](std::uint32_t v) { return v + nothing; });
#pragma unroll
      for (int s = 0; s < S; ++s) sum[s] = {high[s][0], high[s][1]};
      return;
    }
    float rest[S][4] = {};
    const std::uint32_t half = kHighHalf + nothing;
    steps(high, [](std::uint32_t v) { return v; });
#pragma unroll
    for (int s = 0; s < S; ++s) {  // high x goes on where low x has come to
      rest[s][0] = high[s][2];
      rest[s][1] = high[s][3];
    }
    steps(rest, [&](std::uint32_t v) { return low_weight(v, half); });
#pragma unroll
    for (int s = 0; s < S; ++s) sum[s] = {high[s][0] + rest[s][0], high[s][1] + rest[s][1]};
  }

 private:
  static __device__ void set_part(std::uint32_t x, std::uint32_t& high, std::uint32_t& low) {
    if constexpr (O == Operands::split) {
      split_input(x, high, low);
    } else {
      high = to_tf32(__uint_as_float(x));
      low = 0;
    }
  }

  std::uint32_t part_[kQuads][2][4];
};

}  // namespace toto::cuda
