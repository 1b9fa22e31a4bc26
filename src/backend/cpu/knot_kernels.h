// SPDX-License-Identifier: Apache-2.0
// Draws of coherent paths of Toto 2.0, trajectories side by side in the lanes of float32 vectors.
// backend/knot_paths.h is the same in double. What is beside a trajectory changes none of its bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/isa.h"
#include "statistics/knots.h"

namespace toto::cpu {

/// One step of trajectories sample, sample + 1, ... of a variate.
struct ChainTask {
  std::uint64_t seed, key;
  std::uint32_t variate, sample, step;
  float rho, free;  // z = rho z' + free e
};

struct KnotKernels {
  /// z [n] from those of the step before; nullptr: of the first step.
  void (*chain)(const ChainTask& task, const float* before, std::size_t n, float* z);
  /// In place: the quantile of Phi(z) for each of n scores. Knot q is knots[q * stride], q < 9.
  void (*at_scores)(const float* knots, std::size_t stride, KnotTails tails, std::size_t n,
                    float* z);
};

const KnotKernels& knot_kernels(Isa isa);

}  // namespace toto::cpu
