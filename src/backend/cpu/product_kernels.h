// SPDX-License-Identifier: Apache-2.0
// The inner parts of a matrix product for one instruction set.
//
// Weights lie in panels of `columns` outputs, [K][columns]. A tile is up to `rows` rows of the
// input times one panel. Each output is one chain of multiply-adds in the order of k that starts at
// 0, in a register of its own; so its bits do not depend on the other rows of the tile, nor on how
// many there are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/isa.h"

namespace toto::cpu {

inline constexpr int kMaxTileRows = 8;
inline constexpr int kMaxTileColumns = 48;

/// What a tile fetches into the cache while it computes: three lines for each step, the first at
/// `from` and then `pace` bytes further each time.
struct Ahead {
  const std::byte* from;
  std::size_t pace;
};

/// tile[R][columns] = a[R][K] times the panel b. `a_stride` in bytes.
using TileFunction = void (*)(const void* a, std::size_t a_stride, const void* b, std::size_t steps,
                              const Ahead& ahead, float* tile);

/// What becomes of a tile.
struct TileOutput {
  float* y;            // row 0, first column of the tile
  std::size_t stride;  // of y, in elements
  int rows;            // of the tile
  int columns;         // that exist
  const float* bias;   // [columns of a panel], zeros where there is none
  const float* gate;   // gated: the tile of the gate, and its bias
  const float* gate_bias;
};
using FinishFunction = void (*)(const float* tile, const TileOutput& out);

/// How the weights of a panel are stored, and what the rows of the input are turned into first.
struct TileFormat {
  TileFunction tile[kMaxTileRows + 1];  // by number of rows; [0] is unused
  std::size_t weight_bytes;             // of one weight
  std::size_t input_bytes;              // of one prepared input element; 0: used as it is
  int step;                             // weights of one column that are neighbours: 1 or 2
  /// Rounds a row of n elements to bfloat16, in the form that the tiles read.
  void (*prepare)(const float* x, std::size_t n, void* to);
};

struct ProductKernels {
  int rows;     // of a full tile
  int columns;  // of a panel
  TileFormat f32;
  TileFormat bf16;
  FinishFunction store;
  FinishFunction add;
  FinishFunction gated;
  FinishFunction silu;
};

const ProductKernels& product_kernels(Isa isa);

#if defined(__x86_64__)
/// Pairs of bfloat16 products accumulated in hardware: 8 x 48 tiles for AVX-512 BF16.
extern const TileFormat kBf16PairFormat;
#endif

}  // namespace toto::cpu
