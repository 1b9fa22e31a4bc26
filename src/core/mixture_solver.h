// SPDX-License-Identifier: Apache-2.0
// Finding quantiles of a mixture of Student-T's, whoever evaluates it: one thread of a CPU or a
// warp of a GPU. See statistics/mixture_quantile.cpp for the idea.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/philox.h"

namespace toto::mixture {

/// The most that a variance is of the one that df = 3 would make it, for its root to say anything
/// about the spread.
inline constexpr double kMaxTail = 10;

/// The mixture at one x.
struct Point {
  double x = 0;
  double lower = 0;   // P(X <= x)
  double upper = 0;   // P(X > x), summed on its own
  double f[4] = {};   // the density and its first three derivatives
  double logit = 0;   // log(lower / upper)
  double radius = 0;  // no component's centre or scale is nearer: how far a Taylor series is good
};

struct Bracket {
  double low = 0;
  double high = 0;
  [[nodiscard]] TOTO_HOST_DEVICE bool holds(double x) const { return low < x && x < high; }
};

/// From a point to where the logit takes a given value.
struct Step {
  double newton = 0;  // the first term of the series
  double length = 0;  // four terms
  double ratio = 0;   // of successive terms, about
};

TOTO_HOST_DEVICE inline double larger(double a, double b) { return a < b ? b : a; }
TOTO_HOST_DEVICE inline double smaller(double a, double b) { return b < a ? b : a; }

/// Derivatives 1 to 4 of log(tail), where tail' = f, from differentiating tail * (log tail)' = f.
TOTO_HOST_DEVICE inline void log_derivatives(double tail, const double (&f)[4], double (&d)[4]) {
  const double r = 1 / tail;
  d[0] = f[0] * r;
  d[1] = (f[1] - f[0] * d[0]) * r;
  d[2] = (f[2] - 2 * f[0] * d[1] - f[1] * d[0]) * r;
  d[3] = (f[3] - 3 * f[0] * d[2] - 3 * f[1] * d[1] - f[2] * d[0]) * r;
}

TOTO_HOST_DEVICE inline Step step_to(const Point& at, double logit) {
  const double minus_f[4] = {-at.f[0], -at.f[1], -at.f[2], -at.f[3]};
  double lower[4];
  double upper[4];
  log_derivatives(at.lower, at.f, lower);
  log_derivatives(at.upper, minus_f, upper);
  const double l1 = lower[0] - upper[0];
  const double a2 = (lower[1] - upper[1]) / (2 * l1);
  const double a3 = (lower[2] - upper[2]) / (6 * l1);
  const double a4 = (lower[3] - upper[3]) / (24 * l1);
  const double y = (logit - at.logit) / l1;
  const double c2 = -a2 * y;
  const double c3 = (2 * a2 * a2 - a3) * y * y;
  const double c4 = (5 * a2 * (a3 - a2 * a2) - a4) * y * y * y;
  return {y, y * (1 + c2 + c3 + c4),
          larger(larger(std::fabs(c2), std::sqrt(std::fabs(c3))), std::cbrt(std::fabs(c4)))};
}

/// A double about halfway between two others in the list of all doubles: halving with it ends
/// within 64 steps whatever the magnitudes.
TOTO_HOST_DEVICE inline double middle_of_doubles(double a, double b) {
  constexpr std::int64_t kLowest = INT64_MIN;
  std::int64_t i = 0;
  std::int64_t j = 0;
  std::memcpy(&i, &a, sizeof i);
  std::memcpy(&j, &b, sizeof j);
  if (i < 0) i = kLowest - i;
  if (j < 0) j = kLowest - j;
  std::int64_t middle = (i & j) + ((i ^ j) >> 1);
  if (middle < 0) middle = kLowest - middle;
  double x = 0;
  std::memcpy(&x, &middle, sizeof x);
  return x;
}

/// Student's t quantile to about one percent: the normal's (Abramowitz and Stegun 26.2.23)
/// stretched by inverting Wallace's approximation ("Bounds on normal approximations to Student's
/// and the chi-square distributions", 1959).
TOTO_HOST_DEVICE inline double rough_student_t_quantile(double df, double q) {
  const double w = std::sqrt(-2 * std::log(smaller(q, 1 - q)));
  const double normal = w - (2.515517 + w * (0.802853 + w * 0.010328)) /
                                (1 + w * (1.432788 + w * (0.189269 + w * 0.001308)));
  const double y = normal * (8 * df + 3) / (8 * df + 1);
  const double t = std::sqrt(df * std::expm1(y * y / df));
  return q < 0.5 ? -t : t;
}

/// The distance from a component's centre, in its scales, to where the bracket of level q ends:
/// where it would lie with df = 2, whose tails are the heaviest.
TOTO_HOST_DEVICE inline double reach_of_bracket(double q) {
  constexpr double kMargin = 1 + 1e-9;  // for the rounding of what is compared with it
  return (2 * q - 1) / std::sqrt(2 * q * (1 - q)) * kMargin;
}

/// The logit of level q, for a solver that works on such points.
TOTO_HOST_DEVICE inline double logit_of(const Point& /*unused*/, double q) {
  return std::log(q) - std::log1p(-q);
}

/// The x at level q, 0 < q < 1. `b` holds it; `nodes` are points spread over the bulk, or one where
/// it is thought to be; evaluate(x) gives an At and guess() a place to start from where the series
/// says nothing. At is Point, or what else has x, logit, radius and a step_to().
template <typename At, typename Evaluate, typename Guess>
TOTO_HOST_DEVICE double solve(double q, Bracket b, const At* nodes, int node_count,
                              const Evaluate& evaluate, const Guess& guess) {
  // At worst every second evaluation halves, and every second halving is one in the list of
  // doubles: 64 of those leave neighbours.
  constexpr int kMaxEvaluations = 4 * 64 + 4;
  constexpr double kEps = 0x1p-52;
  const double target = logit_of(nodes[0], q);
  const double rounding = 4 * kEps * larger(1.0, std::fabs(target));
  int nearest = 0;
  for (int i = 0; i < node_count; ++i) {
    const At& node = nodes[i];
    if (node.logit < target) b.low = larger(b.low, node.x);
    if (node.logit > target) b.high = smaller(b.high, node.x);
    if (std::fabs(node.logit - target) < std::fabs(nodes[nearest].logit - target)) nearest = i;
  }
  At at = nodes[nearest];
  double last_miss = HUGE_VAL;
  bool guessed = false;
  bool halve_doubles = false;
  for (int n = 0; n < kMaxEvaluations; ++n) {
    const double miss = std::fabs(at.logit - target);
    if (miss <= rounding) return at.x;
    const Step step = step_to(at, target);
    double x = at.x + step.length;
    // What the four terms leave out is about miss * reach^4, unless the step passes a component.
    const double reach = larger(larger(step.ratio, miss), std::fabs(step.length) / at.radius);
    if (miss * (reach * reach) * (reach * reach) < 1e-13 && b.low <= x && x <= b.high) return x;

    bool good = step.ratio < 1 && b.holds(x);
    if (!good) {
      x = at.x + step.newton;
      good = b.holds(x);
    }
    good = good && miss < 0.5 * last_miss;
    last_miss = miss;
    if (!guessed && (!good || step.ratio > 0.7)) {
      guessed = true;
      x = guess(q);
      good = b.holds(x);
      last_miss = HUGE_VAL;
    }
    if (!good) {
      x = halve_doubles ? middle_of_doubles(b.low, b.high) : 0.5 * b.low + 0.5 * b.high;
      halve_doubles = !halve_doubles;
      last_miss = HUGE_VAL;
      if (!b.holds(x)) break;  // neighbouring doubles
    }
    at = evaluate(x);
    (at.logit < target ? b.low : b.high) = x;
  }
  return b.high;
}

}  // namespace toto::mixture
