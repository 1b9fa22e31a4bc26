// SPDX-License-Identifier: Apache-2.0
// Forecasts as a figure and as a table.
#include "cli/views.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/table.h"

namespace toto::cli {
namespace {

struct BandLevels {
  double level;
  double lower, upper;
};
constexpr BandLevels kBands[] = {{0.5, 0.25, 0.75}, {0.8, 0.1, 0.9}, {0.95, 0.025, 0.975}};
constexpr BandLevels kTableBand = kBands[1];

std::vector<double> row(const std::vector<float>& values, std::size_t at, std::size_t length) {
  if (values.empty()) return {};
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(at * length);
  return {begin, begin + static_cast<std::ptrdiff_t>(length)};
}

// The row of one variate of one level out of [levels][V][H].
std::vector<double> quantile_row(const Forecast& forecast, double level, std::size_t variate) {
  const auto at = std::find(forecast.levels.begin(), forecast.levels.end(), level);
  const auto index = static_cast<std::size_t>(at - forecast.levels.begin());
  return row(forecast.quantiles, index * forecast.variates + variate, forecast.horizon);
}

std::string name_of(const data::TimeSeries& series, std::size_t variate) {
  return series.targets() == 1 ? series.id : series.id + " / " + series.variates[variate];
}

plot::Panel make_panel(const data::TimeSeries& series, const Forecast& forecast,
                       std::size_t variate) {
  plot::Panel panel;
  panel.name = name_of(series, variate);
  if (series.style.form != data::TimeStyle::Form::index) {
    panel.history_time = series.times;
    panel.future_time = data::future_times(series, forecast.horizon);
  }
  panel.history = row(series.values, variate, series.steps);
  const auto mask = series.mask.begin() + static_cast<std::ptrdiff_t>(variate * series.steps);
  panel.observed.assign(mask, mask + static_cast<std::ptrdiff_t>(series.steps));
  panel.median = row(forecast.median, variate, forecast.horizon);
  panel.mean = row(forecast.mean, variate, forecast.horizon);
  if (forecast.median.empty()) return panel;
  for (const BandLevels& band : kBands) {
    panel.bands.push_back({band.level, quantile_row(forecast, band.lower, variate),
                           quantile_row(forecast, band.upper, variate)});
  }
  return panel;
}

TableSeries make_rows(const data::TimeSeries& series, const Forecast& forecast,
                      std::size_t variate) {
  TableSeries table;
  table.name = name_of(series, variate);
  for (const std::int64_t time : data::future_times(series, forecast.horizon)) {
    table.times.push_back(data::format_time(time, series.style));
  }
  table.history = row(series.values, variate, series.steps);
  if (forecast.median.empty()) {
    table.centre = row(forecast.mean, variate, forecast.horizon);
    return table;
  }
  table.centre = row(forecast.median, variate, forecast.horizon);
  table.lower = quantile_row(forecast, kTableBand.lower, variate);
  table.upper = quantile_row(forecast, kTableBand.upper, variate);
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

std::vector<double> band_levels() {
  std::vector<double> levels;
  for (const BandLevels& band : kBands) {
    levels.push_back(band.lower);
    levels.push_back(band.upper);
  }
  return levels;
}

plot::Figure make_figure(std::span<const data::TimeSeries> series,
                         std::span<const Forecast> forecasts, const ModelInfo& model) {
  plot::Figure figure;
  const std::size_t horizon = forecasts.empty() ? 0 : forecasts.front().horizon;
  figure.title = fmt::format("Forecast of the next {} steps", horizon);
  figure.footnote = "Model: " + model.name;
  figure.synthetic = model.synthetic;
  for (std::size_t i = 0; i < series.size(); ++i) {
    for (std::size_t variate = 0; variate < series[i].targets(); ++variate) {
      figure.panels.push_back(make_panel(series[i], forecasts[i], variate));
    }
  }
  return figure;
}

std::string make_table(std::span<const data::TimeSeries> series,
                       std::span<const Forecast> forecasts, const ModelInfo& model,
                       std::uint64_t seed, std::size_t width) {
  std::vector<TableSeries> tables;
  for (std::size_t i = 0; i < series.size(); ++i) {
    for (std::size_t variate = 0; variate < series[i].targets(); ++variate) {
      tables.push_back(make_rows(series[i], forecasts[i], variate));
    }
  }
  TableLook look;
  look.width = width;
  if (forecasts.front().median.empty()) look.centre_name = "mean";
  return forecast_table(tables, look) +
         fmt::format("\nmodel {}{}; {}\n", model.name,
                     model.synthetic ? " (SYNTHETIC weights: this forecast means nothing)" : "",
                     origin(forecasts.front(), model, seed));
}

}  // namespace toto::cli
