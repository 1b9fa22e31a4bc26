// SPDX-License-Identifier: Apache-2.0
// The library's SAX parser does the syntax; the handler here refuses what its DOM parser lets
// through: duplicate keys (the last would win silently), any depth, and a NUL as end of text.
#include "core/json.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "core/utf8.h"

namespace toto {
namespace {

using nlohmann::json;

/// What is worth telling of the parser's "[json.exception.parse_error.101] parse error at line 1,
/// column 2: syntax error while parsing value - invalid literal; last read: '...'". The token may
/// be of any length and content.
std::string_view reason(std::string_view text) {
  if (const std::size_t at = text.find(": "); at != text.npos) text.remove_prefix(at + 2);
  text = text.substr(0, text.find("; last read"));
  if (const std::size_t at = text.find("number overflow"); at != text.npos)
    return "number overflow";
  return text;
}

/// Empties a tree from its leaves up. The depth is bounded by the parser.
void dismantle(json& value) noexcept {  // NOLINT(bugprone-exception-escape): an array or object
  if (value.is_array() || value.is_object()) {
    for (json& child : value) dismantle(child);
    value.clear();
  }
}

/// Builds the tree of a document, or of one member of its object after the other.
class StrictHandler {
 public:
  StrictHandler(ExitStatus status, std::string_view where, std::size_t max_parts,
                const TakeMember* take)
      : status_(status), where_(where), max_parts_(max_parts), take_(take) {}

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(json::number_integer_t value) { return add(value); }
  bool number_unsigned(json::number_unsigned_t value) { return add(value); }
  bool number_float(json::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) {
    count();
    return add(std::move(value));
  }
  bool binary(json::binary_t&) { return false; }

  bool start_object(std::size_t) { return open(json::object()); }
  bool start_array(std::size_t) { return open(json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    count();
    if (stack_.back()->contains(name)) {
      throw Error(status_, "duplicate_key", fmt::format("the key {} appears twice", quote(name)),
                  where_);
    }
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception& error) {
    throw Error(status_, "invalid_json",
                fmt::format("not JSON at byte {}: {}", position, reason(error.what())), where_);
  }

  json take() { return std::move(root_.root); }

 private:
  void count() {
    if (++parts_ <= max_parts_) return;
    throw Error(status_, "invalid_json",
                fmt::format("more than {} arrays, objects, members and strings{}", max_parts_,
                            take_ ? " in one member" : ""),
                where_);
  }

  json* place(json value) {
    if (stack_.empty()) {
      root_.root = std::move(value);
      return &root_.root;
    }
    json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[key_] = std::move(value));
  }

  bool add(json value) {
    if (take_ && stack_.empty()) fail_not_object();
    place(std::move(value));
    finish_member();
    return true;
  }

  bool open(json value) {
    if (take_ && stack_.empty() && !value.is_object()) fail_not_object();
    count();
    if (stack_.size() == kMaxJsonDepth) {
      throw Error(status_, "invalid_json",
                  fmt::format("nested deeper than {} levels", kMaxJsonDepth), where_);
    }
    // The pointer stays good: while a container is open, only its innermost descendant grows.
    stack_.push_back(place(std::move(value)));
    return true;
  }

  bool close() {
    stack_.pop_back();
    if (!stack_.empty()) finish_member();
    return true;
  }

  /// Hands over what lies directly in the root, and forgets it.
  void finish_member() {
    if (!take_ || stack_.size() != 1) return;
    json& root = root_.root;
    (*take_)(root.begin().key(), *root.begin());
    dismantle(root);
    parts_ = 0;
  }

  [[noreturn]] void fail_not_object() const {
    throw Error(status_, "invalid_json", "expected an object", where_);
  }

  ExitStatus status_;
  std::string_view where_;
  std::size_t max_parts_;
  const TakeMember* take_;  // nullptr: the whole tree is wanted
  std::size_t parts_ = 0;
  JsonTree root_;
  std::vector<json*> stack_;
  std::string key_;
};

void check_text(std::string_view text, ExitStatus status, std::string_view where) {
  if (const std::size_t bad = first_invalid_utf8(text); bad != std::string_view::npos) {
    throw Error(
        status, "invalid_utf8",
        fmt::format("byte {} (0x{:02X}) is not UTF-8", bad, static_cast<unsigned char>(text[bad])),
        where);
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    throw Error(status, "invalid_json", fmt::format("not JSON at byte {}: a NUL", nul), where);
  }
}

}  // namespace

JsonTree::~JsonTree() { dismantle(root); }

json parse_json(std::string_view text, ExitStatus status, std::string_view where) {
  check_text(text, status, where);
  StrictHandler handler(status, where, kMaxJsonParts, nullptr);
  json::sax_parse(text.begin(), text.end(), &handler);
  return handler.take();
}

void parse_json_members(std::string_view text, ExitStatus status, std::string_view where,
                        std::size_t max_parts, const TakeMember& take) {
  check_text(text, status, where);
  StrictHandler handler(status, where, max_parts, &take);
  json::sax_parse(text.begin(), text.end(), &handler);
}

std::string quote(std::string_view text) {
  const json value(std::string(text.substr(0, 400)));
  return shorten(value.dump(-1, ' ', true, json::error_handler_t::replace));
}

std::string shorten(std::string_view text) {
  constexpr std::size_t kLimit = 80;
  if (text.size() <= kLimit) return std::string(text);
  return fmt::format("{}...", text.substr(0, kLimit));
}

}  // namespace toto
