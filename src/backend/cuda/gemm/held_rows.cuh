// SPDX-License-Identifier: Apache-2.0
// Products in bfloat16 of some rows whose weights a thread block holds (held_rows_sm90a.cu): what
// kernels are told, shared memory, and what a warp does with a slice.
#pragma once

#include "backend/cuda/gemm/mma.cuh"
#include "backend/cuda/gemm/some_rows.cuh"

namespace toto::cuda::held {

inline constexpr int kMostWarps = 19;      // those that work, and the one that helps
inline constexpr int kMostWorkers = 18;    // warps that bring rows and multiply
inline constexpr int kSumming = 6;         // of them, to sum squares, if there is room
inline constexpr int kLeastWorkers = 6;    // fewer would be slow in finishing outputs
inline constexpr int kSlicesToSplit = 9;   // fewer are faster in one block
inline constexpr int kChunk = kPitchBf16;  // k of a box of weights or rows: 128 bytes
inline constexpr int kChunks = kSliceBf16 / kChunk;
inline constexpr int kAlignment = 1024;
inline constexpr int kMostSlices = 32;  // of a block

/// What a product does, as far as it is known when the kernel is compiled: code that runs once in a
/// kernel is waited for, so the products of layers have no more than they need. `ahead` and
/// `shared` add to a residual and leave what a norm takes (Ahead), which `residual` does not; of
/// `shared` two blocks share the slices, of `residual` they may.
enum class Use : std::uint8_t { store, gated, residual, ahead, shared, any, also };
/// Known when the kernel is compiled: `any` may do so too.
constexpr bool adds_to_residual(Use use) {
  return use == Use::residual || use == Use::ahead || use == Use::shared;
}

/// What a block asks for its weights with. Kernels are told this before all else: a constant that
/// is not near is waited for.
struct Asking {
  int chunks;  // of the product itself
  int slices;
  int first_slices;  // of the product itself; those of what is added to it follow
  int also_chunks;
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
  static constexpr int kPartPitch = kOutputs + 4;     // what a warp stores goes to different banks
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

/// The product of some sixteens of outputs of `Chunks` boxes with all rows of others, which lie
/// WBox and XBox bytes apart: `w` and `x` are where a lane finds what it loads of the first k. Of
/// those that follow it is in other sixteens of the 128 bytes, as boxes are swizzled. Up to six
/// tiles of sums, a step's operands are loaded before the step before it multiplies; of more, that
/// is slower.
template <int Chunks, int WBox, int XBox, int Sixteens, int Tiles>
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
  for (int step = 0; step < Chunks * kOfBox; ++step) {
    if (kAhead && step + 1 < Chunks * kOfBox) load(step + 1);
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
/// If `Paired`, output o lies at place_paired(o): a thread has two that lie side by side.
template <bool Paired, int Pitch, int Tiles>
__device__ void put_sums(const float (&sum)[Tiles][4], float* to) {
  const int lane = lane_of_warp();
#pragma unroll
  for (int t = 0; t < Tiles; ++t) {
    float* const row = to + (t * kRowsOfTile + lane % 4 * 2) * Pitch;
    if (Paired) {
      *reinterpret_cast<float2*>(row + lane / 4 * 2) = {sum[t][0], sum[t][2]};
      *reinterpret_cast<float2*>(row + Pitch + lane / 4 * 2) = {sum[t][1], sum[t][3]};
      continue;
    }
    float* const at = row + lane / 4;
    at[0] = sum[t][0];
    at[Pitch] = sum[t][1];
    at[8] = sum[t][2];
    at[Pitch + 8] = sum[t][3];
  }
}
/// The same, paired, where two blocks of a cluster share slices, and each finishes every other row.
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
__device__ inline int place_paired(int o) { return o / 16 * 16 + o % 8 * 2 + o % 16 / 8; }

/// Two neighbours of shared memory, `Beside` apart; zero if not `there`. No branch, so that many
/// are on their way at once.
template <int Beside>
__device__ float2 load_if(bool there, std::uint32_t from) {
  float2 v{};
  if (Beside == 1) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %2, 0;\n@p ld.shared.v2.f32 {%0, %1}, [%3];}"
                 : "+f"(v.x), "+f"(v.y)
                 : "r"(static_cast<int>(there)), "r"(from)
                 : "memory");
  } else {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %2, 0;\n@p ld.shared.f32 %0, [%3];\n"
        "@p ld.shared.f32 %1, [%3 + %4];}"
        : "+f"(v.x), "+f"(v.y)
        : "r"(static_cast<int>(there)), "r"(from), "n"(Beside * 4)
        : "memory");
  }
  return v;
}

/// For a norm that follows: two neighbours of a row, whose sixteen eight lanes have.
__device__ inline void leave_pair(const Ahead& to, std::int64_t at, const float (&v)[2],
                                  bool there) {
  const float sum = sum_across<1, kSixteen / 2>(__fadd_rn(square(v[0]), square(v[1])));
  if (!there) return;
  *reinterpret_cast<__nv_bfloat162*>(to.rows + at) = __floats2bfloat162_rn(v[0], v[1]);
  if (at % kSixteen == 0) to.squares[at / kSixteen] = sum;
}

}  // namespace toto::cuda::held
