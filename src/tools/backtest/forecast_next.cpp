// SPDX-License-Identifier: Apache-2.0
// Forecasts of the future with parameters that were found on the past.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/json.h"
#include "models/model_impl.h"
#include "tools/backtest/check.h"
#include "tools/backtest/read_forecast.h"
#include "tools/backtest/transform.h"

namespace toto::backtest {
namespace {

struct Shown {
  std::vector<float> values;
  std::vector<std::uint8_t> mask;
  std::vector<double> bases;
};

Shown show_series(const data::TimeSeries& series, const Parameters& parameters) {
  const std::string where = "series " + quote(series.id);
  if (series.covariates > 0) {
    throw Error(ExitStatus::usage, "conflicting_flags",
                "parameters of a backtest are for series without covariates", where);
  }
  const bool moves = parameters.transform != Transform::none;
  const std::size_t bars =
      std::min(series.steps, parameters.context + (moves ? std::size_t{1} : std::size_t{0}));
  if (moves && bars < 2) {
    throw Error(ExitStatus::bad_data, "too_short", "one value has no returns", where);
  }
  const data::TimeSeries context = data::last_steps(series, bars);
  Shown shown;
  for (std::size_t v = 0; v < series.variates.size(); ++v) {
    const auto values = std::span(context.values).subspan(v * bars, bars);
    if (moves && !std::ranges::all_of(values, [](float x) { return x > 0; })) {
      throw Error(ExitStatus::bad_data, "non_positive_value",
                  fmt::format("{} has values that are not positive, which have no returns",
                              quote(series.variates[v])),
                  where);
    }
    show(parameters.transform, input_scale(parameters), values,
         std::span(context.mask).subspan(v * bars, bars), shown.values, shown.mask);
    shown.bases.push_back(values.back());
  }
  return shown;
}

Forecast forecast_one(Forecaster& forecaster, const data::TimeSeries& series,
                      const Parameters& parameters, const ForecastOptions& asked) {
  const Shown shown = show_series(series, parameters);
  const std::size_t patch = static_cast<std::size_t>(forecaster.model().impl().net->patch());
  Wanted wanted;
  wanted.points = parse_aggregates(parameters.aggregate);
  wanted.points.push_back(parse_aggregate("median"));
  wanted.levels.assign(asked.levels.begin(), asked.levels.end());
  std::ranges::sort(wanted.levels);
  ForecastOptions options = forecast_options(parameters, wanted, asked.horizon, patch);
  options.seed = asked.seed;
  options.decode = asked.decode;
  options.align = asked.align;
  options.progress = asked.progress;
  Series view;
  view.id = series.id;
  view.variates = series.variates.size();
  view.steps = shown.values.size() / view.variates;
  view.values = shown.values;
  view.mask = shown.mask;
  const Forecast raw = forecaster.forecast({&view, 1}, options).front();
  const std::vector<float> read = read_forecast(raw, parameters, wanted, shown.bases, patch);
  require_finite(read, "series " + quote(series.id));

  Forecast out;
  out.id = series.id;
  out.variates = view.variates;
  out.horizon = asked.horizon;
  out.exact_steps = exact_steps(parameters, asked.horizon, patch);
  out.num_samples = raw.num_samples;
  const std::size_t cells = out.variates * out.horizon;
  const std::size_t first_level = wanted.points.size() + 1;
  out.levels = wanted.levels;
  out.quantiles.resize(wanted.levels.size() * cells);
  for (std::size_t cell = 0; cell < cells; ++cell) {
    const float* from = read.data() + cell * wanted.size();
    out.point.push_back(from[0]);
    out.median.push_back(from[1]);
    out.mean.push_back(from[2]);
    for (std::size_t q = 0; q < wanted.levels.size(); ++q) {
      out.quantiles[q * cells + cell] = from[first_level + q];
    }
  }
  return out;
}

}  // namespace

std::vector<Forecast> forecast_next(Forecaster& forecaster,
                                    std::span<const data::TimeSeries> series,
                                    std::span<const Parameters> parameters,
                                    const ForecastOptions& options) {
  std::vector<Forecast> out;
  out.reserve(series.size());
  for (std::size_t i = 0; i < series.size(); ++i) {
    out.push_back(forecast_one(forecaster, series[i], parameters[i], options));
  }
  return out;
}

}  // namespace toto::backtest
