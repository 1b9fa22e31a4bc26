// SPDX-License-Identifier: Apache-2.0
// A thread block of streamed_rows_sm90a.cu: what it is told, its shared memory, and how its rows
// come there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/cuda/gemm/copy_engine.cuh"
#include "backend/cuda/gemm/some_rows.cuh"

namespace toto::cuda {
namespace streamed {

inline constexpr int kUnitOutputs = 16;    // of a warp
inline constexpr int kGroupWarps = 4;      // of a warpgroup, each with sixteen outputs
inline constexpr int kChunk = kPitchBf16;  // k of a box of weights or rows: 128 bytes
inline constexpr int kChunks = kSliceBf16 / kChunk;
inline constexpr int kUnitBytes = kUnitOutputs * kChunk * 2;  // of a box, for sixteen outputs
inline constexpr int kAlignment = 1024;

inline constexpr int kMostGroups = 3;  // that multiply
inline constexpr int kRowStages = 4;
inline constexpr int kSharingRowStages = 3;
inline constexpr int kMostKept = 8;  // slices of a block that may share them

/// What a product does: it is known when the kernel is compiled, for code that runs once in a
/// kernel is waited for.
enum class Use : std::uint8_t { store, gated, silu, residual };

/// Warps that do not multiply: one asks for weights, one for rows, one finds what sums are
/// multiplied with. Of products that share slices the second does so too, for it is nothing there.
constexpr int warps_beside(Use use) { return use == Use::residual ? 2 : 3; }
constexpr int most_warps(Use use) {
  return kGroupWarps * (use == Use::residual ? 1 : kMostGroups) + warps_beside(use);
}

struct Streamed : RowsProduct {
  int slices;
  int split = 1;   // blocks of a cluster, which share the slices
  int parts = 1;   // sixteens of outputs of a block
  int groups = 1;  // warpgroups that multiply
  int stages = 1;  // of a slice of the block's weights
};

/// Shared memory of a block. Boxes have rows of 128 bytes, swizzled. A warpgroup whose outputs are
/// less than 64 reads on into what lies behind its box, and nobody reads the sums of that.
template <int Tiles, Use U>
struct StreamedMemory {
  static constexpr bool kShares = U == Use::residual;
  static constexpr int kRows = Tiles * kRowsOfTile;
  static constexpr int kRowBox = kRows * kChunk * 2;  // bytes
  static constexpr int kRowSlice = kChunks * kRowBox;
  // Known when the kernel is compiled: a ring of stages that is not takes 5 % longer.
  static constexpr int kStagesOfRows = kShares ? kSharingRowStages : kRowStages;
  std::byte* ws;          // [stages][kChunks] boxes of parts * kUnitOutputs rows
  std::byte* xs;          // [kStagesOfRows][kChunks] boxes of kRows rows
  float4* before;         // [parts][Tiles][32] sums of the slices before those of this block
  float* squares;         // [slices][kRows]
  float* by;              // [kRows] what the sums of a row are multiplied with
  std::uint64_t* full;    // [stages] weights are there
  std::uint64_t* empty;   // [stages] and have been multiplied
  std::uint64_t* there;   // [kStagesOfRows] rows are there
  std::uint64_t* used;    // [kStagesOfRows] and have been multiplied
  std::uint64_t* handed;  // `before` is there
  std::uint64_t* scaled;  // `by` is there

  __device__ StreamedMemory(void* shared, const Streamed& a) {
    ws = static_cast<std::byte*>(shared);
    ws += (kAlignment - shared_address(ws) % kAlignment) % kAlignment;
    xs = ws + a.stages * kChunks * a.parts * kUnitBytes;
    before = reinterpret_cast<float4*>(xs + kStagesOfRows * kRowSlice);
    squares = reinterpret_cast<float*>(before + (kShares ? a.parts * Tiles * 32 : 0));
    by = squares + (kShares ? 0 : a.slices * kRows);
    full = reinterpret_cast<std::uint64_t*>(by + kRows);
    empty = full + a.stages;
    there = empty + a.stages;
    used = there + kStagesOfRows;
    handed = used + kStagesOfRows;
    scaled = handed + 1;
  }
  static std::int64_t bytes(const Streamed& a) {
    const std::int64_t sums = kShares ? a.parts * Tiles * 512 : a.slices * kRows * 4;
    return kAlignment + std::int64_t{a.stages} * (kChunks * a.parts * kUnitBytes + 16) +
           std::int64_t{kStagesOfRows} * (kRowSlice + 16) + sums + kRows * 4 + 16;
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

/// By one thread: the chunks of a slice of all rows to the boxes from `to` on.
__device__ inline void bring_boxes(std::byte* to, const CUtensorMap& map, int box_bytes, int slice,
                                   const Own& own, std::uint64_t* barrier) {
  const int first = slice * kChunks;
  const int chunks = min(kChunks, own.chunks - first);
  expect_bytes(barrier, chunks * box_bytes);
#pragma unroll 1
  for (int c = 0; c < chunks; ++c) {
    copy_tile(to + c * box_bytes, map, own.first_k + (first + c) * kChunk, 0, barrier);
  }
}

/// By one warp: rows of all slices. The copy engine brings them; up to eight the warp brings itself
/// (RowPieces), and of them only those that are there.
template <int Tiles, Use U>
__device__ inline void bring_rows(const Streamed& a, const StreamedMemory<Tiles, U>& m,
                                  const CUtensorMap& map, const Own& own, std::int32_t rows) {
  using M = StreamedMemory<Tiles, U>;
  constexpr int kStages = M::kStagesOfRows;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Cursor<kStages> at{0, 1};
  if constexpr (Tiles > 1) {
    if (lane > 0) return;
#pragma unroll 1
    for (int slice = 0; slice < own.slices; ++slice, at.advance()) {
      wait_barrier(m.used + at.stage, at.parity);
      bring_boxes(m.xs + at.stage * M::kRowSlice, map, M::kRowBox, slice, own, m.there + at.stage);
    }
  } else {
    constexpr int kOnTheWay = kStages - 1;  // where a stage is used again, what was there has come
    const std::int32_t width = padded_bf16(a.in);
    const auto* const x = static_cast<const __nv_bfloat16*>(a.x);
    Cursor<kStages> come;
#pragma unroll 1
    for (int slice = 0; slice < own.slices + kOnTheWay; ++slice) {
      if (slice < own.slices) {
        wait_barrier(m.used + at.stage, at.parity);
        RowPieces(shared_address(m.xs) + at.stage * M::kRowSlice, x, 0,
                  own.first_k + slice * kSliceBf16, width)
            .template copy<M::kRowBox>(rows);
        at.advance();
      }
      commit_copies();
      if (slice < kOnTheWay) continue;
      wait_copies<kOnTheWay>();
      publish_tile();
      __syncwarp();
      if (lane == 0) arrive(m.there + come.stage);
      come.advance();
    }
  }
}

/// By one warp: what the sums of rows are multiplied with.
template <int Tiles, Use U>
__device__ inline void find_scales(const Streamed& a, const StreamedMemory<Tiles, U>& m,
                                   std::int32_t rows) {
  using M = StreamedMemory<Tiles, U>;
  constexpr int kAtOnce = 4;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (M::kShares || a.squares == nullptr) {
    if (lane < M::kRows) m.by[lane] = a.scale != nullptr && lane < rows ? a.scale[lane] : 1;
  } else {
    // Lanes share the slices of all rows: those of one row come at once.
    const int tasks = a.slices * M::kRows;
#pragma unroll 1
    for (int first = lane; first < tasks; first += 32 * kAtOnce) {
      SliceSixteens sixteens[kAtOnce] = {};
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int task = first + i * 32;
        const int slice = task / M::kRows;
        const int row = task - slice * M::kRows;
        if (task >= tasks || row >= rows) continue;
        sixteens[i].load(a.squares + std::int64_t{row} * (a.in / kSixteen), slice, a.in);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (first + i * 32 < tasks) m.squares[first + i * 32] = sixteens[i].sum();
      }
    }
    __syncwarp();
    if (lane < M::kRows) {
      float all = 0;
#pragma unroll 4
      for (int i = 0; i < a.slices; ++i) all += m.squares[i * M::kRows + lane];
      m.by[lane] = inverse_root(all, a.in, a.epsilon);
    }
  }
  __syncwarp();
  if (lane == 0) arrive(m.scaled);
}

}  // namespace streamed
}  // namespace toto::cuda
