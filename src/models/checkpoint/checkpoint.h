// SPDX-License-Identifier: Apache-2.0
// Opening a checkpoint: files found, configuration read, tensors checked against it. No weight is
// read yet.
#pragma once

#include "models/checkpoint/config.h"
#include "models/checkpoint/resolve.h"
#include "models/checkpoint/weights.h"
#include "toto/model.hpp"

namespace toto {

struct Checkpoint {
  Toto1Config config;
  WeightTable weights;
  ModelInfo info;
};

/// Throws what resolve_model, parse_toto1_config, open_safetensors and WeightTable throw.
Checkpoint open_checkpoint(const ModelQuery& query);

/// What can be said without knowing where the weights came from: `name`, `folder` and the
/// configuration's warnings are left to the caller.
ModelInfo describe_model(const Toto1Config& config, const WeightTable& weights);

}  // namespace toto
