// SPDX-License-Identifier: Apache-2.0
#include "backend/path_scores.h"

#include <algorithm>

namespace toto::paths {
namespace {

constexpr double kMaxRho = 0.999;
constexpr double kPrior = 8;  // tokens that the mean of all neighbours counts as

}  // namespace

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
  const double pairs = std::max(patch - 1, 1);
  const double mean = all / (weights + kPrior);
  const double each = weights / pairs;  // tokens behind one of them
  for (std::int32_t s = 0; s + 1 < patch; ++s) {
    const double drawn = (each * rho[s] + kPrior * mean) / (each + kPrior);
    rho[s] = static_cast<float>(std::clamp(drawn, 0.0, kMaxRho));
  }
  rho[patch - 1] = 0;
}

}  // namespace toto::paths
