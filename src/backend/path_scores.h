// SPDX-License-Identifier: Apache-2.0
// What every backend that draws coherent paths does alike, in double, on the host and on a device:
// the normals of the draws, and the correlations of neighbouring steps (docs/statistics.md,
// "Coherent paths").
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "backend/batch.h"
#include "backend/score_pairs.h"
#include "core/draw.h"
#include "core/philox.h"

namespace toto::paths {

inline constexpr std::int32_t kTokens = 64;  // the last so many forecasts are looked at

/// The standard normal of a draw's address (Box and Muller).
TOTO_HOST_DEVICE inline double normal_at(const Block& b, std::int32_t variate, std::int32_t sample,
                                         std::int32_t step) {
  const PhiloxWords words =
      draw_words(b.seed, {b.key, static_cast<std::uint32_t>(variate),
                          static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(step)});
  constexpr double kTwoPi = 6.28318530717958647692;
  return std::sqrt(-2 * std::log(uniform52(words.x[1], words.x[3]))) *
         std::cos(kTwoPi * uniform32(words.x[2]));
}

/// A10: values that are not finite or of extreme size become 0.
template <typename T>
TOTO_HOST_DEVICE T tame(T y) {
  constexpr double kExtreme = static_cast<double>(std::numeric_limits<float>::max()) / 2;
  return std::isfinite(y) && std::abs(static_cast<double>(y)) < kExtreme ? y : T{0};
}

/// Which forecasts of a context are looked at: `used`, from token `first` on.
struct Looked {
  std::int32_t used, first;
};
TOTO_HOST_DEVICE inline Looked looked_at(const Block& b) {
  const std::int32_t forecasts = b.tokens - b.labels - 1;
  const std::int32_t used = forecasts < 0 ? 0 : forecasts < kTokens ? forecasts : kTokens;
  return {used, b.tokens - 1 - used};
}

/// What a correlation that was found is drawn towards: the mean of all, and that towards 0.
struct Neighbours {
  double mean, each;  // each: tokens behind one that was found
  TOTO_HOST_DEVICE Neighbours(double all, double weights, std::int32_t patch)
      : mean(all / (weights + kPrior)), each(weights / (patch > 1 ? patch - 1 : 1)) {}
  [[nodiscard]] TOTO_HOST_DEVICE float drawn(double found) const {
    constexpr double kMaxRho = 0.999;
    const double r = (each * found + kPrior * mean) / (each + kPrior);
    return static_cast<float>(r < 0 ? 0 : r > kMaxRho ? kMaxRho : r);
  }

 private:
  static constexpr double kPrior = 8;  // tokens that the mean of all neighbours counts as
};

/// rho [P] of one variate: correlations of neighbours over the tokens, each drawn towards the mean
/// of all, and that towards 0. scores [tokens][P], NaN where a value is missing.
void correlate(const double* scores, std::int32_t tokens, std::int32_t patch, float* rho);

/// The first block whose lanes end after `lane`.
const Block* block_at(const Batch& batch, std::int64_t lane);

}  // namespace toto::paths
