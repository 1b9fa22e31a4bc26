// SPDX-License-Identifier: Apache-2.0
// Spec A10: what the head says of a step, as the parameters of its mixture.
#pragma once

#include "backend/cuda/runtime/warp.cuh"

namespace toto::cuda {

__device__ inline float softplus(float x) { return x > 20.0F ? x : log1pf(expf(x)); }

/// Degrees of freedom, or a scale, of what the head says.
__device__ inline float positive(float raw) { return fmaxf(softplus(raw), 0x1p-23F); }
__device__ inline float degrees_of_freedom(float raw) { return 2.0F + positive(raw); }

/// The probability of a component, of up to 32, one for each lane of a warp; -INFINITY where there
/// is none. Divided by their sum twice, as the reference does.
__device__ inline float probability(float raw, bool there) {
  const float highest = highest_of_lanes(raw);
  float p = there ? expf(raw - highest) : 0;
  // Dividing zero takes long: lanes without a component divide something else.
  const auto divided = [&](float by) {
    const float quotient = (there ? p : 1) / by;
    return there ? quotient : 0;
  };
  p = divided(sum_of_lanes(p));
  return divided(sum_of_lanes(p));
}

}  // namespace toto::cuda
