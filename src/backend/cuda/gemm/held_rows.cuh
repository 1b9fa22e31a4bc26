// SPDX-License-Identifier: Apache-2.0
// Products in bfloat16 of some rows whose weights a thread block holds (held_rows_sm90a.cu): what
// kernels are told, shared memory, and what a warp does with a slice.
#pragma once

#include <type_traits>

#include "backend/cuda/gemm/mma.cuh"
#include "backend/cuda/gemm/some_rows.cuh"

namespace toto::cuda::held {

inline constexpr int kMostWarps = 19;      // those that work, and the one that helps
inline constexpr int kMostWorkers = 18;    // warps that bring rows and multiply
inline constexpr int kSumming = 6;         // of them, to sum squares, if there is room
inline constexpr int kSlicesToSplit = 9;   // fewer are faster in one block
inline constexpr int kChunk = kPitchBf16;  // k of a box of weights or rows: 128 bytes
inline constexpr int kChunks = kSliceBf16 / kChunk;
inline constexpr int kAlignment = 1024;
inline constexpr int kMostSlices = 32;  // of a block

/// What a product does, as far as it is known when the kernel is compiled: code that runs once in a
/// kernel is waited for, so the products of layers have no more than they need. `store` and `gated`
/// take rows that are to be normed (ProductArgs::squares); of other rows both are `any`. `ahead`
/// and `shared` add to a residual and leave what a norm takes (Ahead), which `residual` does not;
/// of `shared` two blocks share the slices, of `residual` they may.
enum class Use : std::uint8_t { store, gated, residual, ahead, shared, any, also };
/// Known when the kernel is compiled: `any` may do so too.
constexpr bool adds_to_residual(Use use) {
  return use == Use::residual || use == Use::ahead || use == Use::shared;
}

/// What a block asks for its weights with. Kernels are told this before all else: a constant that
/// is not near is waited for.
struct Asking {
  int slices;
  int first_slices;    // of the product itself; those of what is added to it follow
  int split = 1;       // blocks of a cluster, which share the slices: one or two
  int own = 0;         // slices of a block, at most
  int workers = 0;     // warps but the one that helps
  bool known = false;  // Stream::calls_known
  bool early = false;  // lets_next_begin_early(), and calls are known
  Rows count = 0;
  std::int32_t width = 0;  // of rows of inputs, padded
  std::int32_t also_width = 0;
};

/// Of a warp. Without a sign there is less code to divide it.
__device__ inline int lane_of_warp() { return static_cast<int>(threadIdx.x % 32U); }

struct Held : RowsProduct {
  Summand also;  // its slices come after those of the product itself
};

/// A block of `Parts` times sixteen outputs and `Tiles` times eight rows.
template <int Parts, int Tiles>
struct Block {
  static constexpr int kOutputs = Parts * 16;
  static constexpr int kRows = Tiles * kRowsOfTile;
  /// What a warp stores or reads at once lies in different banks, but for what a block of two that
  /// share slices stores for itself.
  static constexpr int kPartPitch = kOutputs + 4;
  static constexpr int kBox = kOutputs * kChunk * 2;  // bytes
  static constexpr int kRowBox = kRows * kChunk * 2;
  /// Sixteens of outputs that a warp multiplies: all, so that rows are read once, or one.
  static constexpr int kTogether = Parts * Tiles <= 9 ? Parts : 1;
};

/// Shared memory of a block. Boxes have rows of 128 bytes, swizzled.
template <int Parts, int Tiles>
struct HeldMemory {
  using B = Block<Parts, Tiles>;
  std::byte* ws;   // [own][kChunks] boxes of kOutputs rows
  std::byte* xs;   // [own][kChunks] boxes of kRows rows
  float* part;     // [slices][own_rows][kPartPitch] of the rows that this block finishes
  float* squares;  // [slices][kRows]

  __device__ HeldMemory(void* shared, const Asking& ask, int own_rows)
      : ws(static_cast<std::byte*>(shared)) {
    ws += (kAlignment - shared_address(ws) % kAlignment) % kAlignment;
    xs = ws + ask.own * (kChunks * B::kBox);
    part = reinterpret_cast<float*>(xs + ask.own * (kChunks * B::kRowBox));
    squares = part + ask.slices * (own_rows * B::kPartPitch);
  }
  static std::int64_t bytes(const Asking& ask) {
    const int floats = ask.slices * (B::kRows / ask.split) * B::kPartPitch + ask.slices * B::kRows;
    return kAlignment + std::int64_t{ask.own} * kChunks * (B::kBox + B::kRowBox) +
           std::int64_t{floats} * 4;
  }
};
/// The same of which the size does not depend on the product.
template <int Parts, int Tiles>
struct alignas(16) HeldSmall {
  using B = Block<Parts, Tiles>;
  std::uint64_t full[kMostSlices];  // the weights and rows of a slice are there
  std::uint64_t sent;               // the sums that the other block of a cluster sends are
  float bias[B::kOutputs];
  float also_bias[B::kOutputs];
  float by[B::kRows];
  float also_by[B::kRows];
};

/// The product of some sixteens of outputs of a slice's boxes with all rows of others, which lie
/// WBox and XBox bytes apart: `w` and `x` are where a lane finds what it loads of the first k. Of
/// those that follow it is in other sixteens of the 128 bytes, as boxes are swizzled. Up to six
/// tiles of sums, a step's operands are loaded before the step before it multiplies; of more, that
/// is slower.
template <int WBox, int XBox, int Sixteens, int Tiles>
__device__ void multiply_boxes(float (&sum)[Sixteens][Tiles][4], std::uint32_t w, std::uint32_t x) {
  constexpr int kOfBox = kChunk / 16;  // steps
  constexpr bool kAhead = Sixteens * Tiles <= 6;
  std::uint32_t weights[2][Sixteens][4];
  std::uint32_t in[2][Tiles][4];  // of two steps
  const auto load_rows = [&](int step) {
    const int k = step % kOfBox * 16;
#pragma unroll
    for (int t = 0; t < Tiles; ++t) {
      load_matrices(in[step / 2 % 2][t],
                    (x ^ (k * 2)) + step / kOfBox * XBox + t * kRowsOfTile * kChunk * 2);
    }
  };
  const auto load_weights = [&](int step, int q) {
    const int k = step % kOfBox * 16;
    load_matrices(weights[step % 2][q], (w ^ (k * 2)) + step / kOfBox * WBox + q * 16 * kChunk * 2);
  };
  const auto load = [&](int step) {
    if (step % 2 == 0) load_rows(step);
#pragma unroll
    for (int q = 0; q < Sixteens; ++q) load_weights(step, q);
  };
  if (kAhead) load(0);
#pragma unroll
  for (int step = 0; step < kChunks * kOfBox; ++step) {
    if (kAhead && step + 1 < kChunks * kOfBox) load(step + 1);
    if (!kAhead && step % 2 == 0) load_rows(step);
#pragma unroll
    for (int q = 0; q < Sixteens; ++q) {
      if (!kAhead) load_weights(step, q);
#pragma unroll
      for (int t = 0; t < Tiles; ++t) {
        const auto& rows = in[step / 2 % 2][t];
        multiply_add(sum[q][t], weights[step % 2][q], rows[step % 2 * 2], rows[step % 2 * 2 + 1]);
      }
    }
  }
}

/// The sums of a warp to where its slice's are in part[][Pitch], `to` for its first row and output.
/// Outputs o and o + 8 of sixteen, which a thread has, lie side by side, and so do a gate and its
/// value.
template <int Pitch, int Tiles>
__device__ void put_sums(const float (&sum)[Tiles][4], float* to) {
  const int lane = lane_of_warp();
  float* const first = to + lane % 4 * 2 * Pitch + lane / 4 * 2;
#pragma unroll
  for (int t = 0; t < Tiles; ++t) {
    float* const row = first + t * kRowsOfTile * Pitch;
    *reinterpret_cast<float2*>(row) = {sum[t][0], sum[t][2]};
    *reinterpret_cast<float2*>(row + Pitch) = {sum[t][1], sum[t][3]};
  }
}
/// The same where two blocks of a cluster share slices, and each finishes every other row.
/// The other block's go to its memory, where a barrier counts their bytes.
template <int Pitch, int Tiles>
__device__ void share_sums(const float (&sum)[Tiles][4], float* to, int rank,
                           std::uint64_t* barrier) {
  const int lane = lane_of_warp();
  float* const own = to + lane % 4 * Pitch + lane / 4 * 2;
  const std::uint32_t there = address_in(rank ^ 1, shared_address(own));
  const std::uint32_t count = address_in(rank ^ 1, shared_address(barrier));
#pragma unroll
  for (int t = 0; t < Tiles; ++t) {
    constexpr int kTile = kRowsOfTile / 2 * Pitch;
    const float2 even{sum[t][0], sum[t][2]};
    const float2 odd{sum[t][1], sum[t][3]};
    send_to(there + t * (kTile * 4), count, rank == 0 ? odd : even);
    *reinterpret_cast<float2*>(own + t * kTile) = rank == 0 ? even : odd;
  }
}
/// Four neighbours of shared memory; zero if not `there`. No branch, so that many are on their way
/// at once.
__device__ inline float4 load_if(bool there, std::uint32_t from) {
  float4 v{};
  asm volatile("{.reg .pred p; setp.ne.b32 p, %4, 0;\n@p ld.shared.v4.f32 {%0, %1, %2, %3}, [%5];}"
               : "+f"(v.x), "+f"(v.y), "+f"(v.z), "+f"(v.w)
               : "r"(static_cast<int>(there)), "r"(from)
               : "memory");
  return v;
}

/// Two of them that are surely there.
__device__ inline float2 load_pair(std::uint32_t from) {
  float2 v;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(from) : "memory");
  return v;
}
__device__ inline float load_one(std::uint32_t from) {
  float v = 0;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(from) : "memory");
  return v;
}

/// Four outputs of a row, which a thread finishes: o, o + 1, o + 8 and o + 9 of sixteen, or two
/// gates and their values. Where their sums are, and where they go.
struct Four {
  std::uint32_t sums = 0;         // of the first slice, in the order o, o + 8, o + 1, o + 9
  std::uint32_t by = 0;           // what they are multiplied with
  std::uint32_t bias = 0;         // of o
  int slices = 0;                 // none: no row
  int left = 0;                   // columns of the row, from the first of these on; 0 or less: none
  std::byte* y = nullptr;         // of o
  __nv_bfloat16* rows = nullptr;  // the same of Ahead
  float* squares = nullptr;
  float2 before[2] = {};  // of the residual
};

/// The sum of `slices` slices in order, which lie `apart` bytes apart. A sum that begins with zero
/// is never -0, so what is not there changes no bit.
__device__ inline float4 sum_slices(std::uint32_t from, int slices, std::uint32_t apart) {
  constexpr int kAtOnce = 8;
  float4 sum{};
#pragma unroll 1
  do {
    float4 of[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) of[k] = load_if(slices > k, from + k * apart);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      sum.x += of[k].x, sum.y += of[k].y, sum.z += of[k].z, sum.w += of[k].w;
    }
    from += kAtOnce * apart;
    slices -= kAtOnce;
  } while (slices > 0);
  return sum;
}
__device__ inline float2 scaled(float low, float high, float by, const float2& bias) {
  return {__fmaf_rn(low, by, bias.x), __fmaf_rn(high, by, bias.y)};
}
__device__ inline float2 add(const float2& x, const float2& y) {
  return {add_residual(x.x, y.x), add_residual(x.y, y.y)};
}

/// For a norm that follows: of sixteen columns of a row that four lanes have.
__device__ inline void leave_four(const Four& to, const float2& low, const float2& high) {
  const auto sum_of = [](const float2& v) {
    return sum_across<1, 4>(__fadd_rn(square(v.x), square(v.y)));
  };
  const float sum = __fadd_rn(sum_of(low), sum_of(high));
  if (to.left <= 0) return;
  __builtin_assume(__isGlobal(to.rows));
  __builtin_assume(__isGlobal(to.squares));
  *reinterpret_cast<__nv_bfloat162*>(to.rows) = __floats2bfloat162_rn(low.x, low.y);
  *reinterpret_cast<__nv_bfloat162*>(to.rows + 8) = __floats2bfloat162_rn(high.x, high.y);
  if (lane_of_warp() % 4 == 0) *to.squares = sum;
}

/// Two neighbours to y, if there are so many columns `left`; at once if rows begin `aligned`.
template <typename T>
__device__ void put_pair(T* y, const float2& v, int left, bool aligned) {
  using Pair = std::conditional_t<std::is_same_v<T, __nv_bfloat16>, __nv_bfloat162, float2>;
  if (left <= 0) return;
  __builtin_assume(__isGlobal(y));  // which the compiler cannot see
  Pair pair;
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    pair = __floats2bfloat162_rn(v.x, v.y);
  } else {
    pair = v;
  }
  if (aligned) {
    *reinterpret_cast<Pair*>(y) = pair;
    return;
  }
  y[0] = pair.x;
  if (left > 1) y[1] = pair.y;
}

}  // namespace toto::cuda::held
