// SPDX-License-Identifier: Apache-2.0
// Products y[rows][out] = W x[rows][in] + b on the device, with their epilogues.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <type_traits>

#include "backend/backend.h"
#include "backend/cuda/gemm/stream.cuh"
#include "backend/cuda/runtime/cuda_backend.h"
#include "core/philox.h"

namespace toto::cuda {

/// What float32 is multiplied as.
enum class Operands : std::uint8_t {
  whole,    // itself
  split,    // two parts of eleven bits each: split.cuh
  rounded,  // the first of those alone: tf32
};

/// A matrix as it lies on the device: [out][pitch], zero beyond `in`. Gated matrices have gates and
/// values interleaved: one by one in float32, in groups of eight in bfloat16.
struct DeviceMatrix : PackedWeights {
  void* weights = nullptr;  // float, or bfloat16
  float* bias = nullptr;    // [stored] in the order of the rows, or nullptr
  std::int32_t stored = 0;  // rows; of a gated one in bfloat16 the last group is filled up
  std::int32_t in = 0;
  std::int32_t pitch = 0;  // elements
  bool bf16 = false;
  Operands operands = Operands::whole;  // where not whole, it is stored as split.cuh says
};

/// Sums are formed over k in slices of this length, then over the slices, both in order.
inline constexpr int kSlice = 96;       // float32 that is multiplied whole
inline constexpr int kSplitSlice = 32;  // split or rounded: split.cuh
inline constexpr int kSliceBf16 = 192;  // bfloat16
inline constexpr int kPitchF32 = 32;    // pitches are multiples of these
inline constexpr int kPitchBf16 = 64;
/// What is added to the bits of weights that are split or rounded: half of the last bit of the high
/// part.
inline constexpr std::uint32_t kHighHalf = 0x1000U;
inline constexpr int kFewRows = 8;       // of a thread block where weights are streamed
inline constexpr int kSomeRows = 32;     // up to here they are, in bfloat16
inline constexpr int kSomeRowsF32 = 24;  // and in float32

/// How Hopper multiplies matrices of this type, whatever the number of rows.
constexpr Operands operands_of(CudaWeights type) {
  return type == CudaWeights::f32    ? Operands::split
         : type == CudaWeights::tf32 ? Operands::rounded
                                     : Operands::whole;
}

/// A product of other inputs that is added to one of as many rows and outputs.
struct Summand {
  const void* w = nullptr;  // nullptr: there is none
  const float* bias = nullptr;
  const void* x = nullptr;
  std::int32_t in = 0, pitch = 0;
  const float* scale = nullptr;  // as those of a product
  const float* squares = nullptr;
};

/// What a product leaves of its rows for a norm that follows (row_squares.cuh): the rows in
/// bfloat16, and [rows][out / 16] sums of squares. `out` is a multiple of 64 then.
struct Ahead {
  __nv_bfloat16* rows = nullptr;  // nullptr: nothing
  float* squares = nullptr;
};

/// One product. `out`: the first so many rows of W.
struct ProductArgs {
  const void* w;
  const float* bias;
  const void* x;
  void* y;
  Rows rows;
  std::int32_t out, stored, in, pitch;  // stored: rows of W that are there, out or more
  Epilogue epilogue;
  Operands operands = Operands::whole;
  const float* gain = nullptr;  // x is to be normed first: only few rows, only kNormedWidth
  /// [rows] Of each row, what its sums are multiplied with before the bias is added: norm.cuh.
  const float* scale = nullptr;
  /// SiLU of what Epilogue::store leaves. float32: few_rows_f32() alone. bfloat16: so is y then.
  bool silu = false;
  /// y is bfloat16 where the epilogue stores it: some_rows_bf16() alone.
  bool rounded = false;
  /// float32: x is to be normed first; few_rows_f32() alone.
  bool norm = false;
  /// bfloat16: x is to be normed, and this is what Ahead has of it; some_rows_bf16() alone.
  const float* squares = nullptr;
  float epsilon = 0;  // of that norm
  /// Formed by itself, with its bias, then added to what is stored in float32: some_rows_bf16()
  /// alone.
  Summand also{};
  /// Where the epilogue adds to a residual or a summand: some_rows_bf16() alone.
  Ahead ahead{};
};
/// With a matrix of the seam that lies on the device.
ProductArgs product_of(const Matrix& w, const ConstView& x, const View& y, Epilogue epilogue);
inline constexpr std::int32_t kNormedWidth = 768;  // of the published model

/// Inputs in bfloat16 lie in rows of whole sixteen bytes, zero beyond their end.
TOTO_HOST_DEVICE constexpr std::int32_t padded_bf16(std::int32_t width) {
  return (width + 7) / 8 * 8;
}

/// x and y in float32. Of a matrix that is not multiplied whole only those below; many_rows_f32()
/// then takes any sizes.
void product_f32(const ProductArgs& args, const Stream& stream);
bool few_rows_f32(const ProductArgs& args, const Stream& stream);   // false: not for these sizes
bool many_rows_f32(const ProductArgs& args, const Stream& stream);  // or not on this device
/// x in bfloat16; y in float32, but in bfloat16 where gated, `silu` or `rounded`.
void product_bf16(const ProductArgs& args, const Stream& stream);
bool few_rows_bf16(const ProductArgs& args, const Stream& stream);   // for those with a gain
bool some_rows_bf16(const ProductArgs& args, const Stream& stream);  // false: not for these sizes
/// Whether it takes so many rows of up to so many inputs, those of a summand among them.
bool some_rows_fit(std::int32_t rows, std::int32_t inputs, const Stream& stream);
/// The same where the weights fit into shared memory, and where they are many; some_rows_bf16()
/// chooses. false: not for these sizes, or not on this device.
bool held_rows_bf16(const ProductArgs& args, const Stream& stream);
bool streamed_rows_bf16(const ProductArgs& args, const Stream& stream);
bool many_rows_bf16(const ProductArgs& args, const Stream& stream);  // false: not on this device

/// Whether attention, or a product whose weights a thread block holds, lets the next kernel begin
/// before it waits, in a layer so wide: with so few rows, the weights of two kernels ahead are
/// worth more than they disturb. Measured on an H200: with 5 rows layers of 1,024 channels take 7 %
/// less time and narrower ones more, with 19 rows all take more. Products that are streamed always
/// do.
constexpr bool lets_next_begin_early(const Rows& rows, std::int32_t width) {
  return rows.count <= kFewRows && width >= 1024;
}

#ifdef __CUDACC__
/// Calls run(integral constant of the epilogue).
template <typename Run>
void with_epilogue(Epilogue epilogue, const Run& run) {
  switch (epilogue) {
    case Epilogue::store:
      run(std::integral_constant<Epilogue, Epilogue::store>{});
      break;
    case Epilogue::residual:
      run(std::integral_constant<Epilogue, Epilogue::residual>{});
      break;
    case Epilogue::gated:
      run(std::integral_constant<Epilogue, Epilogue::gated>{});
      break;
  }
}

/// How many rows there are now.
__device__ inline std::int32_t live_rows(const Rows& rows) {
  return rows.live == nullptr ? rows.count : *rows.live * rows.times;
}
/// The same, where a kernel begins.
__device__ inline std::int32_t begin_with_rows(const Rows& rows, bool known) {
  begin_lookups(known);
  const std::int32_t now = live_rows(rows);
  end_lookups(known);
  return now;
}

/// x / (1 + e^-x) without the branches that a division has, so that those of many outputs run side
/// by side: some units of the last place from it; beyond 87 below zero it is zero.
__device__ inline float silu(float x) {
  float inverse = 0;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(1.0F + expf(-x)));
  return x * inverse;
}

/// What a product in bfloat16 adds to a residual stream: a sum in which subnormal numbers are zero,
/// as they are where the cache adds (add_four()).
__device__ inline float add_residual(float before, float v) {
  float sum = 0;
  asm("add.rn.ftz.f32 %0, %1, %2;" : "=f"(sum) : "f"(before), "f"(v));
  return sum;
}

__device__ inline void copy_16(void* shared, const void* global, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
               "l"(global), "r"(bytes)
               : "memory");
}
__device__ inline void copy_4(void* shared, const void* global, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(shared)),
               "l"(global), "r"(bytes)
               : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Left>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
}
#endif

}  // namespace toto::cuda
