// SPDX-License-Identifier: Apache-2.0
// A distribution known by its quantiles at the levels 1/(n+1), ..., n/(n+1): linear between them,
// constant beyond the first and the last. That is how the wrappers of Toto 2.0 interpolate; what
// the model says about the tails beyond its outermost levels is nothing, so nothing is made up.
#pragma once

#include <cstddef>
#include <span>

namespace toto {

/// The level of knot i of n.
[[nodiscard]] constexpr double knot_level(std::size_t i, std::size_t n) {
  return static_cast<double>(i + 1) / static_cast<double>(n + 1);
}

/// Whether a quantile of that level lies between the knots, not on the constant beyond them.
[[nodiscard]] bool within_knots(double level, std::size_t n);

/// The quantile at `level` in [0, 1]; knots ascending, at least one. A level that is a knot's, to
/// rounding, gives that knot. NaN among the two knots it lies between gives NaN.
[[nodiscard]] double knot_quantile(std::span<const double> knots, double level);

/// Mean and variance of the distribution.
[[nodiscard]] double knot_mean(std::span<const double> knots);
[[nodiscard]] double knot_variance(std::span<const double> knots);

}  // namespace toto
