// SPDX-License-Identifier: Apache-2.0
// What the engine is asked for, and its answers as points, means and quantiles in the user's units.
#pragma once

#include <span>
#include <vector>

#include "backtest/aggregate.h"
#include "toto/backtest.hpp"

namespace toto::backtest {

/// Steps whose distribution follows from the mixture alone: those of the first patch; with a
/// transform the first one, since later values depend on the moves in between.
std::size_t exact_steps(const Parameters& parameters, std::size_t steps, std::size_t patch);

/// Whether there are other steps.
bool needs_trajectories(const Parameters& parameters, std::size_t steps, std::size_t patch);

ForecastOptions forecast_options(const Parameters& parameters, const Aggregate& point,
                                 std::size_t steps, std::size_t patch);

/// [V][steps][kStored]. `bases` [V] are the last known values.
std::vector<float> read_forecast(const Forecast& forecast, const Parameters& parameters,
                                 const Aggregate& point, std::span<const double> bases,
                                 std::size_t patch);

}  // namespace toto::backtest
