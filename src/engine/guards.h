// SPDX-License-Identifier: Apache-2.0
// From what the engine says to what is answered: the end of a longer forecast, the scale undone,
// values kept within bounds.
#pragma once

#include <cstddef>
#include <span>

#include "engine/forecast_writer.h"
#include "toto/forecast.hpp"

namespace toto {

/// Throws Error (2) invalid_input_scale, invalid_guard.
void check_adaptation(const ForecastOptions& options);

/// The least and the greatest value that the guards allow: whole numbers where they ask for these.
struct Bounds {
  double low = 0, high = 0;
  [[nodiscard]] bool any() const;
  [[nodiscard]] bool hold(double value) const { return value >= low && value <= high; }
  /// `value`, or the float next to the bound that it is beyond, on the side that is allowed.
  [[nodiscard]] float nearest(float value) const;
};
/// Of values that are differences from `offset`, bounds that are as well.
Bounds bounds_of(const Guards& guards, double offset = 0);
/// The value nearest to `value` with which `offset` is a whole number.
float to_whole(float value, double offset);

/// Brings what comes after the first `gap` steps of `longer` to where the job's results go.
void keep_end(const Forecast& longer, std::size_t gap, const ForecastJob& job);

/// Divides results by the scale of each variate, [V]. Known covariates are put back as they came.
/// Throws Error (70) nonfinite_forecast.
void undo_scale(const ForecastJob& job, std::span<const double> scale);

/// Whole numbers, and nothing beyond Guards::min and max.
void apply_bounds(const ForecastJob& job);

/// As Guards says. `lowest` and `highest` are [V], of what is observed of the context.
void apply_guards(const ForecastJob& job, std::span<const double> lowest,
                  std::span<const double> highest);

}  // namespace toto
