// SPDX-License-Identifier: Apache-2.0
// Weights as the tiles read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "backend/cpu/pages.h"
#include "backend/cpu/product_kernels.h"
#include "backend/folded_matrix.h"
#include "core/thread_team.h"

namespace toto::cpu {

/// Nearest even; NaN stays NaN.
std::uint16_t to_bf16(float x);

/// The scale of a row of int8 weights, which comes in parts: its largest magnitude over 127, formed
/// in float64. NaN where the row holds a weight that is not finite, so that its outputs are not
/// finite either.
class Int8Scale {
 public:
  void see(std::span<const float> weights);
  [[nodiscard]] float scale() const;

 private:
  double largest_ = 0;
};

/// w / scale, to the nearest whole number in -127 .. 127; 0 where the scale is 0 or NaN.
std::int8_t to_int8(float w, float scale);

/// A unit is what one tile of the result needs: one panel, or for the gated product the panel of
/// the gate followed by that of the value. Units lie one after the other,
/// [unit][panel][K][columns], and the bias the same way, [unit][panel][columns]; both are padded
/// with zeros. The panels of the last unit are no wider than its columns take whole vectors, where
/// the format has such tiles. With int8 weights a panel ends with the scales of its columns, from
/// scales_at() on, zeros where there is no column.
struct PackedMatrix : PackedWeights {
  const TileFormat* format = nullptr;
  bool gated = false;
  std::int32_t in = 0;  // K
  std::int32_t units = 0;
  std::int32_t block_rows = 64;  // kBlockRows of product.h; no bit depends on it
  std::size_t steps = 0;         // of a tile: K / TileFormat::step, rounded up
  std::size_t panel_bytes = 0;
  int last_vectors = kTileVectors;  // of columns, of the panels of the last unit
  std::size_t last_bytes = 0;       // of such a panel
  const std::byte* panels = nullptr;
  const float* bias = nullptr;
  const PackedMatrix* following = nullptr;  // read after this one, as far as is known

  [[nodiscard]] int panels_per_unit() const { return gated ? 2 : 1; }
  [[nodiscard]] int vectors_of(std::int64_t unit) const {
    return unit + 1 < units ? kTileVectors : last_vectors;
  }
  [[nodiscard]] const std::byte* unit(std::int64_t unit) const {
    return panels + static_cast<std::size_t>(unit * panels_per_unit()) * panel_bytes;
  }
  [[nodiscard]] std::size_t bytes_of(std::int64_t unit) const {
    return unit + 1 < units ? panel_bytes : last_bytes;
  }
};

/// weights [out][in] row-major, bias [out] or empty. With `gated` the first half of the rows is the
/// gate. The memory comes from `arena`.
PackedMatrix pack_matrix(const float* weights, std::int32_t out, std::int32_t in,
                         std::span<const float> bias, bool gated, const TileFormat& format,
                         int columns, Arena& arena, ThreadTeam& team);

/// The same of a folded matrix: each thread folds what it packs.
PackedMatrix pack_matrix(const FoldedMatrix& matrix, bool gated, const TileFormat& format,
                         int columns, Arena& arena, ThreadTeam& team);

}  // namespace toto::cpu
