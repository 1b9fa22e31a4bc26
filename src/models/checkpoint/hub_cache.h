// SPDX-License-Identifier: Apache-2.0
// Looking models up in the local Hugging Face cache. Nothing is ever downloaded.
#pragma once

#include <string>
#include <string_view>

namespace toto {

/// "owner/name", as the Hub writes it.
bool is_hub_id(std::string_view text);

/// The cache: `argument`, else HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, $HF_HOME/hub,
/// $XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub. The first that is set counts, whether
/// or not it exists: looking on would silently answer from another cache. Empty where none is set
/// and there is no home folder.
std::string hub_cache_folder(std::string_view argument);

/// The command that puts a model into the cache, for error messages. `argument` as above.
std::string hub_download_command(std::string_view id, std::string_view argument);

/// The folder of the snapshot that refs/main names; without that file, of the only snapshot. Throws
/// Error: model_not_found, ambiguous_snapshot (66), unsafe_path (78).
std::string hub_snapshot(std::string_view id, std::string_view argument);

}  // namespace toto
