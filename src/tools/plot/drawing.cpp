// SPDX-License-Identifier: Apache-2.0
// Puts a figure together from top to bottom: title, warning, legend, panels, footnote.
#include "tools/plot/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/printable.h"
#include "tools/plot/path.h"
#include "tools/plot/text.h"

namespace toto::plot {
namespace {

constexpr std::size_t kMaxPanels = 60;
constexpr double kTitleSize = 20.0, kNarrowTitleSize = 16.0;
constexpr double kTextSize = 13.0;
constexpr double kNoteSize = 11.0;

/// Text may be that much wider than text_width() says, where there is no Helvetica: on a narrow
/// drawing that is soon beyond the edge.
constexpr double kOtherFonts = 1.16;

bool is_narrow(double width) { return width < 500; }

struct Cursor {
  double y;
  double width;
  std::string svg;

  [[nodiscard]] double stretch() const { return is_narrow(width) ? kOtherFonts : 1.0; }

  void paragraph(std::string_view text, double size, std::string_view classes, bool bold,
                 std::size_t max_lines) {
    for (const std::u32string& line :
         wrap(printable(text), (width - 2 * kMargin) / stretch(), size, max_lines, bold)) {
      y += size * 1.3;
      svg += text_element(kMargin, y - size * 0.25, size, classes, line);
    }
  }
};

void warning(Cursor& at) {
  constexpr std::u32string_view kText = U"Synthetic weights: this forecast means nothing";
  const double width = text_width(kText, 12, true) + 20;
  at.y += 8;
  at.svg +=
      fmt::format("<rect class=\"warn\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"22\" rx=\"4\"/>\n",
                  coordinate(kMargin), coordinate(at.y), coordinate(width));
  at.svg += text_element(kMargin + 10, at.y + 15, 12, "warnt k", kText);
  at.y += 22;
}

struct LegendItem {
  std::string classes;  // of the sample
  bool area;
  std::string label;
};

// What at least one of the first `count` panels draws.
std::vector<LegendItem> legend_items(const Figure& figure, std::size_t count,
                                     const std::vector<double>& levels) {
  bool history = false, filled = false, median = false, mean = false, actual = false,
       marked = false;
  for (std::size_t i = 0; i < count; ++i) {
    const Panel& panel = figure.panels[i];
    const std::size_t first = first_shown(figure, panel);
    history |= first < panel.history.size();
    for (std::size_t k = first; k < panel.observed.size(); ++k) filled |= panel.observed[k] == 0;
    median |= !panel.median.empty();
    mean |= !panel.mean.empty();
    actual |= !panel.actual.empty();
    marked |= std::ranges::find(panel.marks, 1) != panel.marks.end();
  }
  std::vector<LegendItem> items;
  if (history) items.push_back({"h", false, "History"});
  if (filled) items.push_back({"f", false, "Filled in"});
  if (median) items.push_back({"m", false, "Forecast (median)"});
  if (mean) items.push_back({"e", false, "Forecast (mean)"});
  for (std::size_t i = levels.size(); i-- > 0;) {
    items.push_back({fmt::format("b{}", i), true, level_label(levels[i]) + " interval"});
  }
  if (actual) items.push_back({"a", false, "Actual"});
  if (marked) items.push_back({"x", false, "Anomaly"});
  return items;
}

void legend(Cursor& at, const std::vector<LegendItem>& items) {
  constexpr double kSample = 22.0;
  if (items.empty()) return;
  double x = kMargin;
  at.y += 20;
  for (const LegendItem& item : items) {
    const double width = kSample + 6 + at.stretch() * text_width(item.label, 12);
    if (x > kMargin && x + width > at.width - kMargin) {
      x = kMargin;
      at.y += 18;
    }
    if (item.area) {
      at.svg += fmt::format(
          "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"11\" rx=\"1\"/>\n",
          item.classes, coordinate(x), coordinate(at.y - 10), kSample);
    } else if (item.classes == "x") {
      at.svg +=
          fmt::format("<path class=\"x\" d=\"M{} {}a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0\"/>\n",
                      coordinate(x + kSample / 2 - 4.5), coordinate(at.y - 4));
    } else {
      at.svg += fmt::format("<path class=\"{}\" d=\"M{} {}h{}\"/>\n", item.classes, coordinate(x),
                            coordinate(at.y - 4), kSample);
    }
    at.svg += text_element(x + kSample + 6, at.y, 12, "s", printable(item.label));
    x += width + 20;
  }
}

std::string notes(const Figure& figure, const std::vector<Frame>& frames) {
  std::string text;
  if (frames.size() < figure.panels.size()) {
    text = fmt::format("The first {} of {} series. ", frames.size(), figure.panels.size());
  }
  if (std::any_of(frames.begin(), frames.end(), [](const Frame& f) { return f.range.clipped; })) {
    text += "Intervals that touch the edge of a plot go on beyond it. ";
  }
  return text + figure.footnote;
}

}  // namespace

std::vector<double> band_levels(const Figure& figure) {
  std::vector<double> levels;
  for (const Panel& panel : figure.panels) {
    for (const Band& band : panel.bands) levels.push_back(band.level);
  }
  std::sort(levels.begin(), levels.end(), std::greater<>());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  return levels;
}

std::string level_label(double level) { return fmt::format("{:.4g} %", level * 100); }

std::size_t drawn_panels(const Figure& figure) {
  return std::min(figure.panels.size(), kMaxPanels);
}

Drawing draw(const Figure& figure) { return draw(figure, grid_for(drawn_panels(figure))); }

Drawing draw(const Figure& figure, const Grid& grid) {
  Drawing drawing;
  const std::size_t count = drawn_panels(figure);
  const std::vector<double> levels = band_levels(figure);
  drawing.width = grid.width;
  drawing.bands = levels.size();

  Cursor at{kMargin - 4, grid.width, {}};
  at.paragraph(figure.title, is_narrow(grid.width) ? kNarrowTitleSize : kTitleSize, "t k", true, 2);
  at.paragraph(figure.subtitle, kTextSize, "s", false, 3);
  if (figure.synthetic) warning(at);
  legend(at, legend_items(figure, count, levels));
  at.y += 14;
  drawing.frames = lay_out(figure, count, grid, at.y, at.y);
  for (const Frame& frame : drawing.frames) at.svg += draw_panel(frame, grid, levels);
  at.y += 10;
  at.paragraph(notes(figure, drawing.frames), kNoteSize, "s", false, 4);
  drawing.height = std::ceil(at.y + kMargin - 6);
  drawing.content = std::move(at.svg);
  return drawing;
}

std::string svg_element(const Figure& figure, const Drawing& drawing, std::string_view style,
                        std::string_view name_of_class) {
  const std::string name = escape(fit(printable(figure.title), 2000, kTitleSize));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\"{3} width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" role=\"img\" aria-label=\"{2}\" "
      "font-family=\"Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif\">\n",
      coordinate(drawing.width), coordinate(drawing.height), name,
      name_of_class.empty() ? "" : fmt::format(" class=\"{}\"", name_of_class));
  if (!style.empty()) svg += fmt::format("<style>{}</style>\n", style);
  svg += "<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n";
  return svg + drawing.content + "</svg>\n";
}

}  // namespace toto::plot
