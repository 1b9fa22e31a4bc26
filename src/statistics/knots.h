// SPDX-License-Identifier: Apache-2.0
// A distribution known by its quantiles at the levels 1/(n+1), ..., n/(n+1): linear between them.
// About the tails beyond the first and the last the model says nothing: KnotTails says what stands
// there.
//
// The same code runs on the host and on a device, with the same bits; in tails that are not clamped
// a device's logarithm may differ in its last digit.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/philox.h"
#include "statistics/normal.h"

namespace toto {

using Knots = std::span<const double>;  // ascending, at least one

/// What stands beyond the outermost knots. All but the first are assumptions.
enum class KnotTails : std::uint8_t {
  /// The outermost knots, as the wrappers of Toto 2.0 interpolate.
  clamped,
  /// Of the kind log(p) = a + b x, through the two outermost quantiles, as in GluonTS
  /// (ExponentialTailApproximation of QuantileForecast). Their probabilities are 1/(n+1) and
  /// 2/(n+1), so each halving of the probability beyond is another step from the last quantile but
  /// one to the last.
  exponential,
  /// Of the normal distribution through the median and the outermost quantile, each side its own.
  normal,
};

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

/// A tail's width, signed outwards: from `inner` to the outermost knot. 0, as of a clamped tail,
/// where that is no finite number.
[[nodiscard]] TOTO_HOST_DEVICE inline double knot_width(double outer, double inner) {
  constexpr double kFinite = 1e300;  // NaN is not below it either
  const double width = outer - inner;
  return fabs(width) < kFinite ? width : 0;
}

/// So many widths beyond the outermost knot; no further than what float32 holds.
[[nodiscard]] TOTO_HOST_DEVICE inline double knot_beyond(double outer, double inner,
                                                         double widths) {
  constexpr double kLargest = 3.4028234663852886e38;
  const double width = knot_width(outer, inner);
  if (width == 0) return outer;
  return fmin(fmax(outer + width * widths, -kLargest), kLargest);
}

/// Exponential tails: the quantile where the probability is `share` of that beyond the outermost
/// knot, 0 < share <= 1. `inner` is the knot beside it.
[[nodiscard]] TOTO_HOST_DEVICE inline double knot_tail(double outer, double inner, double share) {
  return knot_beyond(outer, inner, -log2(share));
}

/// The normal score of the last of n knots.
[[nodiscard]] TOTO_HOST_DEVICE inline double knot_outer_score(std::size_t n) {
  constexpr double kOfNine = 1.2815515655446004;  // of the level 0.9
  const double upper = 1 / static_cast<double>(n + 1);
  return n == 9 ? kOfNine : normal_score(1 - upper, upper);
}

[[nodiscard]] TOTO_HOST_DEVICE inline double knot_median(Knots knots) {
  const std::size_t n = knots.size();
  return n % 2 == 1 ? knots[n / 2] : (knots[n / 2 - 1] + knots[n / 2]) / 2;
}

/// Normal tails: the quantile at the normal score z, which lies beyond those of the outermost
/// knots: q5 + (q9 - q5) z / z(0.9) of nine.
[[nodiscard]] TOTO_HOST_DEVICE inline double knot_normal_tail(Knots knots, double z) {
  const double widths = fabs(z) / knot_outer_score(knots.size()) - 1;
  return knot_beyond(knots[z < 0 ? 0 : knots.size() - 1], knot_median(knots), fmax(widths, 0));
}

/// The quantile at `level`, in [0, 1]; with tails in (0, 1), and of two knots or more.
/// A level that is a knot's, to rounding, gives that knot. NaN among the two knots it lies between
/// gives NaN. Higher levels never have lower quantiles.
[[nodiscard]] TOTO_HOST_DEVICE inline double knot_quantile(Knots knots, double level,
                                                           KnotTails tails = KnotTails::clamped) {
  const std::size_t n = knots.size();
  const auto last = static_cast<double>(n - 1);
  double at = knot_position(level, n);
  const bool below_all = at < -kSameKnot;
  if (tails != KnotTails::clamped && (below_all || at > last + kSameKnot)) {
    if (tails == KnotTails::normal) return knot_normal_tail(knots, normal_score(level, 1 - level));
    const double share = (below_all ? level : 1 - level) * static_cast<double>(n + 1);
    return below_all ? knot_tail(knots[0], knots[1], share)
                     : knot_tail(knots[n - 1], knots[n - 2], share);
  }
  at = at < 0 ? 0 : at > last ? last : at;
  const double nearest = round(at);
  if (fabs(at - nearest) <= kSameKnot) return knots[static_cast<std::size_t>(nearest)];
  const double below = floor(at);
  const auto i = static_cast<std::size_t>(below);
  const double share = at - below;
  return knots[i] * (1 - share) + knots[i + 1] * share;
}

/// How far a tail goes beyond its outermost knot, signed: the mean, and the mean square.
struct KnotExcess {
  double mean = 0, square = 0;
};
[[nodiscard]] TOTO_HOST_DEVICE inline KnotExcess knot_excess(Knots knots, bool upper,
                                                             KnotTails tails) {
  constexpr double kLn2 = 0.69314718055994530942;
  constexpr double kSqrtTwoPi = 2.50662827463100050242;
  const std::size_t n = knots.size();
  const double outer = knots[upper ? n - 1 : 0];
  if (tails == KnotTails::clamped) return {};
  if (tails == KnotTails::exponential) {
    const double mean = knot_width(outer, knots[upper ? n - 2 : 1]) / kLn2;
    return {mean, 2 * mean * mean};
  }
  // Of a standard normal beyond z: E[Z] = phi(z) / P = h, E[Z^2] = 1 + z h.
  const double width = knot_width(outer, knot_median(knots));
  const double z = knot_outer_score(n);
  const double h = exp(-0.5 * z * z) / kSqrtTwoPi * static_cast<double>(n + 1);
  return {width * (h / z - 1), width * width * ((1 + z * h) / (z * z) - 2 * h / z + 1)};
}

/// Mean of the distribution: the integral of the quantile function, tails of one spacing each at
/// the ends, trapezoids between. A tail that is not clamped adds its mean excess.
[[nodiscard]] TOTO_HOST_DEVICE inline double knot_mean(Knots knots,
                                                       KnotTails tails = KnotTails::clamped) {
  double sum = (knots[0] + knots[knots.size() - 1]) / 2;
  for (std::size_t i = 0; i < knots.size(); ++i) sum += knots[i];
  const double low = knot_excess(knots, false, tails).mean;
  const double high = knot_excess(knots, true, tails).mean;
  return (sum + (low + high)) / static_cast<double>(knots.size() + 1);
}

/// Variance: the integral of the squared distance from the mean. That of a straight piece from a to
/// b is (aa + ab + bb) / 3, that of a tail from d with excess e dd + 2 d E[e] + E[ee].
[[nodiscard]] TOTO_HOST_DEVICE inline double knot_variance(Knots knots,
                                                           KnotTails tails = KnotTails::clamped) {
  const double mean = knot_mean(knots, tails);
  const double low = knots[0] - mean;
  const double high = knots[knots.size() - 1] - mean;
  const KnotExcess below = knot_excess(knots, false, tails);
  const KnotExcess above = knot_excess(knots, true, tails);
  double sum = low * low + high * high;
  sum += 2 * low * below.mean + below.square + 2 * high * above.mean + above.square;
  double pieces = 0;  // three times each
  for (std::size_t i = 0; i + 1 < knots.size(); ++i) {
    const double a = knots[i] - mean;
    const double b = knots[i + 1] - mean;
    pieces += a * a + a * b + b * b;
  }
  return (sum + pieces / 3) / static_cast<double>(knots.size() + 1);
}

}  // namespace toto
