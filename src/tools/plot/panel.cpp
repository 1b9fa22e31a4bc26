// SPDX-License-Identifier: Apache-2.0
// Draws one panel, from back to front: bands, grid, axes, lines, labels.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/printable.h"
#include "tools/plot/drawing.h"
#include "tools/plot/path.h"
#include "tools/plot/text.h"

namespace toto::plot {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::string path_element(std::string_view classes, const std::string& data) {
  if (data.empty()) return {};
  return fmt::format("<path class=\"{}\" d=\"{}\"/>\n", classes, data);
}

std::string line_element(std::string_view classes, Point from, Point to) {
  return fmt::format("<path class=\"{}\" d=\"M{} {}L{} {}\"/>\n", classes, coordinate(from.x),
                     coordinate(from.y), coordinate(to.x), coordinate(to.y));
}

std::string line_elements(const std::string& classes, const std::vector<Point>& points) {
  const LinePath path = line_path(points);
  return path_element(classes, path.line) + path_element(classes + " d", path.dots);
}

// `values` over the horizon, from the last point of the history on.
std::vector<Point> future_points(const Frame& frame, const std::vector<double>& values) {
  std::vector<Point> points;
  if (frame.anchored() && !values.empty()) {
    const std::size_t last = frame.shown - 1;
    points.push_back({frame.axis.x(last), frame.y(frame.history_value(last))});
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    points.push_back({frame.axis.x(frame.shown + i), frame.y(values[i])});
  }
  return points;
}

// Limits of a band; crossed ones are put in order.
std::string band_elements(const Frame& frame, const std::vector<double>& levels) {
  std::vector<const Band*> bands;
  bands.reserve(frame.panel->bands.size());
  for (const Band& band : frame.panel->bands) bands.push_back(&band);
  std::stable_sort(bands.begin(), bands.end(),
                   [](const Band* a, const Band* b) { return a->level > b->level; });
  std::string svg;
  for (const Band* band : bands) {
    std::vector<Point> upper = future_points(frame, band->upper);
    std::vector<Point> lower = future_points(frame, band->lower);
    for (std::size_t i = 0; i < upper.size(); ++i) {
      if (upper[i].y > lower[i].y) std::swap(upper[i], lower[i]);
    }
    const auto tint = std::find(levels.begin(), levels.end(), band->level) - levels.begin();
    svg += path_element(fmt::format("b{}", tint), area_path(upper, lower));
  }
  return svg;
}

std::string history_elements(const Frame& frame) {
  std::vector<Point> seen(frame.shown);
  std::vector<Point> filled(frame.shown);
  bool any_filled = false;
  for (std::size_t i = 0; i < frame.shown; ++i) {
    const Point point{frame.axis.x(i), frame.y(frame.history_value(i))};
    // A filled-in value is joined to its neighbours, whatever they are.
    const bool beside = !frame.observed(i) || (i > 0 && !frame.observed(i - 1)) ||
                        (i + 1 < frame.shown && !frame.observed(i + 1));
    any_filled |= beside;
    seen[i] = {point.x, frame.observed(i) ? point.y : kNaN};
    filled[i] = {point.x, beside ? point.y : kNaN};
  }
  return (any_filled ? line_elements("f", filled) : std::string()) + line_elements("h", seen);
}

std::string value_axis(const Frame& frame, const Grid& grid) {
  std::string lines;
  std::string labels;
  for (std::size_t i = 0; i < frame.ticks.values.size(); ++i) {
    const double y = frame.y(frame.ticks.values[i]);
    lines += fmt::format("M{} {}H{}", coordinate(frame.plot.left), coordinate(y),
                         coordinate(frame.plot.right));
    labels += text_element(frame.plot.left - 7, y + grid.font_size * 0.35, grid.font_size, "s r",
                           printable(frame.ticks.labels[i]));
  }
  return path_element("grid", lines) + labels;
}

std::string time_axis(const Frame& frame, const Grid& grid) {
  const double base = frame.plot.bottom;
  std::string marks = fmt::format("M{} {}H{}", coordinate(frame.plot.left), coordinate(base),
                                  coordinate(frame.plot.right));
  std::string labels;
  const LabelRoom room{frame.cell.left, frame.cell.right, grid.font_size};
  for (const TimeTick& tick : frame.axis.ticks(room)) {
    marks += fmt::format("M{} {}v4", coordinate(tick.x), coordinate(base));
    labels += text_element(tick.label_x, base + 5 + grid.font_size, grid.font_size, "s c",
                           printable(tick.label));
    if (tick.context.empty()) continue;
    labels += text_element(tick.context_x, base + 7 + 2 * grid.font_size, grid.font_size, "s c k",
                           printable(tick.context));
  }
  return path_element("axis", marks) + labels;
}

// The name, cut if it must be, and beside it the unit.
std::string heading(const Frame& frame, const Grid& grid) {
  const double size = grid.font_size + 2;
  const double width = frame.cell.right - frame.cell.left;
  const double y = frame.plot.top - 11;
  std::string unit_text = frame.ticks.unit;
  if (!frame.panel->y_label.empty()) {
    if (!unit_text.empty()) unit_text += ' ';
    unit_text += frame.panel->y_label;
  }
  const std::u32string name = printable(frame.panel->name);
  const std::u32string unit = fit(printable(unit_text), width * 0.45, grid.font_size);
  const double gap = unit.empty() ? 0.0 : 8.0;
  const std::u32string shown =
      fit(name, width - gap - text_width(unit, grid.font_size), size, true);
  std::string svg;
  if (!shown.empty()) svg += text_element(frame.cell.left, y, size, "t k", shown);
  if (!unit.empty()) {
    const double after = shown.empty() ? 0.0 : text_width(shown, size, true) + gap;
    svg += text_element(frame.cell.left + after, y, grid.font_size, "s", unit);
  }
  return svg;
}

/// Rings around actual values that are marked.
std::string mark_elements(const Frame& frame) {
  const Panel& panel = *frame.panel;
  std::string data;
  constexpr double kRadius = 4.5;
  for (std::size_t i = 0; i < std::min(panel.marks.size(), panel.actual.size()); ++i) {
    if (panel.marks[i] == 0 || !plottable(panel.actual[i])) continue;
    data += fmt::format("M{} {}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0",
                        coordinate(frame.axis.x(frame.shown + i) - kRadius),
                        coordinate(frame.y(panel.actual[i])), fmt::arg("r", kRadius),
                        fmt::arg("d", 2 * kRadius));
  }
  return path_element("x", data);
}

bool anything_to_draw(const Frame& frame) {
  const Panel& panel = *frame.panel;
  const auto any = [](const std::vector<double>& values, std::size_t first = 0) {
    return std::any_of(values.begin() + static_cast<std::ptrdiff_t>(first), values.end(),
                       plottable);
  };
  if (any(panel.history, frame.first_shown)) return true;
  if (any(panel.median) || any(panel.mean) || any(panel.actual)) return true;
  return std::any_of(panel.bands.begin(), panel.bands.end(),
                     [&](const Band& band) { return any(band.lower) || any(band.upper); });
}

}  // namespace

std::string text_element(double x, double y, double font_size, std::string_view classes,
                         std::u32string_view text) {
  return fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" class=\"{}\">{}</text>\n",
                     coordinate(x), coordinate(y), font_size, classes, escape(text));
}

std::string draw_panel(const Frame& frame, const Grid& grid, const std::vector<double>& levels) {
  std::string svg = grid.roomy ? "<g>\n" : "<g class=\"small\">\n";
  svg += heading(frame, grid);
  if (!anything_to_draw(frame)) {
    const double x = (frame.plot.left + frame.plot.right) / 2;
    const double y = (frame.plot.top + frame.plot.bottom) / 2;
    return svg + text_element(x, y, grid.font_size + 1, "s c", U"no values") + "</g>\n";
  }
  svg += band_elements(frame, levels) + value_axis(frame, grid) + time_axis(frame, grid);
  if (frame.shown > 0 && frame.horizon > 0) {
    const double x = frame.axis.x(frame.shown - 1);
    svg += line_element("now", {x, frame.plot.top}, {x, frame.plot.bottom});
  }
  svg += history_elements(frame);
  svg += line_elements("e", future_points(frame, frame.panel->mean));
  svg += line_elements("m", future_points(frame, frame.panel->median));
  svg += line_elements("a", future_points(frame, frame.panel->actual));
  return svg + mark_elements(frame) + "</g>\n";
}

}  // namespace toto::plot
