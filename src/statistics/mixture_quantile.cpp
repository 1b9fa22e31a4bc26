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
#include <cmath>
#include <limits>

#include "statistics/mixture.h"

namespace toto {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kMax = std::numeric_limits<double>::max();

}  // namespace

/// Bounds of the quantile. Each component's own lies between its centre and where it would lie with
/// df = 2, whose tails are the heaviest.
mixture::Bracket Mixture::bracket(double q) const {
  const double t = mixture::reach_of_bracket(q);
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
         mixture::rough_student_t_quantile(b.df[i % kLanes], inside) / b.inverse_scale[i % kLanes];
}

double Mixture::solve(double q, std::span<const Point> nodes) const {
  return mixture::solve(
      q, bracket(q), nodes.data(), static_cast<int>(nodes.size()),
      [this](double x) { return evaluate(x); }, [this](double level) { return guess(level); });
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
    const double x = center_ + mixture::step_to(nodes[0], logit).length;
    if (std::isfinite(x)) nodes[count++] = evaluate(x);
  }
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const double q = levels[i];
    out[i] = q > 0 && q < 1 ? solve(q, {nodes, count}) : q <= 0 ? -kInf : q >= 1 ? kInf : kNaN;
    if (i > 0 && out[i] < out[i - 1]) out[i] = out[i - 1];  // equal but for rounding
  }
}

}  // namespace toto
