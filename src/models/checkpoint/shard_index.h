// SPDX-License-Identifier: Apache-2.0
// model.safetensors.index.json: which files a checkpoint in several parts consists of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace toto {

/// The files that the index names, sorted, in the folder of the index; all exist. `remedy` says how
/// to get what is missing. Throws Error: shard_not_found (66, all of them listed), read_failed
/// (74); invalid_json, duplicate_key, missing_key, invalid_value, unsafe_path (78).
std::vector<std::string> shards_of(const std::string& index, std::string_view remedy);

}  // namespace toto
