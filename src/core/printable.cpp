// SPDX-License-Identifier: Apache-2.0
// Decoding for display: nothing a terminal or a browser would act on survives.
#include "core/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/utf8.h"

namespace toto {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

bool turns_direction(char32_t c) {
  return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

char32_t shown(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r' || c == 0x2028 || c == 0x2029) return ' ';
  const bool control = c < 0x20 || (c >= 0x7F && c <= 0x9F);
  const bool noncharacter = (c & 0xFFFE) == 0xFFFE || (c >= 0xFDD0 && c <= 0xFDEF);
  return control || noncharacter || turns_direction(c) ? kReplacement : c;
}

// Appends the code points of bytes that are known to be UTF-8.
void decode(std::string_view valid, std::u32string& text) {
  for (std::size_t i = 0; i < valid.size();) {
    const auto lead = static_cast<unsigned char>(valid[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    char32_t code = length == 1 ? lead : lead & (0x7FU >> length);
    for (std::size_t k = 1; k < length; ++k) {
      code = (code << 6) | (static_cast<unsigned char>(valid[i + k]) & 0x3FU);
    }
    text.push_back(shown(code));
    i += length;
  }
}

}  // namespace

std::u32string printable(std::string_view bytes) {
  std::u32string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t valid = std::min(first_invalid_utf8(bytes), bytes.size());
    decode(bytes.substr(0, valid), text);
    bytes.remove_prefix(valid);
    if (!bytes.empty()) {
      text.push_back(kReplacement);
      bytes.remove_prefix(1);
    }
  }
  return text;
}

std::string to_utf8(std::u32string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  const auto tail = [&](char32_t c, int shift) {
    bytes.push_back(static_cast<char>(0x80U | ((c >> shift) & 0x3FU)));
  };
  for (const char32_t c : text) {
    if (c < 0x80) {
      bytes.push_back(static_cast<char>(c));
    } else if (c < 0x800) {
      bytes.push_back(static_cast<char>(0xC0U | (c >> 6)));
    } else if (c < 0x10000) {
      bytes.push_back(static_cast<char>(0xE0U | (c >> 12)));
      tail(c, 6);
    } else {
      bytes.push_back(static_cast<char>(0xF0U | (c >> 18)));
      tail(c, 12);
      tail(c, 6);
    }
    if (c >= 0x80) tail(c, 0);
  }
  return bytes;
}

std::string markdown_text(std::string_view bytes) {
  std::string out;
  for (const char c : to_utf8(printable(bytes))) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '|':
      case '[':
      case ']':
      case '`':
      case '\\':
        out += '\\';
        [[fallthrough]];
      default:
        out += c;
    }
  }
  return out;
}

std::string grouped(double value, int decimals) {
  std::string digits = fmt::format("{:.{}f}", std::abs(value), decimals);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  for (std::size_t at = point; at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  const bool zero = digits.find_first_not_of("0.,") == std::string::npos;
  if (value < 0 && !zero) digits.insert(0, 1, '-');
  return digits;
}

}  // namespace toto
