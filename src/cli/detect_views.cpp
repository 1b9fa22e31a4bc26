// SPDX-License-Identifier: Apache-2.0
// What toto detect shows of its scores to people.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/detect_request.h"
#include "core/printable.h"

namespace toto::cli {
namespace {

constexpr std::size_t kShownSeries = 20;
constexpr std::size_t kShownAnomalies = 10;

/// Five digits, or as many of the difference from an offset.
std::string number(double value, double offset) {
  if (!std::isfinite(value)) return value < 0 ? "-" : "+";
  const double difference = value - offset;
  if (offset == 0 || difference == 0) return fmt::format("{:.5g}", value);
  const int decimals = 4 - static_cast<int>(std::floor(std::log10(std::abs(difference))));
  return fmt::format("{:.{}f}", value, std::clamp(decimals, 0, 8));
}

std::string threshold_text(const detect::Scored& scored) {
  std::string text = fmt::format("p <= {:.3g}", scored.threshold);
  if (scored.per_day > 0) {
    const std::string alarms = fmt::format("{:.3g}", scored.threshold * scored.per_day);
    text += fmt::format(", {} false alarm{} a day", alarms, alarms == "1" ? "" : "s");
  }
  return text;
}

std::string why_nothing(const data::TimeSeries& series, std::size_t min_history) {
  if (series.steps > min_history) return "nothing was observed there, or too little before it";
  return fmt::format("{} steps, and the first {} are not scored (--min-history)", series.steps,
                     min_history);
}

std::string block(const data::TimeSeries& series, const detect::Scored& scored,
                  std::size_t min_history) {
  const std::string name = scored.variate.empty() ? scored.id : scored.id + " / " + scored.variate;
  std::string text = to_utf8(printable(name));
  if (scored.points.empty()) {
    return text + fmt::format("   nothing scored: {}\n", why_nothing(series, min_history));
  }
  text += fmt::format("   {} scored, {} {} ({})\n", scored.points.size(), scored.anomalies,
                      scored.anomalies == 1 ? "anomaly" : "anomalies", threshold_text(scored));
  std::vector<detect::Point> found;
  for (const detect::Point& point : scored.points) {
    if (point.anomaly) found.push_back(point);
  }
  if (found.empty()) return text;
  const std::size_t shown = std::min(found.size(), kShownAnomalies);
  std::ranges::partial_sort(found, found.begin() + static_cast<std::ptrdiff_t>(shown), {},
                            &detect::Point::p);
  found.resize(shown);
  std::ranges::sort(found, {}, &detect::Point::step);
  std::size_t width = 4;
  for (const detect::Point& point : found) {
    width = std::max(width, data::format_time(point.time, series.style).size());
  }
  text += fmt::format("  {:<{}}   {:>10}   {:>10}   {:>6}   normal\n", "time", width, "observed",
                      "forecast", "bits");
  for (const detect::Point& point : found) {
    text += fmt::format("  {:<{}}   {:>10}   {:>10}   {:>6.1f}   {} \u2026 {}\n",
                        data::format_time(point.time, series.style), width,
                        number(point.value, scored.value_offset),
                        number(point.median, scored.value_offset), detect::bits(point.p),
                        number(point.low, scored.value_offset),
                        number(point.high, scored.value_offset));
  }
  if (scored.anomalies > shown) {
    text += fmt::format("  the strongest {} of {}\n", shown, scored.anomalies);
  }
  return text;
}

}  // namespace

void keep_last(std::vector<detect::Scored>& scored, std::span<const data::TimeSeries> series,
               std::size_t last) {
  for (detect::Scored& one : scored) {
    const std::size_t steps = series[one.index].steps;
    const std::size_t first = steps - std::min(steps, last);
    std::erase_if(one.points, [&](const detect::Point& point) { return point.step < first; });
    one.anomalies =
        static_cast<std::size_t>(std::ranges::count(one.points, true, &detect::Point::anomaly));
  }
}

std::string detect_table(std::span<const data::TimeSeries> series,
                         std::span<const detect::Scored> scored, std::size_t min_history,
                         const ModelInfo& model) {
  std::string text;
  // Those with anomalies first: they are what somebody looks for.
  std::vector<const detect::Scored*> order;
  for (const detect::Scored& one : scored) order.push_back(&one);
  std::ranges::stable_sort(order, [](const detect::Scored* a, const detect::Scored* b) {
    return (a->anomalies > 0) > (b->anomalies > 0);
  });
  const std::size_t shown = std::min(order.size(), kShownSeries);
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += '\n';
    text += block(series[order[i]->index], *order[i], min_history);
  }
  if (shown < order.size()) text += fmt::format("\nand {} more series\n", order.size() - shown);
  return text +
         fmt::format("\nmodel {}{}\n", model.name,
                     model.synthetic ? " (SYNTHETIC weights: these scores mean nothing)" : "");
}

}  // namespace toto::cli
