// SPDX-License-Identifier: Apache-2.0
// Digits and single characters at the front of a text: what dates and names are read with.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>

namespace toto::data {

inline bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Takes `count` digits, 1 to 9, off the front of `text`; -1 where there are fewer.
inline int take_digits(std::string_view& text, std::size_t count) {
  if (text.size() < count || !all_digits(text.substr(0, count))) return -1;
  int value = 0;
  std::from_chars(text.data(), text.data() + count, value);
  text.remove_prefix(count);
  return value;
}

inline bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace toto::data
