// SPDX-License-Identifier: Apache-2.0
// Forecasts and trajectories as CSV in long format.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "data/text_writer.h"
#include "toto/tools/output.hpp"

namespace toto::data {
namespace {

/// The levels of all forecasts, ascending: all of one run have the same or, in mean mode, none.
std::vector<double> levels_of(std::span<const Forecast> forecasts) {
  std::vector<double> levels;
  for (const Forecast& forecast : forecasts) {
    if (!forecast.quantiles.empty()) {
      levels.insert(levels.end(), forecast.levels.begin(), forecast.levels.end());
    }
  }
  std::ranges::sort(levels);
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  return levels;
}

/// Rows that start alike: unique_id, variate if there are several, ds; and that end alike.
class Rows {
 public:
  Rows(const TextSink& sink, std::span<const TimeSeries> series, const RunInfo& run)
      : out_(sink), synthetic_(run.synthetic) {
    several_ = std::ranges::any_of(series, [](const TimeSeries& s) { return s.targets() > 1; });
  }

  TextWriter& header() { return out_.raw(several_ ? "unique_id,variate,ds" : "unique_id,ds"); }
  void end_header() { out_.raw(synthetic_ ? ",weights\n" : "\n"); }
  TextWriter& begin(const TimeSeries& series, std::size_t variate, std::string_view time) {
    out_.csv_field(series.id);
    if (several_) out_.raw(",").csv_field(series.variates[variate]);
    return out_.raw(",").raw(time);
  }
  void end() { out_.raw(synthetic_ ? ",synthetic\n" : "\n"); }
  void finish() { out_.finish(); }

 private:
  TextWriter out_;
  bool synthetic_;
  bool several_ = false;
};

std::vector<std::string> future_texts(const TimeSeries& series, std::size_t horizon) {
  std::vector<std::string> texts;
  for (const std::int64_t time : future_times(series, horizon)) {
    texts.push_back(format_time(time, series.style));
  }
  return texts;
}

}  // namespace

void write_csv(const TextSink& sink, std::span<const TimeSeries> series,
               std::span<const Forecast> forecasts, const RunInfo& run) {
  check_outputs(series, forecasts);
  const std::vector<double> levels = levels_of(forecasts);
  Rows rows(sink, series, run);
  const bool points =
      std::ranges::any_of(forecasts, [](const Forecast& f) { return !f.point.empty(); });
  TextWriter& header = rows.header().raw(points ? ",point,mean" : ",mean");
  for (const double level : levels) header.raw(",q").raw(level_text(level));
  rows.end_header();
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Forecast& forecast = forecasts[i];
    const std::size_t values = forecast.variates * forecast.horizon;
    const std::vector<std::string> times = future_texts(series[i], forecast.horizon);
    for (std::size_t v = 0; v < series[i].targets(); ++v) {
      for (std::size_t t = 0; t < forecast.horizon; ++t) {
        const std::size_t at = v * forecast.horizon + t;
        TextWriter& out = rows.begin(series[i], v, times[t]);
        if (points) out.raw(",").number(forecast.point.empty() ? NAN : forecast.point[at], "");
        out.raw(",").number(forecast.mean[at], "");
        for (const double level : levels) {
          out.raw(",");
          const auto found = std::ranges::find(forecast.levels, level);
          if (forecast.quantiles.empty() || found == forecast.levels.end()) continue;
          const auto q = static_cast<std::size_t>(found - forecast.levels.begin());
          out.number(forecast.quantiles[q * values + at], "");
        }
        rows.end();
      }
    }
  }
  rows.finish();
}

void write_samples_csv(const TextSink& sink, std::span<const TimeSeries> series,
                       std::span<const Forecast> forecasts, const RunInfo& run) {
  check_outputs(series, forecasts);
  Rows rows(sink, series, run);
  rows.header().raw(",sample,value");
  rows.end_header();
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Forecast& forecast = forecasts[i];
    if (forecast.samples.empty()) continue;
    const std::vector<std::string> times = future_texts(series[i], forecast.horizon);
    for (std::size_t v = 0; v < series[i].targets(); ++v) {
      for (std::size_t n = 0; n < forecast.num_samples; ++n) {
        const float* const path =
            forecast.samples.data() + (n * forecast.variates + v) * forecast.horizon;
        for (std::size_t t = 0; t < forecast.horizon; ++t) {
          rows.begin(series[i], v, times[t]).raw(",").integer(n).raw(",").number(path[t], "");
          rows.end();
        }
      }
    }
  }
  rows.finish();
}

}  // namespace toto::data
