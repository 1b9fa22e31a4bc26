// SPDX-License-Identifier: Apache-2.0
// Forecasts and trajectories as CSV in long format.
#include <fmt/format.h>

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

using Style = ColumnNames::Style;

/// Rows that start alike: unique_id, variate if there are several, ds; and that end alike.
class Rows {
 public:
  Rows(const TextSink& sink, std::span<const TimeSeries> series, const RunInfo& run)
      : out_(sink), columns_(run.columns), synthetic_(run.synthetic) {
    several_ = std::ranges::any_of(series, [](const TimeSeries& s) { return s.targets() > 1; });
  }

  TextWriter& header() {
    if (columns_.style == Style::chronos) return out_.raw("item_id,timestamp,target_name");
    const bool own = columns_.style == Style::toto;
    out_.csv_field(own ? columns_.id : "unique_id").raw(several_ ? ",variate," : ",");
    return out_.csv_field(own ? columns_.time : "ds");
  }
  void end_header() { out_.raw(synthetic_ ? ",weights\n" : "\n"); }
  TextWriter& begin(const TimeSeries& series, std::size_t variate, std::string_view time) {
    out_.csv_field(series.id);
    if (columns_.style == Style::chronos) {
      return out_.raw(",").raw(time).raw(",").csv_field(series.variates[variate]);
    }
    if (several_) out_.raw(",").csv_field(series.variates[variate]);
    return out_.raw(",").raw(time);
  }
  void end() { out_.raw(synthetic_ ? ",synthetic\n" : "\n"); }
  void finish() { out_.finish(); }

 private:
  TextWriter out_;
  const ColumnNames& columns_;
  bool synthetic_;
  bool several_ = false;
};

/// 0.1 is lo-80 beside 0.9, and q-10 alone.
std::string nixtla_name(double level, const std::vector<double>& levels) {
  const bool pair = std::ranges::any_of(
      levels, [level](double other) { return std::abs(level + other - 1) < 1e-9; });
  const auto percent = [](double share) { return std::round(share * 1e8) / 1e6; };
  if (!pair || std::abs(level - 0.5) < 1e-9) return fmt::format("Toto-q-{}", percent(level));
  return level < 0.5 ? fmt::format("Toto-lo-{}", percent(1 - 2 * level))
                     : fmt::format("Toto-hi-{}", percent(2 * level - 1));
}

std::string level_name(double level, const std::vector<double>& levels, Style style) {
  if (style == Style::nixtla) return nixtla_name(level, levels);
  return fmt::format("{}{}", style == Style::chronos ? "" : "q", level_text(level));
}

/// The columns before those of the levels.
std::string_view point_columns(Style style, bool points) {
  if (style == Style::nixtla) return ",Toto";
  if (style == Style::chronos) return ",predictions";
  return points ? ",point,mean" : ",mean";
}

/// The one point forecast of the styles that have one.
float point_of(const Forecast& forecast, std::size_t at) {
  if (!forecast.point.empty()) return forecast.point[at];
  return forecast.median.empty() ? forecast.mean[at] : forecast.median[at];
}

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
  const Style style = run.columns.style;
  TextWriter& header = rows.header().raw(point_columns(style, points));
  for (const double level : levels) header.raw(",").raw(level_name(level, levels, style));
  rows.end_header();
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Forecast& forecast = forecasts[i];
    const std::size_t values = forecast.variates * forecast.horizon;
    const std::vector<std::string> times = future_texts(series[i], forecast.horizon);
    for (std::size_t v = 0; v < series[i].targets(); ++v) {
      const double offset = series[i].offset_of(v);
      for (std::size_t t = 0; t < forecast.horizon; ++t) {
        const std::size_t at = v * forecast.horizon + t;
        TextWriter& out = rows.begin(series[i], v, times[t]);
        if (style != Style::toto) {
          out.raw(",").number(offset, point_of(forecast, at), "");
        } else {
          const float point = forecast.point.empty() ? NAN : forecast.point[at];
          if (points) out.raw(",").number(offset, point, "");
          out.raw(",").number(offset, forecast.mean[at], "");
        }
        for (const double level : levels) {
          out.raw(",");
          const auto found = std::ranges::find(forecast.levels, level);
          if (forecast.quantiles.empty() || found == forecast.levels.end()) continue;
          const auto q = static_cast<std::size_t>(found - forecast.levels.begin());
          out.number(offset, forecast.quantiles[q * values + at], "");
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
          TextWriter& out = rows.begin(series[i], v, times[t]).raw(",").integer(n).raw(",");
          out.number(series[i].offset_of(v), path[t], "");
          rows.end();
        }
      }
    }
  }
  rows.finish();
}

}  // namespace toto::data
