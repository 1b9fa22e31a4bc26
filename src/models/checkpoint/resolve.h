// SPDX-License-Identifier: Apache-2.0
// From what a user calls a model to the files it lies in.
#pragma once

#include <string>
#include <vector>

#include "toto/model.hpp"

namespace toto {

struct ResolvedModel {
  std::string name;                  // what the user asked for
  std::string folder;                // where the files are
  std::string config;                // path of config.json
  std::vector<std::string> weights;  // model.safetensors, or the shards its index names
};

/// In this order: `query.model`, TOTO_MODEL_ID, the model that ships with the project. A name is a
/// folder or a .safetensors file where one of that name exists, else one of kShippedModels, else a
/// Hub id looked up in the cache; there is no other fallback. Every file of the result exists.
/// Throws Error: model_not_chosen (2); model_not_found, ambiguous_snapshot, model_incomplete,
/// shard_not_found (66); and for a malformed index invalid_json, duplicate_key, missing_key,
/// invalid_value, unsafe_path (78).
ResolvedModel resolve_model(const ModelQuery& query);

}  // namespace toto
