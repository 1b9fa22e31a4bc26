// SPDX-License-Identifier: Apache-2.0
// JSON as the commands print it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace toto::cli {

/// Two spaces for each level, and a line end. Names of files and models may be any bytes: those
/// that are not UTF-8 become U+FFFD.
inline std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace toto::cli
