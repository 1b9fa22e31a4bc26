// SPDX-License-Identifier: Apache-2.0
// The standard normal's distribution and its inverse, for the host and a device.
#pragma once

#include <cmath>

#include "core/philox.h"

namespace toto {

inline constexpr double kMaxNormalScore = 8.3;  // 2^-53 of the mass lies beyond

/// P(Z <= z).
TOTO_HOST_DEVICE inline double lower_normal(double z) {
  constexpr double kSqrtHalf = 0.70710678118654752440;
  return 0.5 * std::erfc(-z * kSqrtHalf);
}

/// The z below which a tail of at most one half lies: Abramowitz and Stegun 26.2.23, then a step of
/// Halley on erfc.
TOTO_HOST_DEVICE inline double score_of_tail(double tail) {
  constexpr double kSqrtTwoPi = 2.50662827463100050242;
  const double w = std::sqrt(-2 * std::log(tail));
  const double z = -(w - (2.515517 + w * (0.802853 + w * 0.010328)) /
                             (1 + w * (1.432788 + w * (0.189269 + w * 0.001308))));
  const double miss = (lower_normal(z) - tail) * kSqrtTwoPi * std::exp(0.5 * z * z);
  return z - miss / (1 + 0.5 * z * miss);
}

/// The z with these probabilities on either side, of which the smaller is exact; no further out
/// than kMaxNormalScore.
TOTO_HOST_DEVICE inline double normal_score(double lower, double upper) {
  if (std::isnan(lower) || std::isnan(upper)) return NAN;
  const double tail = lower < upper ? lower : upper;
  const double limit = lower < upper ? -kMaxNormalScore : kMaxNormalScore;
  if (!(tail > 0)) return limit;
  const double found = score_of_tail(tail < 0.5 ? tail : 0.5);
  const double z = found > 0 ? 0 : found < -kMaxNormalScore ? -kMaxNormalScore : found;
  return lower < upper ? z : -z;
}

}  // namespace toto
