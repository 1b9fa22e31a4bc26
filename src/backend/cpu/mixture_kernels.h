// SPDX-License-Identifier: Apache-2.0
// Mixtures of Student-T's side by side, one in each lane of a vector, in float32: what coherent
// paths are drawn with. statistics/mixture.h is the same in double.
//
// The tail is that of core/student_t.h with v = df log(1 + t^2/df):
//     P(T > t) = exp(-v/2) pdf(0)/sqrt(df) (1 + e^2) F(e^2),  1/e = sqrt(1 + r) + sqrt(r),  r =
//     t^2/df
// and for df >= 10 near the centre exp(-v/2) (M(sqrt(v)) + pdf(0)/df sqrt(v) R(v/df)), where M is
// the normal's tail over its density. float32 needs fewer terms.
#pragma once

#include <cstddef>

#include "backend/cpu/isa.h"

namespace toto::cpu {

inline constexpr std::size_t kMaxMixtures = 16;  // lanes of the widest vector

struct MixtureKernels {
  std::size_t lanes;  // mixtures in a group
  /// Floats that a group of so many components needs, 64-byte aligned.
  std::size_t (*room)(std::size_t components);
  /// Takes n <= lanes mixtures, the first at params [4][K] and each `stride` floats after the one
  /// before. Returns how many components the fullest of them has.
  std::size_t (*take)(const float* params, std::size_t stride, std::size_t n,
                      std::size_t components, float* room);
  /// x with cdf(x) = Phi(z), of every lane: the logit within 10^-6 (1 + z^2), or the neighbouring
  /// float. NaN for parameters that are not valid.
  void (*at_scores)(const float* room, std::size_t used, const float* z, float* x);
  /// P(X <= x) and P(X > x), of every lane; x within the range of float32.
  void (*tails)(const float* room, std::size_t used, const float* x, float* lower, float* upper);
};

const MixtureKernels& mixture_kernels(Isa isa);

}  // namespace toto::cpu
