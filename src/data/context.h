// SPDX-License-Identifier: Apache-2.0
// The last steps of a series: the grid of time, and which row stands at each of its steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/table.h"
#include "toto/tools/data.hpp"

namespace toto::data {

struct Context {
  static constexpr std::size_t kNoRow = static_cast<std::size_t>(-1);

  TimeStyle style;
  Interval interval;
  bool fill_gaps = false;         // else every row is a step
  Times times;                    // [T] as TimeSeries has them
  std::vector<std::size_t> rows;  // [T] the row of the group, or kNoRow

  /// Steps from the group's first row to `row`.
  [[nodiscard]] std::size_t step_of(std::size_t row) const;

  std::vector<std::int64_t> local;  // [rows of the group] by the clock on the wall
  std::size_t begin = 0;            // step_of() of the first step here
};

/// At most `limit` steps; they end with the group's last row.
/// `calendar` (may be null): rows of a market that closes are consecutive steps; one that never
/// does has no business days.
Context make_context(const RowGroup& group, const TimeStyle& style, std::size_t limit,
                     const Sessions* calendar = nullptr);

}  // namespace toto::data
