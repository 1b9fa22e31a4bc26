// SPDX-License-Identifier: Apache-2.0
// Scores of what was seen, in the model's own forecasts of it, and how those of neighbouring steps
// go together: for coherent paths of every family, on the host and on a device.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>

#include "core/philox.h"

namespace toto::paths {

inline constexpr double kMaxScore = 5;  // a surprise counts as no more than this

/// a / b and sqrt(a) of numbers of ordinary size. In float32 a device takes what is within a few
/// units of the last digit, since a lane waits for some of these one after the other.
template <std::floating_point Real>
TOTO_HOST_DEVICE inline Real quotient(Real a, Real b) {
#ifdef __CUDA_ARCH__
  if constexpr (std::same_as<Real, float>) return __fdividef(a, b);
#endif
  return a / b;
}
template <std::floating_point Real>
TOTO_HOST_DEVICE inline Real root(Real a) {
#ifdef __CUDA_ARCH__
  if constexpr (std::same_as<Real, float>) return a > 0 ? a * rsqrtf(a) : 0;
#endif
  return std::sqrt(a);
}

/// What the scores of steps s and s + 1 have in common, and in how many tokens.
template <typename Real>
struct Pairs {
  Real found = 0, count = 0;
};

/// What that is formed of.
template <typename Real>
struct PairSums {
  Real both = 0, first = 0, second = 0, count = 0;

  TOTO_HOST_DEVICE void add(Real a, Real b) {
    // Without a branch, so that a device asks for several tokens at once.
    const bool seen = !std::isnan(a) && !std::isnan(b);
    both += seen ? a * b : 0;
    first += seen ? a * a : 0;
    second += seen ? b * b : 0;
    count += seen ? 1 : 0;
  }
  [[nodiscard]] TOTO_HOST_DEVICE Pairs<Real> pairs() const {
    return {first > 0 && second > 0 ? quotient(both, root(first * second)) : 0, count};
  }
};

inline Pairs<double> score_pairs(const double* scores, std::int32_t tokens, std::int32_t patch,
                                 std::int32_t s) {
  PairSums<double> sums;
  for (std::int32_t i = 0; i < tokens; ++i) {
    const std::int64_t at = std::int64_t{i} * patch + s;
    sums.add(scores[at], scores[at + 1]);
  }
  return sums.pairs();
}

}  // namespace toto::paths
