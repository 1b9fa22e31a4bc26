// SPDX-License-Identifier: Apache-2.0
// One draw from a mixture of Student-T's out of one Philox block: nothing is rejected and nothing
// is consumed, so a draw is a function of its address and its parameters alone.
//
//   word 0         component, by inversion of the cumulative probabilities
//   words 1 and 3  U1, an odd multiple of 2^-53, for the radius
//   word 2         U2, an odd multiple of 2^-33, for the angle
//
//   T = sqrt(df * expm1(-2 ln(U1) / df)) * cos(2 pi U2)
//
// (R. W. Bailey, "Polar generation of random variates with the t-distribution", Math. Comp. 62,
// 1994, the trigonometric form; expm1 keeps large df exact, down to the Box-Muller formula in the
// limit.)
#pragma once

#include <cmath>
#include <cstdint>

#include "core/philox.h"

namespace toto {

/// Uniforms strictly inside (0, 1), both exact in double: (n + 1/2) / 2^bits.
TOTO_HOST_DEVICE inline double uniform32(std::uint32_t word) { return (word + 0.5) * 0x1p-32; }
TOTO_HOST_DEVICE inline double uniform52(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t n = std::uint64_t{high} << 20 | low >> 12;
  return (static_cast<double>(n) + 0.5) * 0x1p-52;
}

/// What a draw inverts where a distribution is known by its quantiles.
TOTO_HOST_DEVICE inline double quantile_level(const PhiloxWords& words) {
  return uniform52(words.x[1], words.x[3]);
}

/// The sum that pick_component() inverts, in the order it adds. The same for every draw from one
/// set of parameters. Probabilities are `stride` elements apart.
template <typename T>
TOTO_HOST_DEVICE double total_probability(const T* probability, std::int64_t stride, int count) {
  double total = 0;
  for (int k = 0; k < count; ++k) total += static_cast<double>(probability[k * stride]);
  return total;
}

/// The component whose share of the cumulative sum holds word 0. Never one of probability 0, and
/// never past the end however the probabilities were rounded: the target lies below the sum
/// actually formed. -1 if the total is 0 or NaN.
template <typename T>
TOTO_HOST_DEVICE int pick_component(const T* probability, std::int64_t stride, int count,
                                    double total, const PhiloxWords& words) {
  const double target = uniform32(words.x[0]) * total;
  double cumulative = 0;
  for (int k = 0; k < count; ++k) {
    cumulative += static_cast<double>(probability[k * stride]);
    if (cumulative > target) return k;
  }
  return -1;
}

/// A standard Student-T variate. df > 0.25; above 1e30 it is drawn as 1e30.
TOTO_HOST_DEVICE inline double draw_student_t(double df, const PhiloxWords& words) {
  constexpr double kTwoPi = 6.28318530717958647692;
  constexpr double kMaxDf = 1e30;  // infinity * 0 would be NaN
  const double nu = df > kMaxDf ? kMaxDf : df;
  const double radius2 = nu * std::expm1(-2.0 * std::log(uniform52(words.x[1], words.x[3])) / nu);
  return std::sqrt(radius2) * std::cos(kTwoPi * uniform32(words.x[2]));
}

/// One draw from the mixture. The four parameters of component k are at index k * stride of their
/// arrays; probabilities need not sum to 1. The result may be infinite for extreme parameters and
/// is NaN if the probabilities sum to 0 or NaN: the caller replaces both (spec A10).
template <typename T>
TOTO_HOST_DEVICE double draw_mixture(const T* df, const T* loc, const T* scale,
                                     const T* probability, std::int64_t stride, int count,
                                     double total, const PhiloxWords& words) {
  const int k = pick_component(probability, stride, count, total, words);
  if (k < 0) return NAN;
  const double t = draw_student_t(static_cast<double>(df[k * stride]), words);
  return static_cast<double>(loc[k * stride]) + static_cast<double>(scale[k * stride]) * t;
}

template <typename T>
TOTO_HOST_DEVICE double draw_mixture(const T* df, const T* loc, const T* scale,
                                     const T* probability, std::int64_t stride, int count,
                                     const PhiloxWords& words) {
  return draw_mixture(df, loc, scale, probability, stride, count,
                      total_probability(probability, stride, count), words);
}

}  // namespace toto
