// SPDX-License-Identifier: Apache-2.0
// Text in a picture: escaping, and fitting it into a width without knowing the viewer's font.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace toto::plot {

/// Widths are those of Helvetica, which Arial and Liberation Sans share: the fonts the style asks
/// for.
[[nodiscard]] double text_width(std::u32string_view text, double font_size, bool bold = false);
[[nodiscard]] double text_width(std::string_view text, double font_size, bool bold = false);

/// `text` cut to `width` pixels with an ellipsis, if it is wider.
[[nodiscard]] std::u32string fit(std::u32string_view text, double width, double font_size,
                                 bool bold = false);

/// Lines no wider than `width`, broken at spaces where possible; what exceeds `max_lines` is
/// replaced by an ellipsis.
[[nodiscard]] std::vector<std::u32string> wrap(std::u32string_view text, double width,
                                               double font_size, std::size_t max_lines,
                                               bool bold = false);

/// UTF-8 with the five markup characters escaped: safe as element content and in attributes.
[[nodiscard]] std::string escape(std::u32string_view text);

}  // namespace toto::plot
