// SPDX-License-Identifier: Apache-2.0
// A mixture as a map to and from the standard normal: what coherent paths are drawn with.
#include <algorithm>
#include <cmath>
#include <limits>

#include "statistics/mixture.h"

namespace toto {
namespace {

constexpr double kMaxScore = 8.3;  // 2^-53 of the mass lies beyond

double lower_normal(double z) {
  constexpr double kSqrtHalf = 0.70710678118654752440;
  return 0.5 * std::erfc(-z * kSqrtHalf);
}

/// The z below which a tail of at most one half lies: Abramowitz and Stegun 26.2.23, then a step of
/// Halley on erfc.
double score_of_tail(double tail) {
  constexpr double kSqrtTwoPi = 2.50662827463100050242;
  const double w = std::sqrt(-2 * std::log(tail));
  const double z = -(w - (2.515517 + w * (0.802853 + w * 0.010328)) /
                             (1 + w * (1.432788 + w * (0.189269 + w * 0.001308))));
  const double miss = (lower_normal(z) - tail) * kSqrtTwoPi * std::exp(0.5 * z * z);
  return z - miss / (1 + 0.5 * z * miss);
}

}  // namespace

double normal_score(double lower, double upper) {
  const double tail = std::min(lower, upper);
  if (std::isnan(tail)) return std::numeric_limits<double>::quiet_NaN();
  if (!(tail > 0)) return lower < upper ? -kMaxScore : kMaxScore;
  const double z = std::clamp(score_of_tail(std::min(tail, 0.5)), -kMaxScore, 0.0);
  return lower < upper ? z : -z;
}

double Mixture::normal_score(double x) const {
  constexpr double kMax = std::numeric_limits<double>::max();
  if (!valid_ || std::isnan(x)) return std::numeric_limits<double>::quiet_NaN();
  const Point at = evaluate(std::clamp(x, -kMax, kMax));
  return toto::normal_score(at.lower, at.upper);
}

double Mixture::at_normal_score(double z) const {
  z = std::clamp(z, -kMaxScore, kMaxScore);
  const double q = z < 0 ? lower_normal(z) : 1 - lower_normal(-z);
  return quantile(std::min(q, 1 - 0x1p-53));
}

}  // namespace toto
