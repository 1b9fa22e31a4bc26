// SPDX-License-Identifier: Apache-2.0
// Quantiles of a mixture of Student-T's, by Taylor steps inside a bracket.
//
// The unknown is x(l), the inverse of the logit of the cdf: for one Student-T it is smooth and
// close to straight over its whole range (x = sqrt(2) sinh(l/2) for df = 2, where log and power
// tails would need their own scale). A point where the cdf and the density's derivatives are known
// gives four terms of its Taylor series, so from a few nodes spread over the bulk a level costs one
// evaluation and a correction. Mixtures with gaps and spikes, where the series says nothing, start
// instead from the component that holds the level; whatever happens, a bracket shrinks.
//
// Nodes are chosen from the mixture alone and levels do not see each other: the answer for a level
// is the same whichever other levels are asked for.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "forecast/mixture.h"

namespace toto {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kMax = std::numeric_limits<double>::max();
constexpr double kEps = std::numeric_limits<double>::epsilon();

/// Derivatives 1 to 4 of log(tail), where tail' = f, from differentiating tail * (log tail)' = f.
void log_derivatives(double tail, const double (&f)[4], double (&d)[4]) {
  const double r = 1 / tail;
  d[0] = f[0] * r;
  d[1] = (f[1] - f[0] * d[0]) * r;
  d[2] = (f[2] - 2 * f[0] * d[1] - f[1] * d[0]) * r;
  d[3] = (f[3] - 3 * f[0] * d[2] - 3 * f[1] * d[1] - f[2] * d[0]) * r;
}

/// A double about halfway between two others in the list of all doubles: halving with it ends
/// within 64 steps whatever the magnitudes.
double middle_of_doubles(double a, double b) {
  constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
  const auto rank = [](double x) {
    const auto bits = std::bit_cast<std::int64_t>(x);
    return bits < 0 ? kLowest - bits : bits;
  };
  const std::int64_t i = rank(a);
  const std::int64_t j = rank(b);
  const std::int64_t middle = (i & j) + ((i ^ j) >> 1);
  return std::bit_cast<double>(middle < 0 ? kLowest - middle : middle);
}

/// Student's t quantile to about one percent: the normal's (Abramowitz and Stegun 26.2.23)
/// stretched by inverting Wallace's approximation ("Bounds on normal approximations to Student's
/// and the chi-square distributions", 1959).
double rough_student_t_quantile(double df, double q) {
  const double w = std::sqrt(-2 * std::log(std::min(q, 1 - q)));
  const double normal = w - (2.515517 + w * (0.802853 + w * 0.010328)) /
                                (1 + w * (1.432788 + w * (0.189269 + w * 0.001308)));
  const double y = normal * (8 * df + 3) / (8 * df + 1);
  const double t = std::sqrt(df * std::expm1(y * y / df));
  return q < 0.5 ? -t : t;
}

}  // namespace

/// From a point to where the logit takes a given value.
struct Mixture::Step {
  double newton = 0;  // the first term of the series
  double length = 0;  // four terms
  double ratio = 0;   // of successive terms, about
};

Mixture::Step Mixture::step_to(const Point& at, double logit) {
  const double minus_f[4] = {-at.f[0], -at.f[1], -at.f[2], -at.f[3]};
  double lower[4], upper[4];
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
          std::max({std::fabs(c2), std::sqrt(std::fabs(c3)), std::cbrt(std::fabs(c4))})};
}

/// Bounds of the quantile. Each component's own lies between its centre and where it would lie with
/// df = 2, whose tails are the heaviest.
Mixture::Bracket Mixture::bracket(double q) const {
  constexpr double kMargin = 1 + 1e-9;  // for the rounding of what is compared with them
  const double t = (2 * q - 1) / std::sqrt(2 * q * (1 - q)) * kMargin;
  Bracket b{kMax, -kMax};
  for (std::size_t i = 0; i < used_; ++i) {
    const Block& block = blocks_[i / kLanes];
    const double loc = block.loc[i % kLanes];
    const double far = std::clamp(loc + t / block.inverse_scale[i % kLanes], -kMax, kMax);
    b.low = std::min({b.low, loc, far});
    b.high = std::max({b.high, loc, far});
  }
  return b;
}

/// Exact where components do not overlap: the component in which the cumulative weight passes q,
/// and the place inside it.
double Mixture::guess(double q) const {
  constexpr double kEdge = 1e-6;
  double below = 0;
  std::size_t i = 0;
  const auto weight = [&] { return blocks_[i / kLanes].weight[i % kLanes]; };
  while (i + 1 < used_ && below + weight() < q) {
    below += weight();
    ++i;
  }
  const Block& b = blocks_[i / kLanes];
  const double inside = std::clamp((q - below) / weight(), kEdge, 1 - kEdge);
  return b.loc[i % kLanes] +
         rough_student_t_quantile(b.df[i % kLanes], inside) / b.inverse_scale[i % kLanes];
}

double Mixture::solve(double q, std::span<const Point> nodes) const {
  // At worst every second evaluation halves, and every second halving is one in the list of
  // doubles: 64 of those leave neighbours.
  constexpr int kMaxEvaluations = 4 * 64 + 4;
  const double target = std::log(q) - std::log1p(-q);
  const double rounding = 4 * kEps * std::max(1.0, std::fabs(target));
  Bracket b = bracket(q);
  const Point* nearest = &nodes[0];
  for (const Point& node : nodes) {
    if (node.logit < target) b.low = std::max(b.low, node.x);
    if (node.logit > target) b.high = std::min(b.high, node.x);
    if (std::fabs(node.logit - target) < std::fabs(nearest->logit - target)) nearest = &node;
  }
  Point at = *nearest;
  double last_miss = kInf;
  bool guessed = false;
  bool halve_doubles = false;
  for (int n = 0; n < kMaxEvaluations; ++n) {
    const double miss = std::fabs(at.logit - target);
    if (miss <= rounding) return at.x;
    const Step step = step_to(at, target);
    double x = at.x + step.length;
    // What the four terms leave out is about miss * reach^4, unless the step passes a component.
    const double reach = std::max({step.ratio, miss, std::fabs(step.length) / at.radius});
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
      last_miss = kInf;
    }
    if (!good) {
      x = halve_doubles ? middle_of_doubles(b.low, b.high) : 0.5 * b.low + 0.5 * b.high;
      halve_doubles = !halve_doubles;
      last_miss = kInf;
      if (!b.holds(x)) break;  // neighbouring doubles
    }
    at = evaluate(x);
    (at.logit < target ? b.low : b.high) = x;
  }
  return b.high;
}

double Mixture::quantile(double q) const {
  double out = 0;
  quantiles({&q, 1}, {&out, 1});
  return out;
}

void Mixture::quantiles(std::span<const double> levels, std::span<double> out) const {
  if (!valid_) {
    std::fill(out.begin(), out.end(), kNaN);
    return;
  }
  Point nodes[3] = {evaluate(center_)};
  std::size_t count = 1;
  for (const double logit : {-1.2, 1.2}) {
    const double x = center_ + step_to(nodes[0], logit).length;
    if (std::isfinite(x)) nodes[count++] = evaluate(x);
  }
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const double q = levels[i];
    out[i] = q > 0 && q < 1 ? solve(q, {nodes, count}) : q <= 0 ? -kInf : q >= 1 ? kInf : kNaN;
    if (i > 0 && out[i] < out[i - 1]) out[i] = out[i - 1];  // equal but for rounding
  }
}

}  // namespace toto
