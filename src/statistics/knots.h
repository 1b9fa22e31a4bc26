// SPDX-License-Identifier: Apache-2.0
// A distribution known by its quantiles at the levels 1/(n+1), ..., n/(n+1): linear between them.
// About the tails beyond the first and the last the model says nothing. Either they are constant
// there (clamped, as the wrappers of Toto 2.0 interpolate), or exponential: an assumption.
//
// Exponential tails are those of GluonTS (ExponentialTailApproximation of QuantileForecast): of the
// kind log(p) = a + b x, through the two outermost quantiles. Their probabilities are 1/(n+1) and
// 2/(n+1), so each halving of the probability beyond is another step from the last quantile but one
// to the last.
//
// The same code runs on the host and on a device, with the same bits; in exponential tails a
// device's logarithm may differ in its last digit.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include "core/philox.h"

namespace toto {

using Knots = std::span<const double>;  // ascending, at least one

/// The level of knot i of n.
[[nodiscard]] constexpr double knot_level(std::size_t i, std::size_t n) {
  return static_cast<double>(i + 1) / static_cast<double>(n + 1);
}

/// A level's distance from a knot, in distances between knots, that is taken for rounding: 0.1F is
/// the level 0.1.
inline constexpr double kSameKnot = 1e-7;

/// Where a level lies among n knots: 0 at the first, n - 1 at the last.
[[nodiscard]] TOTO_HOST_DEVICE constexpr double knot_position(double level, std::size_t n) {
  return level * static_cast<double>(n + 1) - 1;
}

/// Whether a quantile of that level lies between the knots, not on the constant beyond them.
[[nodiscard]] constexpr bool within_knots(double level, std::size_t n) {
  const double at = knot_position(level, n);
  return at >= -kSameKnot && at <= static_cast<double>(n - 1) + kSameKnot;
}

/// How far a tail falls while its probability halves, signed outwards: from the knot `inner` to the
/// outermost. 0, as of a clamped tail, where that is no finite number.
[[nodiscard]] TOTO_HOST_DEVICE inline double knot_halving(double outer, double inner) {
  constexpr double kFinite = 1e300;  // NaN is not below it either
  const double step = outer - inner;
  return fabs(step) < kFinite ? step : 0;
}

/// The quantile beyond the outermost knot, where the probability is `share` of that beyond the
/// knot: 0 < share <= 1. No further than what float32 holds.
[[nodiscard]] TOTO_HOST_DEVICE inline double knot_tail(double outer, double inner, double share) {
  constexpr double kLargest = 3.4028234663852886e38;
  const double step = knot_halving(outer, inner);
  if (step == 0) return outer;
  return fmin(fmax(outer - step * log2(share), -kLargest), kLargest);
}

/// The quantile at `level`, in [0, 1]; with exponential tails in (0, 1), and of two knots or more.
/// A level that is a knot's, to rounding, gives that knot. NaN among the two knots it lies between
/// gives NaN. Higher levels never have lower quantiles.
[[nodiscard]] TOTO_HOST_DEVICE inline double knot_quantile(Knots knots, double level,
                                                           bool exponential_tails = false) {
  const std::size_t n = knots.size();
  const auto last = static_cast<double>(n - 1);
  double at = knot_position(level, n);
  if (exponential_tails && at < -kSameKnot) {
    return knot_tail(knots[0], knots[1], level * static_cast<double>(n + 1));
  }
  if (exponential_tails && at > last + kSameKnot) {
    return knot_tail(knots[n - 1], knots[n - 2], (1 - level) * static_cast<double>(n + 1));
  }
  at = at < 0 ? 0 : at > last ? last : at;
  const double nearest = round(at);
  if (fabs(at - nearest) <= kSameKnot) return knots[static_cast<std::size_t>(nearest)];
  const double below = floor(at);
  const auto i = static_cast<std::size_t>(below);
  const double share = at - below;
  return knots[i] * (1 - share) + knots[i + 1] * share;
}

/// Mean excess of the two exponential tails over the outermost knots, signed; 0 of clamped ones.
struct KnotExcess {
  double low = 0, high = 0;
};
[[nodiscard]] TOTO_HOST_DEVICE inline KnotExcess knot_excess(Knots knots, bool exponential_tails) {
  constexpr double kLn2 = 0.69314718055994530942;
  if (!exponential_tails) return {};
  const std::size_t n = knots.size();
  return {knot_halving(knots[0], knots[1]) / kLn2, knot_halving(knots[n - 1], knots[n - 2]) / kLn2};
}

/// Mean of the distribution: the integral of the quantile function, tails of one spacing each at
/// the ends, trapezoids between. An exponential tail adds its mean excess.
[[nodiscard]] TOTO_HOST_DEVICE inline double knot_mean(Knots knots,
                                                       bool exponential_tails = false) {
  double sum = (knots[0] + knots[knots.size() - 1]) / 2;
  for (std::size_t i = 0; i < knots.size(); ++i) sum += knots[i];
  const KnotExcess tails = knot_excess(knots, exponential_tails);
  return (sum + (tails.low + tails.high)) / static_cast<double>(knots.size() + 1);
}

/// Variance: the integral of the squared distance from the mean. That of a straight piece from a to
/// b is (aa + ab + bb) / 3, that of an exponential tail from d with mean excess e dd + 2de + 2ee.
[[nodiscard]] TOTO_HOST_DEVICE inline double knot_variance(Knots knots,
                                                           bool exponential_tails = false) {
  const double mean = knot_mean(knots, exponential_tails);
  const KnotExcess tails = knot_excess(knots, exponential_tails);
  const double low = knots[0] - mean;
  const double high = knots[knots.size() - 1] - mean;
  double sum = low * low + high * high;
  sum += 2 * tails.low * (low + tails.low) + 2 * tails.high * (high + tails.high);
  for (std::size_t i = 0; i + 1 < knots.size(); ++i) {
    const double a = knots[i] - mean;
    const double b = knots[i + 1] - mean;
    sum += (a * a + a * b + b * b) / 3;
  }
  return sum / static_cast<double>(knots.size() + 1);
}

}  // namespace toto
