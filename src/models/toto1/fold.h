// SPDX-License-Identifier: Apache-2.0
// Spec C3: unembedding followed by the four heads is linear after linear, so one matrix does both.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace toto {

struct FoldedHead {
  std::unique_ptr<float[]> weights;  // [P][4K][D]
  std::vector<float> bias;           // [P][4K]
};

/// unembed [P][D][D], its bias [P][D]; head [4K][D], its bias [4K]. Sums in float64, rounded once:
/// closer to the true value than the two-step form. Uses all cores: 3.6e9 products for the
/// published model.
FoldedHead fold_head(std::span<const float> unembed, std::span<const float> unembed_bias,
                     std::span<const float> head, std::span<const float> head_bias,
                     std::int64_t patch, std::int64_t width);

}  // namespace toto
