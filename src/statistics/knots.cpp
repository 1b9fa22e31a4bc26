// SPDX-License-Identifier: Apache-2.0
#include "statistics/knots.h"

#include <algorithm>
#include <cmath>

namespace toto {
namespace {

constexpr double kSame = 1e-7;  // of the distance between knots: 0.1F is the level 0.1

double position_of(double level, std::size_t n) { return level * static_cast<double>(n + 1) - 1; }

}  // namespace

bool within_knots(double level, std::size_t n) {
  const double at = position_of(level, n);
  return at >= -kSame && at <= static_cast<double>(n - 1) + kSame;
}

double knot_quantile(std::span<const double> knots, double level) {
  const auto last = static_cast<double>(knots.size() - 1);
  const double at = std::clamp(position_of(level, knots.size()), 0.0, last);
  const double nearest = std::round(at);
  if (std::abs(at - nearest) <= kSame) return knots[static_cast<std::size_t>(nearest)];
  const double below = std::floor(at);
  const auto i = static_cast<std::size_t>(below);
  const double share = at - below;
  return knots[i] * (1 - share) + knots[i + 1] * share;
}

double knot_mean(std::span<const double> knots) {
  // The integral of the quantile function: constants of one spacing each at the ends, trapezoids
  // between.
  double sum = (knots.front() + knots.back()) / 2;
  for (const double knot : knots) sum += knot;
  return sum / static_cast<double>(knots.size() + 1);
}

double knot_variance(std::span<const double> knots) {
  const double mean = knot_mean(knots);
  const auto from_mean = [&](std::size_t i) { return knots[i] - mean; };
  // The integral of the squared distance: that of a straight piece from a to b is (aa + ab + bb)/3.
  const double low = from_mean(0);
  const double high = from_mean(knots.size() - 1);
  double sum = low * low + high * high;
  for (std::size_t i = 0; i + 1 < knots.size(); ++i) {
    const double a = from_mean(i);
    const double b = from_mean(i + 1);
    sum += (a * a + a * b + b * b) / 3;
  }
  return sum / static_cast<double>(knots.size() + 1);
}

}  // namespace toto
