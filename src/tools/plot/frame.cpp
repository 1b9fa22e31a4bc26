// SPDX-License-Identifier: Apache-2.0
// Checks the figure, cuts histories and lays panels out in columns whose plots line up.
#include "tools/plot/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/printable.h"
#include "tools/plot/text.h"

namespace toto::plot {
namespace {

constexpr std::size_t kMinHistory = 40;  // steps shown of it, however short the horizon
constexpr double kNameHeight = 25.0;
constexpr double kAxisHeight = 32.0;  // two lines of labels
constexpr double kRowGap = 14.0;
constexpr double kColumnGap = 28.0;
constexpr double kLabelGap = 7.0;  // between the labels of the value axis and the plot

[[noreturn]] void invalid(const Panel& panel, std::string_view message) {
  throw Error(ExitStatus::bad_data, "invalid_figure", message,
              to_utf8(fit(printable(panel.name), 400, 12)));
}

std::size_t horizon_of(const Panel& panel) {
  std::size_t horizon = 0;
  const auto agree = [&](std::size_t length) {
    if (length == 0) return;
    if (horizon != 0 && horizon != length) {
      invalid(panel, fmt::format("parts of the forecast have {} and {} steps", horizon, length));
    }
    horizon = length;
  };
  agree(panel.median.size());
  agree(panel.mean.size());
  agree(panel.actual.size());
  agree(panel.marks.size());
  agree(panel.future_time.size());
  for (const Band& band : panel.bands) {
    if (band.lower.size() != band.upper.size()) invalid(panel, "a band has limits of two lengths");
    if (!(band.level > 0 && band.level < 1)) invalid(panel, "a band's level is not in (0, 1)");
    agree(band.lower.size());
  }
  return horizon;
}

void check_history(const Panel& panel, std::size_t horizon) {
  const std::size_t steps = panel.history.size();
  if (!panel.observed.empty() && panel.observed.size() != steps) {
    invalid(panel, fmt::format("{} values and {} marks of what was observed", steps,
                               panel.observed.size()));
  }
  const bool timed = !panel.history_time.empty() || !panel.future_time.empty();
  if (timed && (panel.history_time.size() != steps || panel.future_time.size() != horizon)) {
    invalid(panel, "timestamps are given for some steps and not for others");
  }
}

// Milliseconds of all steps, or their numbers, and which of the two.
std::vector<std::int64_t> times_of(const Panel& panel, std::size_t steps, TimeStyle& style) {
  std::vector<std::int64_t> times = panel.history_time;
  times.insert(times.end(), panel.future_time.begin(), panel.future_time.end());
  if (std::adjacent_find(times.begin(), times.end(), std::greater_equal<>()) != times.end()) {
    invalid(panel, "timestamps do not increase");
  }
  const bool drawable =
      times.size() == steps && std::all_of(times.begin(), times.end(), in_calendar);
  style = panel.time_style;
  if (style == TimeStyle::automatic) {
    const bool midnights =
        std::all_of(times.begin(), times.end(), [](std::int64_t t) { return t % kDay == 0; });
    style = midnights ? TimeStyle::date : TimeStyle::time;
  }
  if (!drawable) style = TimeStyle::index;
  if (style == TimeStyle::index) {
    times.resize(steps);
    std::iota(times.begin(), times.end(), std::int64_t{0});
  }
  return times;
}

// A frame but for its horizontal extent, on which the other panels of its column have a say.
Frame draft(const Figure& figure, const Panel& panel, const Grid& grid) {
  const std::size_t horizon = horizon_of(panel);
  check_history(panel, horizon);
  const std::size_t first = first_shown(figure, panel);
  const ValueRange range = value_range(panel, first);
  const int wanted = std::clamp(static_cast<int>(grid.plot_height / 50), 4, 7);
  return {&panel,
          {},
          {},
          first,
          panel.history.size() - first,
          horizon,
          range,
          value_ticks(range, wanted),
          TimeAxis({}, TimeStyle::index, 0, 0)};
}

double label_width(const Frame& frame, double font_size) {
  double widest = 0.0;
  for (const std::string& label : frame.ticks.labels) {
    widest = std::max(widest, text_width(label, font_size));
  }
  return widest + kLabelGap;
}

void set_axis(Frame& frame) {
  TimeStyle style = TimeStyle::automatic;
  const Panel& panel = *frame.panel;
  std::vector<std::int64_t> times = times_of(panel, panel.history.size() + frame.horizon, style);
  times.erase(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(frame.first_shown));
  frame.axis = TimeAxis(std::move(times), style, frame.plot.left, frame.plot.right);
}

}  // namespace

std::size_t first_shown(const Figure& figure, const Panel& panel) {
  const std::size_t steps = panel.history.size();
  const std::size_t horizon = horizon_of(panel);
  const std::size_t wanted =
      figure.history_steps.value_or(horizon == 0 ? steps : std::max(3 * horizon, kMinHistory));
  return steps - std::min(steps, wanted);
}

double Frame::y(double value) const {
  const double share = (value - range.low) / (range.high - range.low);
  return std::clamp(plot.bottom - share * (plot.bottom - plot.top), plot.top, plot.bottom);
}

double Frame::history_value(std::size_t step) const {
  const double value = panel->history[first_shown + step];
  return plottable(value) ? value : std::numeric_limits<double>::quiet_NaN();
}

bool Frame::observed(std::size_t step) const {
  return panel->observed.empty() || panel->observed[first_shown + step] != 0;
}

bool Frame::anchored() const { return shown > 0 && plottable(history_value(shown - 1)); }

Grid grid_for(std::size_t panels) {
  if (panels <= 1) return {1, 960, 380, 12, true};
  if (panels <= 3) return {1, 960, 190, 11, true};
  if (panels <= 6) return {2, 1080, 180, 11, false};
  if (panels <= 12) return {3, 1200, 150, 10, false};
  return {4, 1320, 120, 10, false};
}

Grid narrow_grid(std::size_t panels) { return {1, 360, panels <= 3 ? 220.0 : 150.0, 11, true}; }

std::vector<Frame> lay_out(const Figure& figure, std::size_t count, const Grid& grid, double top,
                           double& bottom) {
  std::vector<Frame> frames;
  std::vector<double> label_widths(grid.columns, 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    frames.push_back(draft(figure, figure.panels[i], grid));
    double& widest = label_widths[i % grid.columns];
    widest = std::max(widest, label_width(frames.back(), grid.font_size));
  }
  const auto columns = static_cast<double>(grid.columns);
  const double cell_width = (grid.width - 2 * kMargin - (columns - 1) * kColumnGap) / columns;
  const double cell_height = kNameHeight + grid.plot_height + kAxisHeight;
  bottom = top;
  for (std::size_t i = 0; i < count; ++i) {
    Frame& frame = frames[i];
    const std::size_t column = i % grid.columns;
    const double left = kMargin + static_cast<double>(column) * (cell_width + kColumnGap);
    const std::size_t row = i / grid.columns;
    const double up = top + static_cast<double>(row) * (cell_height + kRowGap);
    frame.cell = {left, up, left + cell_width, up + cell_height};
    frame.plot = {left + label_widths[column], up + kNameHeight, left + cell_width,
                  up + kNameHeight + grid.plot_height};
    set_axis(frame);
    bottom = frame.cell.bottom;
  }
  return frames;
}

}  // namespace toto::plot
