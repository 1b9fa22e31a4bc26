// SPDX-License-Identifier: Apache-2.0
// Correlations of neighbouring steps by a thread block, for coherent paths of every family.
#pragma once

#include <cstdint>

#include "backend/cuda/runtime/warp.cuh"
#include "backend/score_pairs.h"

namespace toto::cuda {

/// rho[s] of steps s and s + 1, s + 1 < patch, from scores [tokens][patch] that this block can see.
/// Prior(all, weights, patch).drawn(found) is what becomes of one that was found.
template <typename Prior, int kThreads>
__device__ void correlate(const double* scores, std::int32_t tokens, std::int32_t patch,
                          float* rho) {
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  // Sums of the threads, added up by every warp.
  __shared__ double all[kThreads], weights[kThreads];
  all[thread] = weights[thread] = 0;
  for (std::int32_t at = thread; at + 1 < patch; at += kThreads) {
    const paths::Pairs pairs = paths::score_pairs(scores, tokens, patch, at);
    rho[at] = static_cast<float>(pairs.found);
    all[thread] += pairs.count * pairs.found;
    weights[thread] += pairs.count;
  }
  __syncthreads();
  double total = 0, count = 0;
  const std::int32_t with_some = patch - 1 < kThreads ? patch - 1 : kThreads;
  for (std::int32_t i = thread % 32; i < with_some; i += 32) {
    total += all[i];
    count += weights[i];
  }
  const Prior prior(sum_of_lanes(total), sum_of_lanes(count), patch);
  for (std::int32_t at = thread; at + 1 < patch; at += kThreads) {
    rho[at] = prior.drawn(static_cast<double>(rho[at]));
  }
}

}  // namespace toto::cuda
