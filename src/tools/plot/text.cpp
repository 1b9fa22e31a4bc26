// SPDX-License-Identifier: Apache-2.0
// Estimated text widths and what follows from them.
#include "tools/plot/text.h"

#include <array>
#include <cstdint>

#include "core/printable.h"

namespace toto::plot {
namespace {

// Advance widths of Helvetica for U+0020..U+007E, in thousandths of the font size.
constexpr std::array<std::uint16_t, 95> kAdvance = {
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333,  278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667,  611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278,  556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500,  500, 334, 260, 334, 584};

constexpr char32_t kEllipsis = 0x2026;

double advance(char32_t c, bool bold) {
  double width = 1000.0;  // East Asian characters, emoji and whatever else is wide
  if (c >= 0x20 && c <= 0x7E) {
    width = kAdvance[c - 0x20];
  } else if (c >= 0x0300 && c <= 0x036F) {
    width = 0.0;  // combining marks
  } else if (c < 0x0590 || c == 0x2212 || c == 0x2013) {
    width = 700.0;  // Latin, Greek, Cyrillic; minus and dash
  }
  return width * (bold ? 0.00108 : 0.001);
}

std::size_t count_that_fits(std::u32string_view text, double width, double font_size, bool bold) {
  double used = 0.0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    used += advance(text[i], bold) * font_size;
    if (used > width) return i;
  }
  return text.size();
}

std::u32string_view trimmed(std::u32string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

double text_width(std::u32string_view text, double font_size, bool bold) {
  double width = 0.0;
  for (const char32_t c : text) width += advance(c, bold);
  return width * font_size;
}

double text_width(std::string_view text, double font_size, bool bold) {
  return text_width(printable(text), font_size, bold);
}

std::u32string fit(std::u32string_view text, double width, double font_size, bool bold) {
  if (count_that_fits(text, width, font_size, bold) == text.size()) return std::u32string(text);
  const double room = width - advance(kEllipsis, bold) * font_size;
  if (room < 0.0) return {};
  const std::size_t kept = count_that_fits(text, room, font_size, bold);
  std::u32string cut(trimmed(text.substr(0, kept)));
  cut.push_back(kEllipsis);
  return cut;
}

std::vector<std::u32string> wrap(std::u32string_view text, double width, double font_size,
                                 std::size_t max_lines, bool bold) {
  std::vector<std::u32string> lines;
  std::u32string_view rest = trimmed(text);
  while (!rest.empty()) {
    if (lines.size() + 1 == max_lines) {
      lines.push_back(fit(rest, width, font_size, bold));
      break;
    }
    std::size_t end = count_that_fits(rest, width, font_size, bold);
    if (end < rest.size()) {
      const std::size_t space = rest.rfind(' ', end);
      if (space != std::u32string_view::npos && space > 0) end = space;
    }
    if (end == 0) end = 1;  // a column narrower than one character
    lines.emplace_back(trimmed(rest.substr(0, end)));
    rest = trimmed(rest.substr(end));
  }
  return lines;
}

std::string escape(std::u32string_view text) {
  std::string escaped;
  for (const char c : to_utf8(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped.push_back(c);
    }
  }
  return escaped;
}

}  // namespace toto::plot
