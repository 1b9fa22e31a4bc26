// SPDX-License-Identifier: Apache-2.0
#include "server/json_text.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

namespace toto::server {
namespace {

template <typename T>
void append_number(std::string& text, T value) {
  if (!std::isfinite(value)) {
    text += "null";
    return;
  }
  fmt::format_to(std::back_inserter(text), "{}", value);
}

bool plain(std::string_view text) {
  for (const char c : text) {
    if (c < ' ' || c > '~' || c == '"' || c == '\\') return false;
  }
  return true;
}

}  // namespace

void JsonText::separate() {
  if (!first_ && !after_key_) text_ += ',';
  first_ = false;
  after_key_ = false;
}

JsonText& JsonText::open(char bracket) {
  separate();
  text_ += bracket;
  first_ = true;
  return *this;
}

JsonText& JsonText::close(char bracket) {
  text_ += bracket;
  first_ = false;
  return *this;
}

JsonText& JsonText::key(std::string_view name) {
  string(name);
  text_ += ':';
  after_key_ = true;
  return *this;
}

JsonText& JsonText::string(std::string_view text) {
  separate();
  if (plain(text)) {
    text_.append(1, '"').append(text).append(1, '"');
  } else {
    using nlohmann::json;
    text_ += json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return *this;
}

JsonText& JsonText::integer(std::int64_t value) { return raw(fmt::to_string(value)); }
JsonText& JsonText::whole(std::uint64_t value) { return raw(fmt::to_string(value)); }

JsonText& JsonText::number(float value) {
  separate();
  append_number(text_, value);
  return *this;
}

JsonText& JsonText::number(double value) {
  separate();
  append_number(text_, value);
  return *this;
}

JsonText& JsonText::boolean(bool value) { return raw(value ? "true" : "false"); }
JsonText& JsonText::null() { return raw("null"); }

JsonText& JsonText::raw(std::string_view json) {
  separate();
  text_ += json;
  return *this;
}

JsonText& JsonText::numbers(std::span<const float> values) {
  open('[');
  for (const float value : values) number(value);
  return close(']');
}

}  // namespace toto::server
