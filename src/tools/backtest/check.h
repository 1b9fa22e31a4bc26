// SPDX-License-Identifier: Apache-2.0
// What is checked before anything is forecast, by run() and by tune().
#pragma once

#include <span>
#include <string>

#include "toto/tools/backtest.hpp"

namespace toto::backtest {

inline constexpr double kMinInputScale = 1e-12;
inline constexpr double kMaxInputScale = 1e12;

/// Throws Error (2): invalid_horizon, invalid_context, invalid_samples, invalid_input_scale,
/// invalid_guard, unknown_aggregate, invalid_aggregate.
void check(const Options& options, const Parameters& parameters);

/// Throws Error (2) invalid_views: views, and parameters that need trajectories or the mixture.
void check_views(const Views& views, const Parameters& parameters);

/// Throws Error (2) invalid_guard.
void check_guards(const Guards& guards);

/// Moves are not defined at prices of 0 and below, whenever they were. Throws Error (65)
/// non_positive_value where the transform makes moves of them.
void check_prices(const Symbol& symbol, const Parameters& parameters);

/// Throws Error (65) nonfinite_forecast where a value is infinite or NaN.
void require_finite(std::span<const float> values, const std::string& where);

/// Nothing can be evaluated, or chosen for: Error (65) no_windows, with the reason for each symbol.
[[noreturn]] void fail_no_windows(const std::vector<data::SeriesError>& errors);

}  // namespace toto::backtest
