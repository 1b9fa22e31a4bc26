// SPDX-License-Identifier: Apache-2.0
// What the host does with the values and results of one series, for one instruction set. All give
// the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/isa.h"

namespace toto::cpu {

/// Of the values that are observed; zeros where none is.
struct Spread {
  double mean = 0, deviation = 0, lowest = 0, highest = 0;
  std::size_t count = 0;
};

/// Where the numbers of a step go: mean, deviation and levels. Null: nowhere; levels go somewhere.
struct RecordRows {
  static constexpr std::size_t kLevels = 2;  // numbers before the first level
  float *mean = nullptr, *deviation = nullptr, *levels = nullptr;
  std::size_t distance = 0;         // from level to level
  std::size_t apart_at = SIZE_MAX;  // this level lies apart
  float* apart = nullptr;

  [[nodiscard]] float* row(std::size_t i) const {
    if (i < kLevels) return i == 0 ? mean : deviation;
    const std::size_t level = i - kLevels;
    if (level == apart_at) return apart;
    return levels + (level - (level > apart_at ? 1 : 0)) * distance;
  }
};

struct SeriesKernels {
  /// Mean and standard deviation in two passes of double, value t in sum t % 8. Both are exact
  /// multiples where the values are multiplied by a power of two. mask [count]: 0 is not observed;
  /// nullptr: all are.
  Spread (*spread)(const float* values, const std::uint8_t* mask, std::size_t count);
  /// to = from * factor, no larger than float32 has; infinities stay.
  void (*scale)(const float* from, std::size_t count, float factor, float* to);
  /// row *= factor. False where a result is not finite.
  bool (*multiply)(float* row, std::size_t count, float factor);
  bool (*all_finite)(const float* values, std::size_t count);
  /// Number i of record t, from[t * stride + i], becomes rows.row(i)[t]; t < count, i < n <=
  /// stride. `ascending`: no level is below the one before it.
  void (*take_records)(const float* from, std::size_t stride, std::size_t count,
                       const RecordRows& rows, std::size_t n, bool ascending);
};

const SeriesKernels& series_kernels(Isa isa);

/// The best that this machine has.
const SeriesKernels& series_kernels();

}  // namespace toto::cpu
