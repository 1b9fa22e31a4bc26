// SPDX-License-Identifier: Apache-2.0
// Scores of what was seen, in the model's own forecasts of it, and how those of neighbouring steps
// go together: for coherent paths of every family, on the host and on a device.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/philox.h"

namespace toto::paths {

inline constexpr double kMaxScore = 5;  // a surprise counts as no more than this

/// What the scores of steps s and s + 1 have in common, and in how many tokens.
struct Pairs {
  double found = 0, count = 0;
};
TOTO_HOST_DEVICE inline Pairs score_pairs(const double* scores, std::int32_t tokens,
                                          std::int32_t patch, std::int32_t s) {
  double both = 0, first = 0, second = 0, count = 0;
  for (std::int32_t i = 0; i < tokens; ++i) {
    const double a = scores[std::int64_t{i} * patch + s];
    const double b = scores[std::int64_t{i} * patch + s + 1];
    // Without a branch, so that a device asks for several tokens at once.
    const bool seen = !std::isnan(a) && !std::isnan(b);
    both += seen ? a * b : 0;
    first += seen ? a * a : 0;
    second += seen ? b * b : 0;
    count += seen ? 1 : 0;
  }
  return {first > 0 && second > 0 ? both / std::sqrt(first * second) : 0, count};
}

}  // namespace toto::paths
