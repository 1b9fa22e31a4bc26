// SPDX-License-Identifier: Apache-2.0
// A mixture as a map to and from the standard normal: what coherent paths are drawn with.
#include <algorithm>
#include <cmath>
#include <limits>

#include "statistics/mixture.h"
#include "statistics/normal.h"

namespace toto {

double Mixture::normal_score(double x) const {
  constexpr double kMax = std::numeric_limits<double>::max();
  if (!valid_ || std::isnan(x)) return std::numeric_limits<double>::quiet_NaN();
  const Point at = evaluate(std::clamp(x, -kMax, kMax));
  return toto::normal_score(at.lower, at.upper);
}

double Mixture::at_normal_score(double z) const {
  z = std::clamp(z, -kMaxNormalScore, kMaxNormalScore);
  const double q = z < 0 ? lower_normal(z) : 1 - lower_normal(-z);
  return quantile(std::min(q, 1 - 0x1p-53));
}

}  // namespace toto
