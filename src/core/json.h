// SPDX-License-Identifier: Apache-2.0
// Strict JSON for files nobody vouches for.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "toto/error.hpp"

namespace toto {

/// Arrays and objects may be nested this deep; nothing the project reads needs more than 5.
inline constexpr int kMaxJsonDepth = 64;

/// Arrays, objects, members and strings of one document. Each takes some 100 bytes of memory for as
/// few as 3 bytes of text, so their number bounds what a file can cost.
inline constexpr std::size_t kMaxJsonParts = std::size_t{1} << 23;

/// Owns a tree, and takes it down without allocating. The destructor of nlohmann::json allocates
/// for every array and object that is not empty, and ends the process where memory has run out.
struct JsonTree {
  nlohmann::json root;
  ~JsonTree();
};

/// Parses one JSON document (RFC 8259) and nothing after it but white space. `status` and `where`
/// go into the errors. Throws Error: invalid_utf8, invalid_json (syntax, a number out of range,
/// deeper than kMaxJsonDepth, more than kMaxJsonParts; with the byte offset), duplicate_key. A
/// large tree goes into a JsonTree.
nlohmann::json parse_json(std::string_view text, ExitStatus status, std::string_view where);

using TakeMember = std::function<void(const std::string& name, const nlohmann::json& value)>;

/// Parses a document that is one object and hands over its members one by one, in the order of the
/// text: no more than one of them is in memory, and it has at most `max_parts` parts. Errors as
/// above, but that two members of one name are not told. Other documents: invalid_json.
void parse_json_members(std::string_view text, ExitStatus status, std::string_view where,
                        std::size_t max_parts, const TakeMember& take);

/// `text` as a JSON string in ASCII, shortened where it is long: how names out of a file are shown
/// in messages, which are one line whatever the file says.
std::string quote(std::string_view text);

/// At most about 80 characters of ASCII `text`, with an ellipsis where more was left out.
std::string shorten(std::string_view text);

}  // namespace toto
