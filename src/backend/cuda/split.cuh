// SPDX-License-Identifier: Apache-2.0
// Products in float32 on tensor cores, which take operands of eleven bits (tf32) and sum in
// float32. Every operand is split into a high part of eleven bits and the rest, the low part, of
// which the first eleven bits or so are kept. Of the four products of parts, low by low is below
// 2^-21 of the whole and is left out, as is what the low parts lose: no more than what a sum of
// float32 products loses to rounding, and of either sign, for inputs' high parts are rounded.
//
// An output is formed over k in slices of kSplitSlice, zero beyond `in`. A slice is one chain of
// steps of eight k that begins at zero: low x by high w over the slice's k, then high x by low w,
// then high x by high w, small ones first. The slices are then added in order, to zero. Whatever
// the kernel, this is the order, so that the number of rows changes no bit.
#pragma once

#include <cstdint>

#include "backend/cuda/mma.cuh"

namespace toto::cuda {

inline constexpr int kSplitSlice = 32;
inline constexpr std::uint32_t kHighBits = 0xFFFFE000U;  // what tensor cores look at
inline constexpr std::uint32_t kHighHalf = 0x1000U;      // half of the last of these

/// The bits of an input's parts: the high one rounded, the low one then is exact and has a sign of
/// its own.
__device__ inline void split_input(std::uint32_t x, std::uint32_t& high, std::uint32_t& low) {
  high = (x + kHighHalf) & kHighBits;
  low = __float_as_uint(__uint_as_float(x) - __uint_as_float(high));
}

/// The bits of a weight's low part, to be cut off by the tensor cores as if they rounded. Its high
/// part is the weight itself, cut off there.
__device__ inline std::uint32_t low_weight(std::uint32_t w) {
  return __float_as_uint(__uint_as_float(w) - __uint_as_float(w & kHighBits)) + kHighHalf;
}

}  // namespace toto::cuda
