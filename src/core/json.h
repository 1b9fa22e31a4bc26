// SPDX-License-Identifier: Apache-2.0
// Strict JSON for files nobody vouches for.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "toto/error.hpp"

namespace toto {

/// Arrays and objects may be nested this deep; nothing the project reads needs more than 5.
inline constexpr int kMaxJsonDepth = 64;

/// Parses one JSON document (RFC 8259) and nothing after it but white space. `status` and `where`
/// go into the errors. Throws Error: invalid_utf8, invalid_json (syntax, a number out of range,
/// deeper than kMaxJsonDepth; with the byte offset), duplicate_key.
nlohmann::json parse_json(std::string_view text, ExitStatus status, std::string_view where);

/// `text` as a JSON string in ASCII, shortened where it is long: how names out of a file are shown
/// in messages, which are one line whatever the file says.
std::string quote(std::string_view text);

/// At most about 80 characters of ASCII `text`, with an ellipsis where more was left out.
std::string shorten(std::string_view text);

}  // namespace toto
