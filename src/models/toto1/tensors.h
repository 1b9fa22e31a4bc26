// SPDX-License-Identifier: Apache-2.0
// Which tensors a Toto 1.0 model has (spec A2), and how large synthetic ones are.
#pragma once

#include <string_view>

#include "models/checkpoint/weights.h"
#include "models/toto1/config.h"

namespace toto {

inline constexpr std::string_view kTargetLabel = "model.target_variate_label";
inline constexpr std::string_view kExogenousLabel = "model.exogenous_variate_label";

/// All tensors of `config` in state order (patch_embed, layers, unembed, df, loc_proj, scale_proj,
/// mixture_weights), with the names of an unfused file as alternatives. The labels, [D] each, which
/// only some checkpoints have, are `together`.
TensorList tensor_list(const Toto1Config& config);

}  // namespace toto
