// SPDX-License-Identifier: Apache-2.0
// How good a forecast was, once one knows. All take spans of the same length, one element for each
// step that was observed.
#pragma once

#include <span>

namespace toto::verify {

/// mean |actual - forecast|: of the point forecast, the median, not of trajectories.
double mean_absolute_error(std::span<const float> forecast, std::span<const float> actual);

/// mean |x[t] - x[t-1]| over the context: what MASE divides by. 0 for a constant series.
double naive_error(std::span<const float> context);

/// 2 (actual - quantile) (level - [actual < quantile]): the quantile (pinball) loss of one value.
double quantile_loss(double level, double quantile, double actual);

/// The share of values inside [lower, upper].
double coverage(std::span<const float> lower, std::span<const float> upper,
                std::span<const float> actual);

}  // namespace toto::verify
