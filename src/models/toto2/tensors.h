// SPDX-License-Identifier: Apache-2.0
// Which tensors a Toto 2.0 model has (spec B2), and how large synthetic ones are.
#pragma once

#include <cstdint>

#include "models/checkpoint/weights.h"
#include "models/toto2/config.h"

namespace toto {

/// All tensors of `config` in state order: patch_proj, layers, out_norm, output_head. Strict: the
/// official loader refuses missing tensors and others than these. As hash weights
/// (docs/verification.md) the taus have the values that the configuration gives them (tau()).
TensorList tensor_list(const Toto2Config& config);

/// Spec B3: the multiplier of residual branch `branch` (2*layer: attention, 2*layer + 1:
/// feed-forward) that training stores in float32.
double tau(const Toto2Config& config, std::int32_t branch);

}  // namespace toto
