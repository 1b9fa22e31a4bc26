// SPDX-License-Identifier: Apache-2.0
// The families of models: which one a config.json describes, and what each needs of a checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/checkpoint/config.h"
#include "models/checkpoint/synthetic.h"
#include "models/checkpoint/weights.h"
#include "models/toto2/config.h"
#include "toto/model.hpp"

namespace toto {

using ModelConfig = std::variant<Toto1Config, Toto2Config>;

/// Parses config.json of either family. Toto 2.0 names its width `d_model`; every other text is
/// taken for a Toto 1.0, whose errors then say what it lacks. Errors and warnings as for
/// parse_toto1_config() and parse_toto2_config().
ModelConfig parse_model_config(std::string_view text, std::string_view where, bool strict,
                               std::vector<std::string>& warnings);

/// The configuration, which must be of Toto 1.0; throws Error unsupported_config (78).
const Toto1Config& toto1_config(const ModelConfig& config, std::string_view where);

TensorList tensor_list(const ModelConfig& config);
std::vector<SyntheticTensor> synthetic_tensors(const ModelConfig& config);
std::string to_json(const ModelConfig& config);

/// What can be said without knowing where the weights came from: `name`, `folder` and the
/// configuration's warnings are left to the caller.
ModelInfo describe_model(const ModelConfig& config, const WeightTable& weights);

/// The configuration of a published architecture. Throws Error: unknown_preset (2), with the list.
ModelConfig find_preset(std::string_view preset);

}  // namespace toto
