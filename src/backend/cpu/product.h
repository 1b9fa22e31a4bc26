// SPDX-License-Identifier: Apache-2.0
// Matrix products over the thread team.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.h"
#include "backend/cpu/packed_matrix.h"
#include "backend/cpu/product_kernels.h"
#include "backend/cpu/scratch.h"
#include "core/thread_team.h"

namespace toto::cpu {

/// Rows of the input that are worked on together: they stay in the second-level cache while the
/// panels stream past. The candidates of choose_product().
inline constexpr std::int32_t kBlockRows[] = {64, 32, 96, 128, 256};
inline constexpr std::int32_t kMaxBlockRows = 256;

/// Scratch memory that multiply() needs for inputs of that many columns, in bytes.
std::size_t prepared_bytes(const TileFormat& format, std::int32_t in);

struct Product {
  const ProductKernels* kernels;
  const PackedMatrix* weights;
  std::int32_t
      out;         // outputs asked for: a prefix of those packed; after gating, for Epilogue::gated
  const float* x;  // [rows][in]
  float* y;        // [rows][out]
  std::int32_t rows;
  Epilogue epilogue;
  bool silu = false;       // of what Epilogue::store leaves
  std::int32_t first = 0;  // output: those of its panel before it are computed too, no others
};

void multiply(const Product& product, ThreadTeam& team, const ScratchSet& scratch);

}  // namespace toto::cpu
