// SPDX-License-Identifier: Apache-2.0
// The vertical axis: the range a panel shows, round ticks in it and how they are written.
#pragma once

#include <string>
#include <vector>

#include "toto/tools/plot.hpp"

namespace toto::plot {

/// Whether a value has a place on an axis. Beyond 1e300 the arithmetic of ticks would overflow.
[[nodiscard]] bool plottable(double value);

struct ValueRange {
  double low = 0.0;
  double high = 1.0;
  bool clipped = false;  ///< some band reaches beyond it
};

/// The range for history from step `first_shown` on and the whole forecast. History, median, mean
/// and actual values are always inside; bands up to 80 % may widen it a lot and wider bands a
/// little, so that one fat tail does not flatten everything else.
[[nodiscard]] ValueRange value_range(const Panel& panel, std::size_t first_shown);

struct ValueTicks {
  std::vector<double> values;  ///< increasing, inside the range
  std::vector<std::string> labels;
  std::string unit;  ///< a power of ten that all labels are multiples of, like "× 1e-9", or empty
};

/// About `wanted` ticks, at least three, at multiples of 1, 2 or 5 times a power of ten.
[[nodiscard]] ValueTicks value_ticks(const ValueRange& range, int wanted);

}  // namespace toto::plot
