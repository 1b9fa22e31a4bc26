// SPDX-License-Identifier: Apache-2.0
// Scored series as a figure: what was observed over what was forecast, with marks on the anomalies.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "toto/tools/detect.hpp"

namespace toto::detect {
namespace {

constexpr std::size_t kHistory = 100;  // steps shown before the first that was scored
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

plot::Panel make_panel(const data::TimeSeries& series, const Scored& scored) {
  plot::Panel panel;
  panel.name = scored.variate.empty() ? scored.id : scored.id + " / " + scored.variate;
  const std::size_t first = scored.points.empty() ? series.steps : scored.points.front().step;
  const std::size_t steps = series.steps - first;
  const bool timed =
      series.style.form != data::TimeStyle::Form::index && series.times.size() == series.steps;
  const std::size_t begin = scored.column * series.steps;
  for (std::size_t t = first - std::min(first, kHistory); t < first; ++t) {
    if (timed) panel.history_time.push_back(series.times[t]);
    const auto value = static_cast<double>(series.values[begin + t]);
    panel.history.push_back(scored.value_offset == 0 ? value : scored.value_offset + value);
    panel.observed.push_back(series.mask[begin + t]);
  }
  if (steps == 0) return panel;
  if (timed) {
    panel.future_time.assign(series.times.begin() + static_cast<std::ptrdiff_t>(first),
                             series.times.end());
  }
  panel.median.assign(steps, kNaN);
  panel.actual.assign(steps, kNaN);
  panel.marks.assign(steps, 0);
  plot::Band band{1 - scored.threshold, std::vector<double>(steps, kNaN),
                  std::vector<double>(steps, kNaN)};
  for (const Point& point : scored.points) {
    const std::size_t at = point.step - first;
    panel.median[at] = point.median;
    panel.actual[at] = point.value;
    panel.marks[at] = point.anomaly ? 1 : 0;
    band.lower[at] = point.low;
    band.upper[at] = point.high;
  }
  panel.bands.push_back(std::move(band));
  return panel;
}

}  // namespace

plot::Figure make_figure(std::span<const data::TimeSeries> series, std::span<const Scored> scored,
                         const ModelInfo& model) {
  plot::Figure figure;
  std::size_t anomalies = 0;
  for (const Scored& one : scored) {
    anomalies += one.anomalies;
    figure.panels.push_back(make_panel(series[one.index], one));
  }
  figure.title = anomalies == 1 ? "1 anomaly" : fmt::format("{} anomalies", anomalies);
  figure.subtitle =
      "Every step was forecast from what came before it. Outside the band it is an anomaly.";
  figure.footnote = "Model: " + model.name;
  figure.synthetic = model.synthetic;
  figure.history_steps = kHistory;
  return figure;
}

}  // namespace toto::detect
