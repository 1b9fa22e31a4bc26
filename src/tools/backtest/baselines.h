// SPDX-License-Identifier: Apache-2.0
// What anybody could have said without a model: the last value, the value a season ago, the line
// through the first and the last value. Each with the spread that its own errors in the context
// had, as a normal distribution (Hyndman and Athanasopoulos, "Forecasting", table 5.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "toto/tools/backtest.hpp"

namespace toto::backtest {

/// The values of a context, [T] each; where the mask says 0, a value only repeats one before it.
struct Context {
  std::span<const float> values;
  std::span<const std::uint8_t> mask;  // at least one is 1
};

struct Baseline {
  double point = 0;
  double sigma = 0;  // 0: the context is too short to tell
};

/// `step` from 1. `source` is a baseline. A context shorter than a season has the last value stand
/// for the seasonal one. Spreads and slopes are those of observed values.
Baseline baseline(Source source, const Context& context, std::size_t season, std::size_t step);

/// The denominator of MASE.
struct Scale {
  double value = 0;       // mean of |y[t] - y[t - lag]| where both are observed; 0: there is none
  bool seasonal = false;  // whether the lag is the season; else it is 1
};
/// A context without two values a season apart is scaled by its moves from bar to bar.
Scale scale_of(const Context& context, std::size_t season);

/// The standard normal's quantile at levels()[level].
double normal_quantile(std::size_t level);

}  // namespace toto::backtest
