// SPDX-License-Identifier: Apache-2.0
// What the engine is asked for, and its answers as points, means and quantiles in the user's units.
#pragma once

#include <span>
#include <vector>

#include "tools/backtest/aggregate.h"
#include "toto/tools/backtest.hpp"

namespace toto::backtest {

/// What is wanted of every step: A points, the mean, L quantiles, in this order.
struct Wanted {
  std::vector<Aggregate> points;  // [A]
  std::vector<double> levels;     // [L] ascending

  [[nodiscard]] std::size_t size() const { return points.size() + 1 + levels.size(); }
};
/// The points of the parameters, and levels().
Wanted wanted_of(const Parameters& parameters);

/// Steps whose distribution follows from the mixture alone: those of the first patch; with a
/// transform the first one, since later values depend on the moves in between.
std::size_t exact_steps(const Parameters& parameters, std::size_t steps, std::size_t patch);

/// Whether there are other steps.
bool needs_trajectories(const Parameters& parameters, std::size_t steps, std::size_t patch);

ForecastOptions forecast_options(const Parameters& parameters, const Wanted& wanted,
                                 std::size_t steps, std::size_t patch);

/// The paths and tails of these options, with a model of these defaults.
ModelDefaults settled(const Options& options, const ModelDefaults& defaults);

/// Averages with views have no trajectories: every step is read from its statistics.
void take_views(ForecastOptions& options, const Views& views);

/// Keeps what was read, [cells][wanted.size()], within min and max, and rounds all but the mean to
/// whole numbers where the guards say so. The number of cells where a value was beyond a bound.
/// `read` has one variate after the other, of differences from `offsets` [V]; empty: from 0.
std::size_t keep_bounds(std::span<float> read, const Wanted& wanted, const Guards& guards,
                        std::span<const double> offsets = {});

/// [V][steps][wanted.size()]. `bases` [V] are the last known values. With a transform results are
/// differences from `offsets` [V]; empty: from 0. Without one they are what the forecast's are.
std::vector<float> read_forecast(const Forecast& forecast, const Parameters& parameters,
                                 const Wanted& wanted, std::span<const double> bases,
                                 std::size_t patch, std::span<const double> offsets = {});

}  // namespace toto::backtest
