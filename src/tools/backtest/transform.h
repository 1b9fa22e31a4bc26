// SPDX-License-Identifier: Apache-2.0
// What the model is shown of a context, and the way back from what it says.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "toto/tools/backtest.hpp"

namespace toto::backtest {

/// The bars of one variate as the model sees them. With a transform there is one step less than
/// there are bars. Values that are not observed become moves of 0 that are masked out; the move to
/// the next observed one spans the gap.
/// `bars` are differences from `offset`; so is what is shown of them without a transform.
void show(Transform transform, double scale, double offset, std::span<const float> bars,
          std::span<const std::uint8_t> mask, std::vector<float>& values,
          std::vector<std::uint8_t>& shown_mask);

/// A distribution of what the model says about a bar is aggregated on a line and then mapped to
/// values: `none` and `pct` on the line of values, `log_return` on that of log(value / base), where
/// a mean exists whatever the tails.
double to_value(Transform transform, double base, double on_line);

/// The line at the first step, which is exact: on_line = shift + slope x (what the model says).
struct Line {
  double shift = 0;
  double slope = 1;
};
Line first_step(Transform transform, double scale, double base);

/// Turns a trajectory of what the model says, [H], into points on the line, in place.
void follow(Transform transform, double scale, double base, std::span<double> trajectory);

}  // namespace toto::backtest
