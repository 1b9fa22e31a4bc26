// SPDX-License-Identifier: Apache-2.0
#include "backend/path_scores.h"

#include <algorithm>

namespace toto::paths {

const Block* block_at(const Batch& batch, std::int64_t lane) {
  return std::upper_bound(batch.blocks, batch.blocks + batch.count, lane,
                          [](std::int64_t at, const Block& b) { return at < b.lane; }) -
         1;
}

void correlate(const double* scores, std::int32_t tokens, std::int32_t patch, float* rho) {
  double all = 0, weights = 0;
  for (std::int32_t s = 0; s + 1 < patch; ++s) {
    const auto [found, count] = score_pairs(scores, tokens, patch, s);
    rho[s] = static_cast<float>(found);
    all += count * found;
    weights += count;
  }
  const Neighbours towards(all, weights, patch);
  for (std::int32_t s = 0; s + 1 < patch; ++s) rho[s] = towards.drawn(static_cast<double>(rho[s]));
  rho[patch - 1] = 0;
}

}  // namespace toto::paths
