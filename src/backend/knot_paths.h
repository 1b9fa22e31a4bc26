// SPDX-License-Identifier: Apache-2.0
// Coherent paths of a distribution that is known by its quantiles, in double, parts of it also in
// float32 for a device: the scores of observations, how neighbouring steps go together, and the
// normals that draws are made of (docs/statistics.md, "Coherent paths of Toto 2.0").
#pragma once

#include <cmath>
#include <cstdint>

#include "backend/ops2.h"
#include "backend/score_pairs.h"
#include "core/draw.h"
#include "statistics/knots.h"
#include "statistics/normal.h"

namespace toto::paths {

/// The normal score of x in the distribution with these knots and exponential tails: within 5 of 0,
/// NaN where there is none. An observation that equals several knots, or lies beyond a tail that is
/// no wider than a point, counts as the middle of that mass. (Of float32 on a device:
/// cuda/ops2/knot_paths.cuh.)
inline double knot_score(Knots knots, double x) {
  const std::size_t n = knots.size();
  const auto parts = static_cast<double>(n + 1);
  if (std::isnan(x) || std::isnan(knots[n - 1])) return NAN;  // NaN come last
  std::size_t below = 0, through = 0;                         // knots < x, and those <= x
  while (below < n && knots[below] < x) ++below;
  through = below;
  while (through < n && knots[through] <= x) ++through;
  const auto beyond = [parts](double outer, double inner, double at) {
    const double step = knot_width(outer, inner);
    return (step == 0 ? 0.5 : exp2(-(at - outer) / step)) / parts;
  };
  double lower = 0, upper = 0;
  if (through > below) {
    lower = static_cast<double>(below + through + 1) / (2 * parts);
    upper = 1 - lower;
  } else if (below == 0) {
    lower = beyond(knots[0], knots[1], x);
    upper = 1 - lower;
  } else if (below == n) {
    upper = beyond(knots[n - 1], knots[n - 2], x);
    lower = 1 - upper;
  } else {
    const double left = knots[below - 1];
    const double share = (x - left) / (knots[below] - left);
    lower = (static_cast<double>(below) + share) / parts;
    upper = 1 - lower;
  }
  const double z = normal_score(lower, upper);
  return z < -kMaxScore ? -kMaxScore : z > kMaxScore ? kMaxScore : z;
}

/// The last of the multiples of 2^-40 below 1, in their order, for which test() is false: false up
/// to there, and for 0; by bisection.
template <typename Test>
TOTO_HOST_DEVICE double last_without(const Test& test) {
  double low = 0, high = 1;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (test(middle) ? high : low) = middle;
  }
  return low;
}

/// The correlation of neighbours half a patch after the first, as its last two quarters lead there:
/// where errors carry over by a factor, e' = a e + fresh, v = 1 / (1 - rho^2) is their variance and
/// goes on as v' = 1 + a^2 v. `rho` is of the neighbours of the first patch. `search` is
/// last_without(), or another way to what it finds.
template <typename Real, typename Search>
TOTO_HOST_DEVICE Real rho_afterwards(const float* rho, std::int32_t patch, const Search& search) {
  const std::int32_t quarter = patch / 4;
  if (quarter < 2) return patch > 1 ? static_cast<Real>(rho[patch - 2]) : 0;
  // The sums of 1 - rho^2 over both quarters.
  Real third = 0, fourth = 0;
#ifdef __CUDA_ARCH__
#pragma unroll 4
#endif
  for (std::int32_t i = patch - 1 - 2 * quarter; i < patch - 1 - quarter; ++i) {
    const auto r = static_cast<Real>(rho[i]);
    const auto later = static_cast<Real>(rho[i + quarter]);
    third += (1 - r) * (1 + r);
    fourth += (1 - later) * (1 + later);
  }
  const auto of = static_cast<Real>(quarter);
  const Real from = quotient(of, third), to = quotient(of, fourth);
  const auto after = [](Real v, Real squared, std::int32_t steps) {
#ifdef __CUDA_ARCH__
#pragma unroll 4
#endif
    for (std::int32_t i = 0; i < steps; ++i) v = 1 + squared * v;
    return v;
  };
  // a^2
  const Real squared = search([&](Real at) { return after(from, at, quarter) > to; });
  return root(1 - quotient(Real{1}, after(to, squared, quarter / 2 + patch / 2)));
}
inline double rho_afterwards(const float* rho, std::int32_t patch) {
  return rho_afterwards<double>(rho, patch, [](const auto& test) { return last_without(test); });
}

/// What a correlation that was found is drawn towards, and as how many pairs that counts.
template <typename Real>
struct Prior {
  Real mean, count, each;  // each: pairs behind one that was found
  TOTO_HOST_DEVICE Prior(Real all, Real weights, std::int32_t patch) {
    constexpr Real kPrior = 8;  // pairs without correlation that the mean of all counts as
    mean = quotient(all, weights + kPrior);
    // Few pairs tell a correlation near 1: its variance is (1 - rho^2)^2 over their number.
    count = kPrior * (1 - mean * mean) * (1 - mean * mean);
    each = patch > 1 ? quotient(weights, static_cast<Real>(patch - 1)) : 0;
  }
  [[nodiscard]] TOTO_HOST_DEVICE float drawn(Real found) const {
    return bounded(quotient(each * found + count * mean, each + count));
  }
  [[nodiscard]] TOTO_HOST_DEVICE static float bounded(Real r) {
    constexpr Real kMaxRho{0.999F};
    return static_cast<float>(r < 0 ? 0 : r > kMaxRho ? kMaxRho : r);
  }
};

/// rho [P] of one variate from scores [tokens][P], NaN where a value is missing: rho[s] of steps s
/// and s + 1 of the first patch, the last of all neighbours that come after.
inline void knot_correlations(const double* scores, std::int32_t tokens, std::int32_t patch,
                              float* rho) {
  double all = 0, weights = 0;
  for (std::int32_t s = 0; s + 1 < patch; ++s) {
    const Pairs<double> pairs = score_pairs(scores, tokens, patch, s);
    rho[s] = static_cast<float>(pairs.found);
    all += pairs.count * pairs.found;
    weights += pairs.count;
  }
  const Prior<double> prior(all, weights, patch);
  for (std::int32_t s = 0; s + 1 < patch; ++s) rho[s] = prior.drawn(static_cast<double>(rho[s]));
  rho[patch - 1] = Prior<double>::bounded(rho_afterwards(rho, patch));
}

/// What step `step` of a forecast is made of: z = rho z' + free e, with z' of the step before.
struct ChainStep {
  double rho, free;
};
TOTO_HOST_DEVICE inline ChainStep chain_step(const float* rho, std::int32_t patch,
                                             std::int32_t step) {
  if (step == 0) return {0, 1};
  const auto r = static_cast<double>(rho[step < patch ? step - 1 : patch - 1]);
  return {r, std::sqrt(1 - r * r)};
}

/// The standard normal of a draw's address: of the level that an independent draw has.
TOTO_HOST_DEVICE inline double knot_normal(const CallSlice& s, std::int32_t variate,
                                           std::int32_t trajectory, std::int32_t step) {
  const double level = quantile_level(draw_words(
      s.seed, {s.key, static_cast<std::uint32_t>(variate), static_cast<std::uint32_t>(trajectory),
               static_cast<std::uint32_t>(step)}));
  return normal_score(level, 1 - level);
}

/// The quantile of the level Phi(z).
TOTO_HOST_DEVICE inline double at_knot_score(Knots knots, double z, KnotTails tails) {
  const double limited = z < -kMaxNormalScore  ? -kMaxNormalScore
                         : z > kMaxNormalScore ? kMaxNormalScore
                                               : z;
  const double level = limited < 0 ? lower_normal(limited) : 1 - lower_normal(-limited);
  return knot_quantile(knots, level < 1 - 0x1p-53 ? level : 1 - 0x1p-53, tails);
}

}  // namespace toto::paths
