// SPDX-License-Identifier: Apache-2.0
// Walk-forward windows: a context, what happened next, and the scores of forecasts of it.
#pragma once

#include <string>
#include <vector>

#include "tools/verify/cases.h"

namespace toto::verify {

struct Window {
  OwnedSeries context;                 // id: that of the series, and how many steps before its end
  std::string series;                  // id of the series
  std::vector<float> actual;           // [V][H]
  std::vector<std::uint8_t> observed;  // [V][H]
  std::vector<double> value_offsets;   // [V] of all of these; empty: 0
};

struct Windows {
  std::vector<Window> all;
  std::size_t horizon = 0;
  bool made = false;  // of series made by a formula
};

/// Non-overlapping windows before the end of each series of the user, or of some that are made.
/// Throws Error (65) too_short where there is no room for one.
Windows make_windows(const VerifyOptions& options, std::size_t patch);

/// Exact quantiles at 0.1 .. 0.9 and the parameters they come from, one forecast for each window.
std::vector<Forecast> forecast_windows(Forecaster& forecaster, const Windows& windows);
/// What is asked of the forecaster there.
ForecastOptions window_options(const Windows& windows);
std::vector<Series> window_series(const Windows& windows);

/// Averages over windows and steps. Scaled errors are of scale of their own context.
struct Scores {
  double mae = 0;       // in the units of the series: of one series only
  double relative = 0;  // error / mean |value| of the context: of any series, together
  double mase = 0;      // of the naive forecast in the context
  double wql = 0;       // sum of quantile losses / sum |actual|, averaged over levels
  double coverage = 0;  // of the 80 % interval
  std::size_t steps = 0;
};
/// Mean |value| of what was observed of variate `v` in the context; 0: nothing but zeros.
double context_size(const Window& window, std::size_t v);

/// `series` empty: all of them.
Scores score(const Windows& windows, const std::vector<Forecast>& forecasts,
             const std::string& series);

/// |a - b| / (scale + |b|) over all quantiles; infinite where one is not finite.
double mean_quantile_difference(const std::vector<Forecast>& a, const std::vector<Forecast>& b);

}  // namespace toto::verify
