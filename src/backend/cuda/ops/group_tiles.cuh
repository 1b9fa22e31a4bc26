// SPDX-License-Identifier: Apache-2.0
// What products of many rows on Hopper have in common, whatever their type: two warpgroups multiply
// tiles of kGroupRows rows by N outputs, and one more brings them; blocks stay and take tile after
// tile.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backend/cuda/gemm/copy_engine.cuh"
#include "backend/cuda/gemm/product.h"
#include "backend/cuda/gemm/tensor_map.h"

namespace toto::cuda {

constexpr int kGroups = 2;                // warpgroups that multiply
constexpr int kGroupRows = 64 * kGroups;  // of a tile
constexpr int kGroupThreads = 128 * (kGroups + 1);
constexpr int kRegistersBringing = 40;
constexpr int kRegistersMultiplying = 232;
constexpr int kTileAlignment = 1024;
constexpr std::size_t kTileBytes = 212992;  // of all stages, at most

inline unsigned group_tiles(std::int64_t outs, std::int64_t rows, int width) {
  return ceil_div(outs, width) * ceil_div(rows, kGroupRows);
}

/// Calls run(integral constant of the best of `Widths`, from wide to narrow): wide tiles where they
/// keep the processors as busy as narrow ones, for every tile also costs what some outputs more of
/// it would.
template <int... Widths, typename Run>
void with_best_width(std::int64_t outs, std::int64_t rows, const Stream& s, const Run& run) {
  constexpr std::int64_t kTileCost = 32;
  const auto cost = [&](int n) {
    return std::int64_t{ceil_div(group_tiles(outs, rows, n), s.processors)} * (n + kTileCost);
  };
  const std::int64_t best = std::min({cost(Widths)...});
  bool done = false;
  const auto attempt = [&](auto width) {
    if (done || cost(width()) != best) return;
    done = true;
    run(width);
  };
  (attempt(std::integral_constant<int, Widths>{}), ...);
}

/// The tiles of a block of threads, `first`, first + stride, ... below `all`: those of the same
/// rows follow each other. A tile is formed in `steps`.
struct OwnTiles {
  std::int32_t first, stride, all, out_tiles, steps;
};

/// What the one thread that brings tiles does: kGroupRows by Depth of rows and N by Depth of
/// weights for every step, a stage at a time as they become empty.
template <int Stages, int N, int Depth, typename T>
__device__ inline void bring_tiles(T* ws, const CUtensorMap& w_map, T* xs, const CUtensorMap& x_map,
                                   std::uint64_t* full, std::uint64_t* empty, const OwnTiles& own) {
  constexpr int kW = N * Depth;
  constexpr int kX = kGroupRows * Depth;
  Cursor<Stages> at;
  for (std::int32_t tile = own.first; tile < own.all; tile += own.stride) {
    for (std::int32_t step = 0; step < own.steps; ++step, at.advance()) {
      wait_barrier(empty + at.stage, at.parity ^ 1);
      expect_bytes(full + at.stage, (kX + kW) * static_cast<int>(sizeof(T)));
      copy_tile(ws + at.stage * kW, w_map, step * Depth, tile % own.out_tiles * N, full + at.stage);
      copy_tile(xs + at.stage * kX, x_map, step * Depth, tile / own.out_tiles * kGroupRows,
                full + at.stage);
    }
  }
}

/// Launches a kernel of tiles of `width` outputs with `bytes` of shared memory.
template <typename... Parameters, typename... Arguments>
void launch_tiles(void (*kernel)(Parameters...), unsigned tiles, int bytes, const Stream& s,
                  Arguments... arguments) {
  launch(kernel, dim3(std::min(tiles, static_cast<unsigned>(s.processors))), dim3(kGroupThreads),
         static_cast<std::size_t>(bytes), s, arguments...);
}

}  // namespace toto::cuda
