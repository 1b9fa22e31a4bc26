// SPDX-License-Identifier: Apache-2.0
// JSON as text, written in order: no tree in between, and floats with their shortest digits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace toto::server {

class JsonText {
 public:
  JsonText& open(char bracket);   ///< { or [
  JsonText& close(char bracket);  ///< } or ]
  JsonText& key(std::string_view name);
  /// Bytes that are not UTF-8 become U+FFFD.
  JsonText& string(std::string_view text);
  JsonText& integer(std::int64_t value);
  JsonText& whole(std::uint64_t value);
  /// The shortest digits that give the same number back; null where it is not finite.
  JsonText& number(float value);
  JsonText& number(double value);
  JsonText& boolean(bool value);
  JsonText& null();
  JsonText& raw(std::string_view json);  ///< a value that is JSON already
  JsonText& numbers(std::span<const float> values);

  [[nodiscard]] std::string take() { return std::move(text_); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void separate();

  std::string text_;
  bool first_ = true;  // of what is open
  bool after_key_ = false;
};

}  // namespace toto::server
