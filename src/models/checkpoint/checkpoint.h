// SPDX-License-Identifier: Apache-2.0
// Opening a checkpoint: files found, configuration read, tensors checked against it. No weight is
// read yet.
#pragma once

#include "models/checkpoint/resolve.h"
#include "models/checkpoint/weights.h"
#include "models/registry.h"
#include "toto/model.hpp"

namespace toto {

struct Checkpoint {
  ConfigurationPtr config;
  WeightTable weights;
  ModelInfo info;
};

/// Throws what resolve_model, parse_model_config, read_model_defaults, open_safetensors and
/// WeightTable throw.
Checkpoint open_checkpoint(const ModelQuery& query);

}  // namespace toto
