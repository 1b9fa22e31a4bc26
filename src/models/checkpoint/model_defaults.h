// SPDX-License-Identifier: Apache-2.0
// generation_config.json: how a model is meant to be forecast with, where options leave it open.
#pragma once

#include <string>
#include <string_view>

#include "toto/model.hpp"

namespace toto {

/// The keys "paths" and "tails", each of which may be absent; others are of other programs, and
/// ignored. Throws Error (78): invalid_json, invalid_value. `where` names the text in messages.
ModelDefaults parse_model_defaults(std::string_view text, std::string_view where);

/// Of the file in this folder; what is built in where there is none. Throws Error as above, and
/// what read_text_file() does: file_not_found (66, a link whose target is gone), read_failed (74),
/// file_too_large (78).
ModelDefaults read_model_defaults(const std::string& folder);

}  // namespace toto
