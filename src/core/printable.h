// SPDX-License-Identifier: Apache-2.0
// Text from outside (ids, column names) made safe to show: what a plot and a terminal both need.
#pragma once

#include <string>
#include <string_view>

namespace toto {

/// The code points of `bytes` as they can be shown. Bytes that are not UTF-8 become U+FFFD each;
/// tabs and line ends become a space; other control characters, noncharacters and marks that turn
/// the direction of text become U+FFFD.
[[nodiscard]] std::u32string printable(std::string_view bytes);

/// UTF-8 of code points that are all valid scalar values.
[[nodiscard]] std::string to_utf8(std::u32string_view text);

/// Text from outside as text in a page or table of Markdown, which passes HTML, links and pictures
/// on: what is special there is escaped, and what cannot be shown is replaced as above.
[[nodiscard]] std::string markdown_text(std::string_view bytes);

/// A finite number with `decimals` digits after the point and the thousands in groups: -1,234.50,
/// whatever the locale. No minus sign before zeros.
[[nodiscard]] std::string grouped(double value, int decimals);

}  // namespace toto
