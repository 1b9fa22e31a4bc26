// SPDX-License-Identifier: Apache-2.0
// What the tests look at in a drawn figure, and whether everything in it is in its place.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/path_points.h"
#include "support/xml.h"
#include "tools/plot/drawing.h"
#include "tools/plot/text.h"

namespace toto::plot::test {

inline std::vector<Element> elements(const Figure& figure) { return parse_xml(to_svg(figure)); }

inline std::vector<std::string> texts(const Figure& figure) {
  std::vector<std::string> all;
  for (const Element& element : elements(figure)) {
    if (element.name == "text") all.push_back(element.text);
  }
  return all;
}

inline std::size_t count(const std::vector<std::string>& all, const std::string& text) {
  return static_cast<std::size_t>(std::count(all.begin(), all.end(), text));
}

inline bool draws_data(const std::string& classes) {
  const std::string first = classes.substr(0, classes.find(' '));
  return first == "h" || first == "f" || first == "m" || first == "e" || first == "a" ||
         (first.size() > 1 && first[0] == 'b' && first != "bg");
}

// Every data point of a panel lies within its plot (dots and bars of one step stick out sideways by
// half their width), and every text within the figure.
inline void expect_in_place(const Figure& figure) {
  const Drawing drawing = draw(figure);
  const Grid grid = grid_for(drawing.frames.size());
  const auto levels = band_levels(figure);
  for (const Frame& frame : drawing.frames) {
    for (const Element& element : parse_xml(draw_panel(frame, grid, levels))) {
      if (element.name != "path" || !draws_data(element.attributes.at("class"))) continue;
      for (const Point& point : path_points(element.attributes.at("d"))) {
        EXPECT_GE(point.x, frame.plot.left - 3.1);
        EXPECT_LE(point.x, frame.plot.right + 3.1);
        EXPECT_GE(point.y, frame.plot.top - 0.06);
        EXPECT_LE(point.y, frame.plot.bottom + 0.06);
      }
    }
  }
  for (const Element& element : elements(figure)) {
    if (element.name != "text") continue;
    const auto& a = element.attributes;
    const double x = std::stod(a.at("x"));
    const std::string& classes = a.at("class");
    const double width = text_width(element.text, std::stod(a.at("font-size")),
                                    classes.find('k') != std::string::npos);
    const double left = classes.ends_with(" r")                   ? x - width
                        : classes.find(" c") != std::string::npos ? x - width / 2
                                                                  : x;
    EXPECT_GE(left, 0) << element.text;
    EXPECT_LE(left + width, drawing.width) << element.text;
    EXPECT_LE(std::stod(a.at("y")), drawing.height) << element.text;
  }
}

}  // namespace toto::plot::test
