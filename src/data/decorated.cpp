// SPDX-License-Identifier: Apache-2.0
#include "data/decorated.h"

#include <algorithm>
#include <array>
#include <optional>

namespace toto::data {
namespace {

constexpr std::size_t kMaxUnit = 16;  // bytes

constexpr auto kSigns = std::to_array<std::string_view>(
    {"US$", "R$", "A$", "C$", "$", "€", "£", "¥", "₹", "₩", "₿", "₽", "₺", "zł", "Kč"});
constexpr auto kCodes = std::to_array<std::string_view>(
    {"USD", "EUR", "GBP", "JPY", "CHF", "CNY", "INR", "AUD", "CAD",
     "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "BRL", "MXN", "ZAR",
     "KRW", "SGD", "HKD", "NZD", "TRY", "RUB", "BTC", "ETH", "USDT"});
// No-break space, narrow no-break space, thin space.
constexpr auto kBlanks =
    std::to_array<std::string_view>({"\xC2\xA0", "\xE2\x80\xAF", "\xE2\x80\x89", " "});
constexpr std::string_view kMinus = "\xE2\x88\x92";
constexpr std::string_view kCurlyApostrophe = "\xE2\x80\x99";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t blank_at(std::string_view text) {
  for (const std::string_view blank : kBlanks) {
    if (text.starts_with(blank)) return blank.size();
  }
  return 0;
}

std::string_view trim_all(std::string_view text) {
  text = trim(text);
  while (const std::size_t size = blank_at(text)) text.remove_prefix(size);
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view blank : kBlanks) {
      if (!text.ends_with(blank)) continue;
      text.remove_suffix(blank.size());
      found = true;
    }
  }
  return text;
}

bool take_sign(std::string_view& text, bool& negative) {
  const bool minus = text.starts_with('-');
  if (!minus && !text.starts_with('+') && !text.starts_with(kMinus)) return false;
  negative = negative || !text.starts_with('+');
  text.remove_prefix(text.starts_with(kMinus) ? kMinus.size() : 1);
  return true;
}

std::string_view take_currency(std::string_view& text) {
  const auto take = [&](std::string_view word) {
    const std::string_view found = text.substr(0, word.size());
    text = trim_all(text.substr(word.size()));
    return found;
  };
  for (const std::string_view sign : kSigns) {
    if (text.starts_with(sign)) return take(sign);
  }
  for (const std::string_view code : kCodes) {
    if (text.starts_with(code) && text.size() > code.size() &&
        (blank_at(text.substr(code.size())) > 0 || is_digit(text[code.size()]))) {
      return take(code);
    }
  }
  return {};
}

/// Bytes of a separator between digits, or 0.
std::size_t separator_at(std::string_view text) {
  if (text.starts_with(kCurlyApostrophe)) return kCurlyApostrophe.size();
  if (text[0] == '.' || text[0] == ',' || text[0] == '\'') return 1;
  return blank_at(text);
}

/// How much of `text` are digits with separators between them, and an exponent.
std::size_t core_size(std::string_view text) {
  std::size_t at = 0;
  if (!text.empty() && (text[0] == '.' || text[0] == ',')) ++at;
  if (at >= text.size() || !is_digit(text[at])) return 0;
  while (at < text.size()) {
    if (is_digit(text[at])) {
      ++at;
      continue;
    }
    const std::size_t size = separator_at(text.substr(at));
    if (size == 0 || at + size >= text.size() || !is_digit(text[at + size])) break;
    at += size;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    std::size_t digits = at + 1;
    if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) ++digits;
    const std::size_t first = digits;
    while (digits < text.size() && is_digit(text[digits])) ++digits;
    if (digits > first) at = digits;
  }
  return at;
}

bool is_unit(std::string_view text) {
  if (text.size() > kMaxUnit) return false;
  return std::ranges::all_of(text, [](char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return letter || c == '%' || c == '/' || c == '$' || static_cast<unsigned char>(c) >= 0x80;
  });
}

/// The digits of `core` without groups and with a decimal point; nothing where the groups are not
/// groups of thousands.
std::optional<std::string> normalised(std::string_view core, char decimal) {
  const std::size_t exponent = std::min(core.find_first_of("eE"), core.size());
  const std::size_t mark = std::min(core.find(decimal), exponent);
  std::string out;
  std::string_view group;
  std::size_t digits = 0, groups = 0;
  for (std::size_t at = 0; at < mark;) {
    if (is_digit(core[at])) {
      out.push_back(core[at++]);
      ++digits;
      continue;
    }
    const std::string_view here = core.substr(at, separator_at(core.substr(at)));
    const bool again = groups > 0;
    if (here.empty() || (again && here != group)) return std::nullopt;
    // India writes 12,34,567; the last group has three digits everywhere.
    if (again ? digits != 3 && digits != 2 : digits == 0 || digits > 3) return std::nullopt;
    group = here;
    ++groups;
    digits = 0;
    at += here.size();
  }
  if (groups > 0 && digits != 3) return std::nullopt;
  if (mark < exponent) {
    out.push_back('.');
    for (const char c : core.substr(mark + 1, exponent - mark - 1)) {
      if (!is_digit(c)) return std::nullopt;
      out.push_back(c);
    }
  }
  return out.append(core.substr(exponent));
}

}  // namespace

bool is_currency(std::string_view unit) {
  return std::ranges::find(kSigns, unit) != kSigns.end() ||
         std::ranges::find(kCodes, unit) != kCodes.end();
}

Decorated take_apart(std::string_view field) {
  Decorated out;
  std::string_view text = trim_all(field);
  if (text.size() > 2 && text.front() == '(' && text.back() == ')') {
    out.negative = true;
    text = trim_all(text.substr(1, text.size() - 2));
  }
  const bool signed_first = take_sign(text, out.negative);
  out.unit = take_currency(text);
  if (!signed_first) (void)take_sign(text, out.negative);
  const std::size_t size = core_size(text);
  out.core = text.substr(0, size);
  const std::string_view behind = trim_all(text.substr(size));
  out.valid = size > 0 && is_unit(behind) && (behind.empty() || out.unit.empty());
  if (!behind.empty()) out.unit = behind;
  return out;
}

void DecimalVotes::add(std::string_view core) {
  const std::size_t exponent = std::min(core.find_first_of("eE"), core.size());
  const std::string_view digits = core.substr(0, exponent);
  const auto commas = std::ranges::count(digits, ',');
  const auto points = std::ranges::count(digits, '.');
  if (commas == 0 && points == 0) return;
  const std::size_t last = digits.find_last_of(".,");
  if (commas > 0 && points > 0) {
    ++(digits[last] == '.' ? point : comma);
    return;
  }
  const bool is_comma = commas > 0;
  if (commas + points > 1) {
    ++(is_comma ? point : comma);  // several of them separate groups
    return;
  }
  const std::size_t behind = digits.size() - last - 1;
  const bool group = behind == 3 && last >= 1 && last <= 3 && digits[0] != '0';
  if (group) {
    ++(is_comma ? unclear_comma : unclear_point);
  } else {
    ++(is_comma ? comma : point);
  }
}

void DecimalVotes::add(const DecimalVotes& other) {
  point += other.point;
  comma += other.comma;
  unclear_comma += other.unclear_comma;
  unclear_point += other.unclear_point;
}

Number parse_core(std::string_view core, char decimal, bool negative) {
  std::optional<std::string> text = normalised(core, decimal);
  if (!text) return parse_number("?");
  if (negative) text->insert(text->begin(), '-');
  return parse_number(*text);
}

}  // namespace toto::data
