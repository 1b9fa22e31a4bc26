// SPDX-License-Identifier: Apache-2.0
// The inner parts of a matrix product for one instruction set.
//
// Weights lie in panels of `columns` outputs, [K][columns]; the last panel of a matrix may be one
// or two vectors of columns wide. A tile is up to `rows` rows of the input times one panel. Each
// output is one chain of multiply-adds in the order of k that starts at 0, in a register of its
// own; so its bits do not depend on the other rows of the tile, nor on how many there are.
//
// int8 weights are whole numbers, which float32 holds exactly: a tile sums whole number times input
// and multiplies each finished sum by the scale of its column. The scales lie behind the weights of
// their panel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/isa.h"

namespace toto::cpu {

inline constexpr int kMaxTileRows = 32;
inline constexpr int kMaxTileColumns = 48;
inline constexpr int kTileVectors = 3;  // of columns

/// What a tile fetches into the cache while it computes: three lines for each step (int8: one), the
/// first at `from` and then `pace` bytes further each time.
struct Ahead {
  const std::byte* from;
  std::size_t pace;
};

/// Bytes from the start of a panel of int8 weights to its scales, float32 [columns].
constexpr std::size_t scales_at(std::size_t steps, std::size_t columns) {
  return (steps * columns + 63) / 64 * 64;
}

/// tile[R][..] = a[R][K] times the panel b, rows `columns` of ProductKernels apart. `a_stride` in
/// bytes.
using TileFunction = void (*)(const void* a, std::size_t a_stride, const void* b, std::size_t steps,
                              const Ahead& ahead, float* tile);

/// The same, and at once y = tile + bias (`add`: y += tile + bias), where all columns exist: the
/// sums go from registers to their place. `stride` of y in elements.
struct TilePlace {
  float* y;
  std::size_t stride;
  const float* bias;
};
using PlacedTileFunction = void (*)(const void* a, std::size_t a_stride, const void* b,
                                    std::size_t steps, const Ahead& ahead, const TilePlace& place);

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
  int rows;  // of a full tile
  // By the panel's vectors of columns, less one, and by number of rows, from 1 on. Where narrower
  // ones are missing, all panels have full width.
  TileFunction tile[kTileVectors][kMaxTileRows + 1];
  // Null where the format has none. `more` goes on from the sums that are in the tile.
  TileFunction more[kTileVectors][kMaxTileRows + 1];
  PlacedTileFunction store[kTileVectors][kMaxTileRows + 1];
  PlacedTileFunction add[kTileVectors][kMaxTileRows + 1];
  std::size_t weight_bytes;  // of one weight
  std::size_t input_bytes;   // of one prepared input element; 0: used as it is
  int step;                  // weights of one column that are neighbours: 1 or 2
  int steps_at_once;         // panels and prepared rows are padded with zeros to a multiple of it
  int block_rows;            // rows of the input that are worked on together, to begin with
  /// Rounds a row of n elements to bfloat16, in the form that the tiles read.
  void (*prepare)(const float* x, std::size_t n, void* to);
  /// Called by a thread before its first tile and after its last; may be null.
  void (*enter)();
  void (*leave)();
  bool any_rows = true;  // a tile of fewer rows takes less time, row by row
  bool scaled = false;   // int8: the scales of the columns follow the weights of a panel
};

struct ProductKernels {
  int columns;  // of a panel
  TileFormat f32;
  TileFormat bf16;
  TileFormat int8;
  FinishFunction store;
  FinishFunction add;
  FinishFunction gated;
  FinishFunction silu;
};

const ProductKernels& product_kernels(Isa isa);

#if defined(__x86_64__)
/// Pairs of bfloat16 products accumulated in hardware: 9 x 48 tiles for AVX-512 BF16.
extern const TileFormat kBf16PairFormat;
/// The same weights in the tile registers of AMX: 32 x 48 tiles.
extern const TileFormat kAmxFormat;
/// The `prepare` of both: nearest even, then zeros up to a multiple of 32.
void prepare_pairs(const float* x, std::size_t n, void* to);
#endif

}  // namespace toto::cpu
