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

double Mixture::normal_score(double x) const {
  constexpr double kMax = std::numeric_limits<double>::max();
  if (!valid_ || std::isnan(x)) return std::numeric_limits<double>::quiet_NaN();
  const Point at = evaluate(std::clamp(x, -kMax, kMax));
  const double tail = std::min(at.lower, at.upper);
  if (!(tail > 0)) return at.lower < at.upper ? -kMaxScore : kMaxScore;
  const double z = std::clamp(score_of_tail(std::min(tail, 0.5)), -kMaxScore, 0.0);
  return at.lower < at.upper ? z : -z;
}

double Mixture::at_normal_score(double z, const Near* near) const {
  constexpr int kQuickSteps = 6;
  constexpr double kGood = 1e-5;  // of the logit
  if (!valid_) return std::numeric_limits<double>::quiet_NaN();
  z = std::clamp(z, -kMaxScore, kMaxScore);
  const double lower = lower_normal(z), upper = lower_normal(-z);
  const double target = std::log(lower / upper);
  const double spread = std::sqrt(tame_variance_);
  double x =
      center_ + (near == nullptr ? spread * z : near->x - near->center + spread * (z - near->z));
  if (!std::isfinite(x)) x = center_;
  double last = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kQuickSteps; ++i) {
    const Point at = evaluate(x);
    const double miss = std::fabs(at.logit - target);
    if (!(miss < last)) break;
    last = miss;
    const mixture::Step step = mixture::step_to(at, target);
    // As in mixture::solve(): what the four terms leave out.
    const double reach = std::max({step.ratio, miss, std::fabs(step.length) / at.radius});
    const double left = miss * (reach * reach) * (reach * reach);
    const double next = x + (step.ratio < 1 ? step.length : step.newton);
    if (!std::isfinite(next)) break;
    x = next;
    if (left < kGood) return x;
  }
  const double q = z < 0 ? lower : 1 - upper;
  return quantile(std::min(q, 1 - 0x1p-53));
}

}  // namespace toto
