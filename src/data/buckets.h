// SPDX-License-Identifier: Apache-2.0
// Rows gathered into steps of equal length.
#pragma once

#include <cstddef>
#include <string>

#include "data/table.h"

namespace toto::data {

struct Resample {
  enum class Gather { mean, sum, last, first, max, min };
  Interval step;
  Gather gather = Gather::mean;
};

/// "5min", "1h:sum". Throws Error (2) invalid_frequency, invalid_resample.
Resample parse_resample(const std::string& text);

/// Puts one row in the place of all rows of a step, at the time at which the step begins: by the
/// clock on the wall for days and more, weeks on Mondays, months and years on their first or last
/// day. What is missing is left out of a step; a step without a value stays missing. Of sums, the
/// first and the last step go where rows do not reach to their ends; returns how many those were.
std::size_t gather_rows(RowGroup& group, std::size_t width, const Resample& resample);

/// Where the step begins that a time lies in; both by the clock on the wall.
std::int64_t begin_of_step(std::int64_t local, const Interval& step);

}  // namespace toto::data
