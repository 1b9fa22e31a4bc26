// SPDX-License-Identifier: Apache-2.0
// A thread block of streamed_rows_sm90a.cu: what it is told, its shared memory, and how its rows
// come there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/cuda/gemm/copy_engine.cuh"
#include "backend/cuda/gemm/some_rows.cuh"
#include "backend/cuda/ops2/row_squares.cuh"

namespace toto::cuda {
namespace streamed {

inline constexpr int kUnitOutputs = 16;    // of a warp
inline constexpr int kGroupWarps = 4;      // of a warpgroup, each with sixteen outputs
inline constexpr int kChunk = kPitchBf16;  // k of a box of weights or rows: 128 bytes
inline constexpr int kChunks = kSliceBf16 / kChunk;
inline constexpr int kUnitBytes = kUnitOutputs * kChunk * 2;  // of a box, for sixteen outputs
inline constexpr int kAlignment = 1024;

inline constexpr int kNormingWarps = 16;  // of 64 registers: half of a processor's
inline constexpr int kMostGroups = 3;     // so that at least three warps bring rows
inline constexpr int kNormedStages = 4;   // of rows
inline constexpr int kTaskRows = 4;       // that a warp brings at a time
inline constexpr int kTaskLoads = kTaskRows * kSliceLanes / 32;

inline constexpr int kSharingWarps =
    kGroupWarps + 2;                     // one warpgroup, and a warp each for weights, rows
inline constexpr int kNarrowStages = 3;  // of rows
inline constexpr int kMostKept = 8;      // slices of a block that may share them

/// What a product does: it is known when the kernel is compiled, for code that runs once in a
/// kernel is waited for.
enum class Use : std::uint8_t { store_normed, gated_normed, silu_normed, residual };

struct Streamed : RowsProduct {
  int slices;
  int split = 1;       // blocks of a cluster, which share the slices
  int parts = 1;       // sixteens of outputs of a block
  int groups = 1;      // warpgroups that multiply
  int stages = 1;      // of a slice of the block's weights
  int row_stages = 1;  // of a slice of the rows
};

/// Shared memory of a block. Boxes have rows of 128 bytes, swizzled. A warpgroup whose outputs are
/// less than 64 reads on into what lies behind its box, and nobody reads the sums of that.
template <int Tiles, Use U>
struct StreamedMemory {
  static constexpr bool kShares = U == Use::residual;
  static constexpr int kRows = Tiles * kRowsOfTile;
  static constexpr int kRowBox = kRows * kChunk * 2;  // bytes
  static constexpr int kRowSlice = kChunks * kRowBox;
  std::byte* ws;          // [stages][kChunks] boxes of parts * kUnitOutputs rows
  std::byte* xs;          // [row_stages][kChunks] boxes of kRows rows
  float4* before;         // [parts][Tiles][32] sums of the slices before those of this block
  float* squares;         // [slices][kRows]
  float* by;              // [kRows] what the sums of a row are multiplied with
  std::uint64_t* full;    // [stages] weights are there
  std::uint64_t* empty;   // [stages] and have been multiplied
  std::uint64_t* there;   // [row_stages] rows are there
  std::uint64_t* used;    // [row_stages] and have been multiplied
  std::uint64_t* handed;  // `before` is there
  std::uint64_t* scaled;  // `by` is there

  __device__ StreamedMemory(void* shared, const Streamed& a) {
    ws = static_cast<std::byte*>(shared);
    ws += (kAlignment - shared_address(ws) % kAlignment) % kAlignment;
    xs = ws + a.stages * kChunks * a.parts * kUnitBytes;
    before = reinterpret_cast<float4*>(xs + a.row_stages * kRowSlice);
    squares = reinterpret_cast<float*>(before + (kShares ? a.parts * Tiles * 32 : 0));
    by = squares + (kShares ? 0 : a.slices * kRows);
    full = reinterpret_cast<std::uint64_t*>(by + kRows);
    empty = full + a.stages;
    there = empty + a.stages;
    used = there + a.row_stages;
    handed = used + a.row_stages;
    scaled = handed + 1;
  }
  static std::int64_t bytes(const Streamed& a) {
    const std::int64_t sums = kShares ? a.parts * Tiles * 512 : a.slices * kRows * 4;
    return kAlignment + std::int64_t{a.stages} * (kChunks * a.parts * kUnitBytes + 16) +
           std::int64_t{a.row_stages} * (kRowSlice + 16) + sums + kRows * 4 + 16;
  }
};

/// A place in a ring, as Cursor, of as many stages as fit.
struct RingPlace {
  int stage = 0;
  int parity = 0;  // of the barriers there
  __device__ void advance(int stages) {
    if (++stage == stages) stage = 0, parity ^= 1;
  }
};

/// What a block has of the slices and outputs.
struct Own {
  int rank;            // in the cluster
  int slices, chunks;  // of k
  std::int32_t first_k, first_out;
};
__device__ inline Own own_of(const Streamed& a, int split) {
  const int block = static_cast<int>(blockIdx.x);
  const int rank = split == 1 ? 0 : block % split;
  const int first = rank * a.slices / split;
  const int slices = (rank + 1) * a.slices / split - first;
  const int first_k = first * kSliceBf16;
  return {rank, slices, min(slices * kChunks, (a.pitch - first_k) / kChunk), first_k,
          block / split * a.parts * kUnitOutputs};
}

/// By one thread: the chunks of a slice to the boxes from `to` on.
__device__ inline void bring_boxes(std::byte* to, const CUtensorMap& map, int box_bytes, int slice,
                                   std::int32_t row, const Own& own, std::uint64_t* barrier) {
  const int first = slice * kChunks;
  const int chunks = min(kChunks, own.chunks - first);
  expect_bytes(barrier, chunks * box_bytes);
#pragma unroll 1
  for (int c = 0; c < chunks; ++c) {
    copy_tile(to + c * box_bytes, map, own.first_k + (first + c) * kChunk, row, barrier);
  }
}

/// kTaskRows float32 rows of a slice, of which a lane has parts of every second.
struct TaskRows {
  float4 v[kTaskLoads][kSliceFours];

  /// `x`: the lane's place in the first one; `rows` are there, and `left` columns.
  __device__ void load(const float* x, std::int32_t width, std::int32_t rows, std::int32_t left) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < kTaskLoads; ++i) {
      load_slice(v[i], x + i * 2 * width, i * 2 + lane / kSliceLanes < rows, left);
    }
  }
  /// To the boxes of the slice, from row `first` on; and the sums of their squares.
  template <int RowBox>
  __device__ void store(std::byte* to, float* squares, int first) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int own = lane % kSliceLanes;
#pragma unroll
    for (int i = 0; i < kTaskLoads; ++i) {
      const int r = first + i * 2 + lane / kSliceLanes;
      const float sum = slice_squares(v[i]);
      if (own == 0) squares[r] = sum;
#pragma unroll
      for (int j = 0; j < kSliceFours; ++j) {
        const int at = j * RowBox + r * 128 + ((own / 2) ^ (r % 8)) * 16 + own % 2 * 8;
        *reinterpret_cast<uint2*>(to + at) = four_bf16(v[i][j]);
      }
    }
  }
};

/// Warp `warp` of `warps` that bring the rows of all slices; then the first finds the inverse
/// roots.
template <int Tiles, Use U>
__device__ inline void bring_normed(const Streamed& a, const StreamedMemory<Tiles, U>& m, int warp,
                                    int warps, std::int32_t rows) {
  using M = StreamedMemory<Tiles, U>;
  constexpr int kTasks = M::kRows / kTaskRows;  // of a slice
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int tasks = a.slices * kTasks;
  // Not more warps than tasks of all stages: so each of them sees every phase of the barriers.
  warps = min(warps, a.row_stages * kTasks);
  if (warp >= warps) return;
  const int own = lane % kSliceLanes * 4;
  const float* const x0 = static_cast<const float*>(a.x) + lane / kSliceLanes * a.in + own;
  const auto load = [&](TaskRows& to, int task) {
    const int slice = task / kTasks;
    const int row = (task - slice * kTasks) * kTaskRows;
    const std::int32_t k = slice * kSliceBf16;
    to.load(x0 + row * a.in + k, a.in, rows - row, a.in - k - own);
  };
  TaskRows next;
  if (warp < tasks) load(next, warp);
#pragma unroll 1
  for (int task = warp; task < tasks; task += warps) {
    const TaskRows now = next;
    if (task + warps < tasks) load(next, task + warps);
    const int slice = task / kTasks;
    const int turn = slice / a.row_stages;
    const int stage = slice - turn * a.row_stages;
    if (turn > 0) wait_barrier(m.used + stage, (turn + 1) & 1);
    now.template store<M::kRowBox>(m.xs + stage * M::kRowSlice, m.squares + slice * M::kRows,
                                   (task - slice * kTasks) * kTaskRows);
    publish_tile();
    __syncwarp();
    if (lane == 0) arrive(m.there + stage);
  }
  asm volatile("bar.sync 1, %0;" ::"r"(warps * 32) : "memory");
  if (warp > 0) return;
  if (lane < M::kRows) {
    float all = 0;
#pragma unroll 4
    for (int i = 0; i < a.slices; ++i) all += m.squares[i * M::kRows + lane];
    m.by[lane] = inverse_root(all, a.in, a.epsilon);
  }
  __syncwarp();
  if (lane == 0) arrive(m.scaled);
}

/// By one warp: rows in bfloat16, and what their sums are multiplied with.
template <int Tiles, Use U>
__device__ inline void bring_narrow(const Streamed& a, const StreamedMemory<Tiles, U>& m,
                                    const CUtensorMap& map, const Own& own, std::int32_t rows) {
  using M = StreamedMemory<Tiles, U>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane == 0) {
    RingPlace at{0, 1};
#pragma unroll 1
    for (int slice = 0; slice < own.slices; ++slice, at.advance(a.row_stages)) {
      wait_barrier(m.used + at.stage, at.parity);
      bring_boxes(m.xs + at.stage * M::kRowSlice, map, M::kRowBox, slice, 0, own,
                  m.there + at.stage);
    }
  }
  __syncwarp();
  if (lane < M::kRows) m.by[lane] = a.scale != nullptr && lane < rows ? a.scale[lane] : 1;
  __syncwarp();
  if (lane == 0) arrive(m.scaled);
}

}  // namespace streamed
}  // namespace toto::cuda
