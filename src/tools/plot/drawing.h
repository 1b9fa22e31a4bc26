// SPDX-License-Identifier: Apache-2.0
// The SVG drawing of a figure, of which the image and the page are two wrappings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/plot/frame.h"
#include "toto/tools/plot.hpp"

namespace toto::plot {

/// One text element. `classes` as in style.h; `c` centres it on x, `r` ends it there.
[[nodiscard]] std::string text_element(double x, double y, double font_size,
                                       std::string_view classes, std::u32string_view text);

/// The levels of all bands, widest first: the place of a level is the number of its tint.
[[nodiscard]] std::vector<double> band_levels(const Figure& figure);

/// 0.8 as "80 %".
[[nodiscard]] std::string level_label(double level);

/// Axes, bands and lines of one panel.
[[nodiscard]] std::string draw_panel(const Frame& frame, const Grid& grid,
                                     const std::vector<double>& levels);

struct Drawing {
  double width = 0.0;
  double height = 0.0;
  std::size_t bands = 0;      ///< how many tints the style sheet needs
  std::string content;        ///< elements, without the svg element and the style sheet
  std::vector<Frame> frames;  ///< they refer to the figure
};

/// How many panels are drawn.
[[nodiscard]] std::size_t drawn_panels(const Figure& figure);

/// Header, legend, panels and footnote. Throws Error invalid_figure (65).
[[nodiscard]] Drawing draw(const Figure& figure, const Grid& grid);
/// On the grid for so many panels.
[[nodiscard]] Drawing draw(const Figure& figure);

/// The svg element around the drawing; `style` goes into it, or nothing if it is empty.
/// `name_of_class` may be empty.
[[nodiscard]] std::string svg_element(const Figure& figure, const Drawing& drawing,
                                      std::string_view style, std::string_view name_of_class = {});

}  // namespace toto::plot
