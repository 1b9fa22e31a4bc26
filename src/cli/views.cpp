// SPDX-License-Identifier: Apache-2.0
// Forecasts as a figure and as a table.
#include "cli/views.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/table.h"
#include "data/value_offset.h"

namespace toto::cli {
namespace {

/// Values that are differences from an offset, in the user's units.
std::vector<double> row(std::span<const float> values, std::size_t at, std::size_t length,
                        double offset) {
  if (values.empty()) return {};
  return data::plus_offset(values.subspan(at * length, length), offset);
}

// The row of one variate of one level out of [levels][V][H].
std::vector<double> quantile_row(const Forecast& forecast, double level, std::size_t variate,
                                 double offset) {
  const auto at = std::find(forecast.levels.begin(), forecast.levels.end(), level);
  const auto index = static_cast<std::size_t>(at - forecast.levels.begin());
  return row(forecast.quantiles, index * forecast.variates + variate, forecast.horizon, offset);
}

std::string name_of(const data::TimeSeries& series, std::size_t variate) {
  return series.targets() == 1 ? series.id : series.id + " / " + series.variates[variate];
}

plot::Panel make_panel(const data::TimeSeries& series, const Forecast& forecast,
                       std::size_t variate, std::span<const BandLevels> bands) {
  plot::Panel panel;
  panel.name = name_of(series, variate);
  const double offset = series.offset_of(variate);
  if (series.style.form != data::TimeStyle::Form::index) {
    panel.history_time = series.times;
    panel.future_time = data::future_times(series, forecast.horizon);
  }
  panel.history = row(series.values, variate, series.steps, offset);
  const auto mask = series.mask.begin() + static_cast<std::ptrdiff_t>(variate * series.steps);
  panel.observed.assign(mask, mask + static_cast<std::ptrdiff_t>(series.steps));
  panel.median = row(forecast.median, variate, forecast.horizon, offset);
  panel.mean = row(forecast.mean, variate, forecast.horizon, offset);
  if (forecast.median.empty()) return panel;
  for (const BandLevels& band : bands) {
    panel.bands.push_back({band.level, quantile_row(forecast, band.lower, variate, offset),
                           quantile_row(forecast, band.upper, variate, offset)});
  }
  return panel;
}

std::string interval_name(const BandLevels& band) {
  return fmt::format("{:.6g} % interval", 100 * band.level);
}

TableSeries make_rows(const data::TimeSeries& series, const Forecast& forecast, std::size_t variate,
                      std::span<const BandLevels> bands) {
  TableSeries table;
  table.name = name_of(series, variate);
  const double offset = series.offset_of(variate);
  for (const std::int64_t time : data::future_times(series, forecast.horizon)) {
    table.times.push_back(data::format_time(time, series.style));
  }
  table.history = row(series.values, variate, series.steps, offset);
  if (forecast.median.empty()) {
    table.centre = row(forecast.mean, variate, forecast.horizon, offset);
    return table;
  }
  const bool point = !forecast.point.empty();  // --aggregate asks for one
  table.centre = row(point ? forecast.point : forecast.median, variate, forecast.horizon, offset);
  for (const BandLevels& band : bands) {
    std::vector<double> lower = quantile_row(forecast, band.lower, variate, offset);
    std::vector<double> upper = quantile_row(forecast, band.upper, variate, offset);
    if (table.lower.empty()) {
      table.lower = std::move(lower);
      table.upper = std::move(upper);
    } else {
      table.more.push_back({interval_name(band), std::move(lower), std::move(upper)});
    }
  }
  return table;
}

std::string origin(const Forecast& forecast, const ModelInfo& model, std::uint64_t seed) {
  if (model.head == "quantiles" && forecast.exact_steps == forecast.horizon) {
    return forecast.median.empty()
               ? "means of the interpolated quantiles"
               : fmt::format("{} quantiles of each step, linear between them", model.components);
  }
  if (forecast.median.empty()) return "means fed back, nothing drawn";
  if (forecast.exact_steps == forecast.horizon) return "exact, nothing drawn";
  std::string drawn = fmt::format("{} trajectories, seed {}", forecast.num_samples, seed);
  if (forecast.exact_steps == 0) return drawn;
  return fmt::format("the first {} steps exact, the others from {}", forecast.exact_steps, drawn);
}

}  // namespace

plot::Figure make_figure(std::span<const data::TimeSeries> series,
                         std::span<const Forecast> forecasts, const ModelInfo& model,
                         std::span<const BandLevels> bands) {
  plot::Figure figure;
  const std::size_t horizon = forecasts.empty() ? 0 : forecasts.front().horizon;
  figure.title = fmt::format("Forecast of the next {} steps", horizon);
  figure.footnote = "Model: " + model.name;
  figure.synthetic = model.synthetic;
  for (std::size_t i = 0; i < series.size(); ++i) {
    for (std::size_t variate = 0; variate < series[i].targets(); ++variate) {
      figure.panels.push_back(make_panel(series[i], forecasts[i], variate, bands));
    }
  }
  return figure;
}

std::string make_table(std::span<const data::TimeSeries> series,
                       std::span<const Forecast> forecasts, const ModelInfo& model,
                       std::uint64_t seed, std::size_t width, std::span<const BandLevels> bands) {
  std::vector<TableSeries> tables;
  for (std::size_t i = 0; i < series.size(); ++i) {
    for (std::size_t variate = 0; variate < series[i].targets(); ++variate) {
      tables.push_back(make_rows(series[i], forecasts[i], variate, bands));
    }
  }
  TableLook look;
  look.width = width;
  if (forecasts.front().median.empty()) look.centre_name = "mean";
  if (std::ranges::any_of(forecasts, [](const Forecast& f) { return !f.point.empty(); })) {
    look.centre_name = "point";
  }
  if (!bands.empty()) look.interval_name = interval_name(bands.front());
  return forecast_table(tables, look) +
         fmt::format("\nmodel {}{}; {}\n", model.name,
                     model.synthetic ? " (SYNTHETIC weights: this forecast means nothing)" : "",
                     origin(forecasts.front(), model, seed));
}

}  // namespace toto::cli
