// SPDX-License-Identifier: Apache-2.0
// Correlations of neighbouring steps by a thread block, for coherent paths of every family.
#pragma once

#include <cstdint>

#include "backend/cuda/runtime/warp.cuh"
#include "backend/score_pairs.h"

namespace toto::cuda {

/// rho[s] of steps s and s + 1, s + 1 < patch, from scores [tokens][patch] that kThreads threads
/// see, the first of a block, which meet by `meet`. Prior(all, weights, patch).drawn(found) is what
/// becomes of one that was found. Eight lanes have some of the tokens each.
template <typename Prior, int kThreads, typename Real, typename Meet>
__device__ void correlate(const Real* scores, std::int32_t tokens, std::int32_t patch, float* rho,
                          const Meet& meet) {
  constexpr int kLanes = 8;
  constexpr int kPairs = kThreads / kLanes;  // at a time
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  // Sums of the lanes, added up by every warp.
  __shared__ Real all[kPairs], weights[kPairs];
  const std::int32_t first = thread / kLanes;
  Real total = 0, count = 0;
#pragma unroll 1  // less code to fetch: mostly these loops run once
  for (std::int32_t from = 0; from + 1 < patch; from += kPairs) {
    const std::int32_t at = from + first;
    const bool inside = at + 1 < patch;
    paths::PairSums<Real> sums;
#pragma unroll 2
    for (std::int32_t i = thread % kLanes; inside && i < tokens; i += kLanes) {
      const Real* const own = scores + std::int64_t{i} * patch + at;
      sums.add(own[0], own[1]);
    }
    sums.both = sum_of_lanes<kLanes>(sums.both);
    sums.first = sum_of_lanes<kLanes>(sums.first);
    sums.second = sum_of_lanes<kLanes>(sums.second);
    sums.count = sum_of_lanes<kLanes>(sums.count);
    if (!inside) continue;
    const paths::Pairs<Real> pairs = sums.pairs();
    if (thread % kLanes == 0) rho[at] = static_cast<float>(pairs.found);
    total += pairs.count * pairs.found;
    count += pairs.count;
  }
  all[first] = total;
  weights[first] = count;
  meet();
  total = count = 0;
#pragma unroll 1
  for (std::int32_t i = thread % 32; i < kPairs; i += 32) {
    total += all[i];
    count += weights[i];
  }
  const Prior prior(sum_of_lanes(total), sum_of_lanes(count), patch);
#pragma unroll 1
  for (std::int32_t at = thread; at + 1 < patch; at += kThreads) {
    rho[at] = prior.drawn(static_cast<Real>(rho[at]));
  }
}

}  // namespace toto::cuda
