// SPDX-License-Identifier: Apache-2.0
// What anybody could have said without a model: the last value, the value a season ago, the line
// through the first and the last value. Each with the spread that its own errors in the context
// had, as a normal distribution (Hyndman and Athanasopoulos, "Forecasting", table 5.2).
#pragma once

#include <cstddef>
#include <span>

#include "toto/backtest.hpp"

namespace toto::backtest {

struct Baseline {
  double point = 0;
  double sigma = 0;  // 0: the context is too short to tell
};

/// `step` from 1. `source` is a baseline. A context shorter than a season has the last value stand
/// for the seasonal one.
Baseline baseline(Source source, std::span<const float> context, std::size_t season,
                  std::size_t step);

/// Mean of |y[t] - y[t - season]|, the denominator of MASE; 0 where there is none.
double seasonal_scale(std::span<const float> context, std::size_t season);

/// The standard normal's quantile at levels()[level].
double normal_quantile(std::size_t level);

}  // namespace toto::backtest
