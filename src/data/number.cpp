// SPDX-License-Identifier: Apache-2.0
#include "data/number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>

namespace toto::data {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_missing(std::string_view text) {
  constexpr std::array<std::string_view, 15> kWords = {"",     "-",    "nan", "null", "na",
                                                       "n/a",  "none", ".",   "--",   "#n/a",
                                                       "<na>", "nil",  ":",   "..",   "***"};
  return text.size() <= 4 && std::ranges::any_of(kWords, [&](std::string_view word) {
           return equals_ignoring_case(text, word);
         });
}

bool is_infinity(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return equals_ignoring_case(text, "inf") || equals_ignoring_case(text, "infinity");
}

// from_chars answers "out of range" for 1e999 and for 1e-999 alike. The place of the first digit
// that is not 0, counted from the point, tells them apart.
bool is_huge(std::string_view text) {
  const std::size_t e = text.find_first_of("eE");
  const std::string_view digits = text.substr(0, e);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = digits.find_first_of("123456789");
  if (first == std::string_view::npos) return false;
  std::int64_t exponent = 0;
  if (e != std::string_view::npos) {
    std::string_view power = text.substr(e + 1);
    const bool negative = power.starts_with('-');
    if (power.starts_with('+')) power.remove_prefix(1);
    const auto result = std::from_chars(power.data(), power.data() + power.size(), exponent);
    if (result.ec != std::errc()) return !negative;  // more digits than the field has of anything
  }
  return exponent + static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first) > 0;
}

}  // namespace

std::string_view trim(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool starts_like_number(std::string_view text) {
  text = trim(text);
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (!text.empty() && text[0] == '.') text.remove_prefix(1);
  return !text.empty() && is_digit(text[0]);
}

bool equals_ignoring_case(std::string_view text, std::string_view lower_case) {
  return std::ranges::equal(text, lower_case, [](char a, char b) { return lower(a) == b; });
}

Number parse_number(std::string_view text) {
  text = trim(text);
  if (!starts_like_number(text)) {  // among others the hexadecimal and nan forms of from_chars
    if (is_missing(text)) return {NumberKind::missing, kNaN};
    return {is_infinity(text) ? NumberKind::not_finite : NumberKind::not_a_number, kNaN};
  }
  if (text[0] == '+') text.remove_prefix(1);
  double value = 0.0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ptr != end) return {NumberKind::not_a_number, kNaN};
  if (result.ec == std::errc::result_out_of_range) {
    if (is_huge(text)) return {NumberKind::not_finite, kNaN};
    value = 0.0;
  }
  const float narrow = static_cast<float>(value);
  if (!std::isfinite(narrow)) return {NumberKind::not_finite, kNaN};
  return {NumberKind::value, narrow, value};
}

}  // namespace toto::data
