// SPDX-License-Identifier: Apache-2.0
// A matrix of a checkpoint with what a model folds into it. A backend may take parts of rows as it
// packs them, from several threads: then no folded copy of the matrix is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace toto {

struct FoldedMatrix {
  std::span<const float> stored;  // [out][in], row-major, as the checkpoint has it
  std::int32_t out = 0;
  std::int32_t in = 0;
  std::vector<std::int32_t> order;  // [out] row i is the stored row order[i]; empty: row i
  double before = 1;                // every weight times this, then
  std::span<const float> columns;   // [in] times that of its column, or empty, then
  double after = 1;                 // times this, then
  std::vector<double> rows;         // [out] times that of its row, or empty
  std::vector<double> bias;         // [out] in the order of the rows, folded; or empty

  /// Weights [first, first + to.size()) of row `row`: products in float64, in the order above,
  /// rounded once to T.
  template <typename T>
  void fold(std::int32_t row, std::int32_t first, std::span<T> to) const;
};

template <typename T>
void FoldedMatrix::fold(std::int32_t row, std::int32_t first, std::span<T> to) const {
  const std::int32_t from = order.empty() ? row : order[static_cast<std::size_t>(row)];
  const float* const weights = stored.data() + std::int64_t{from} * in + first;
  const double of_row = rows.empty() ? 1.0 : rows[static_cast<std::size_t>(row)];
  const std::size_t count = to.size();
  if (after == 1 && of_row == 1) {  // most matrices: as with these factors, in less time
    if (columns.empty()) {
      for (std::size_t k = 0; k < count; ++k) to[k] = static_cast<T>(weights[k] * before);
      return;
    }
    const float* const gains = columns.data() + first;
    for (std::size_t k = 0; k < count; ++k) to[k] = static_cast<T>(weights[k] * before * gains[k]);
    return;
  }
  for (std::size_t k = 0; k < count; ++k) {
    const double gain = columns.empty() ? 1.0 : columns[static_cast<std::size_t>(first) + k];
    to[k] = static_cast<T>(weights[k] * before * gain * after * of_row);
  }
}

}  // namespace toto
