// SPDX-License-Identifier: Apache-2.0
// The page: the drawing, once for wide windows and once for narrow ones, its two colour schemes,
// and the numbers behind it for the read-out. Only numbers go into the script's data, never text
// from outside.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/printable.h"
#include "tools/plot/drawing.h"
#include "tools/plot/path.h"
#include "tools/plot/readout_script.h"
#include "tools/plot/style.h"
#include "tools/plot/text.h"

namespace toto::plot {
namespace {

constexpr int kMaxDecimals = 12;  // smaller numbers are written with an exponent

// Decimals that tell values apart far below a pixel of the plot's height.
int decimals_for(const ValueRange& range) {
  return std::max(0, 4 - static_cast<int>(std::floor(std::log10(range.high - range.low))));
}

std::string script_number(double value, int decimals) {
  if (std::isnan(value)) return "null";
  if (std::isinf(value)) return value > 0 ? "1e999" : "-1e999";
  if (decimals > kMaxDecimals || std::abs(value) >= 1e15) return fmt::format("{:.6g}", value);
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (decimals > 0) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

template <typename Value>
std::string array(const std::vector<std::size_t>& steps, Value value) {
  std::string text;
  for (const std::size_t step : steps) {
    if (!text.empty()) text += ',';
    text += value(step);
  }
  return '[' + text + ']';
}

// Steps from `begin` to `end`, at most one in `distance` pixels; the last always.
std::vector<std::size_t> readable_steps(const Frame& frame, std::size_t begin, std::size_t end,
                                        double distance) {
  std::vector<std::size_t> steps;
  for (std::size_t i = end; i-- > begin;) {
    if (steps.empty() || frame.axis.x(steps.back()) - frame.axis.x(i) >= distance) {
      steps.push_back(i);
    }
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

std::string differences(const TimeAxis& axis, const std::vector<std::size_t>& steps) {
  std::int64_t before = 0;
  return array(steps, [&](std::size_t step) {
    const std::int64_t difference = axis.time(step) - before;
    before = axis.time(step);
    return fmt::format("{}", difference);
  });
}

std::string rectangle(const Rect& r) {
  return fmt::format("[{},{},{},{}]", coordinate(r.left), coordinate(r.top), coordinate(r.right),
                     coordinate(r.bottom));
}

// One panel's data; readout_script.h says what the letters mean.
std::string panel_data(const Frame& frame, const Frame& narrow, double distance) {
  const int decimals = decimals_for(frame.range);
  const auto number = [&](double value) { return script_number(value, decimals); };
  const Panel& panel = *frame.panel;
  const auto history = readable_steps(frame, 0, frame.shown, distance);
  const auto future = readable_steps(frame, frame.shown, frame.axis.size(), distance);
  std::vector<std::size_t> all = history;
  all.insert(all.end(), future.begin(), future.end());
  std::vector<std::size_t> filled;
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (!frame.observed(history[i])) filled.push_back(i);
  }
  const auto over_horizon = [&](const std::vector<double>& values) {
    if (values.empty()) return std::string("[]");
    return array(future, [&](std::size_t step) { return number(values[step - frame.shown]); });
  };
  std::string bands;
  for (const Band& band : panel.bands) {
    if (!bands.empty()) bands += ',';
    bands += fmt::format("[\"{}\",{},{}]", level_label(band.level), over_horizon(band.lower),
                         over_horizon(band.upper));
  }
  const int style = frame.axis.style() == TimeStyle::index  ? 0
                    : frame.axis.style() == TimeStyle::date ? 1
                                                            : 2;
  std::string data = fmt::format(R"({{"r":{},"n":{},"y":[{},{}],"d":{},"s":{},)",
                                 rectangle(frame.plot), rectangle(narrow.plot), frame.range.low,
                                 frame.range.high, std::min(decimals, kMaxDecimals), style);
  data +=
      fmt::format(R"("x":{},"t":{},"h":{},"f":{},)",
                  array(all, [&](std::size_t i) { return fmt::format("{:.0f}", frame.axis.x(i)); }),
                  differences(frame.axis, all),
                  array(history, [&](std::size_t i) { return number(frame.history_value(i)); }),
                  array(filled, [](std::size_t i) { return fmt::format("{}", i); }));
  data += fmt::format(R"("m":{},"e":{},"a":{},"b":[{}]}})", over_horizon(panel.median),
                      over_horizon(panel.mean), over_horizon(panel.actual), bands);
  return data;
}

}  // namespace

std::string to_html(const Figure& figure) {
  const Drawing drawing = draw(figure);
  const Drawing narrow = draw(figure, narrow_grid(drawn_panels(figure)));
  // Finer than a hand moves the pointer; coarser where many panels share a page.
  const double distance = drawing.frames.size() <= 3 ? 1.5 : 3.0;
  std::string data;
  for (std::size_t i = 0; i < drawing.frames.size(); ++i) {
    if (!data.empty()) data += ",\n";
    data += panel_data(drawing.frames[i], narrow.frames[i], distance);
  }
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>\n",
      figure.title.empty() ? "Forecast" : escape(fit(printable(figure.title), 2000, 20)));
  page += style_rules(Scheme::light, drawing.bands);
  page += kPageStyle;
  page += fmt::format(
      "svg{{max-width:{}px}}\n@media (prefers-color-scheme:dark){{{}{}}}\n</style>\n",
      coordinate(drawing.width * 1.25), style_rules(Scheme::dark, drawing.bands), kDarkPageStyle);
  page += "</head>\n<body>\n" + svg_element(figure, drawing, {}, "wide");
  page += svg_element(figure, narrow, {}, "narrow");
  page += "<div id=\"tip\" hidden></div>\n<script type=\"application/json\" id=\"data\">[";
  page += data + "]</script>\n<script>\n";
  page += kReadoutScript;
  return page + "</script>\n</body>\n</html>\n";
}

}  // namespace toto::plot
