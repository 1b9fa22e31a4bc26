// SPDX-License-Identifier: Apache-2.0
// Forecasts of the future with parameters that were found on the past.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/json.h"
#include "engine/adapted.h"
#include "models/model_impl.h"
#include "tools/backtest/band_width.h"
#include "tools/backtest/check.h"
#include "tools/backtest/read_forecast.h"
#include "tools/backtest/transform.h"

namespace toto::backtest {
namespace {

struct Shown {
  std::vector<float> values;
  std::vector<std::uint8_t> mask;
  std::vector<double> bases;
  std::vector<double> offsets;  // [V] of the user's values
  std::vector<double> shown_offsets;
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
    const double offset = series.offset_of(v);
    if (moves && !std::ranges::all_of(values, [&](float x) { return offset + double{x} > 0; })) {
      throw Error(ExitStatus::bad_data, "non_positive_value",
                  fmt::format("{} has values that are not positive, which have no returns",
                              quote(series.variates[v])),
                  where);
    }
    show(parameters.transform, input_scale(parameters), offset, values,
         std::span(context.mask).subspan(v * bars, bars), shown.values, shown.mask);
    shown.bases.push_back(offset + values.back());
    if (series.value_offsets.empty()) continue;
    shown.offsets.push_back(offset);
    if (moves) continue;
    shown.shown_offsets.push_back(offset * input_scale(parameters));
  }
  return shown;
}

/// A series as the engine is to see it, and what is asked of it.
struct Call {
  Shown shown;
  Wanted wanted;
};

Wanted wanted_for(const Parameters& parameters, const ForecastOptions& asked) {
  Wanted wanted;
  wanted.points = parse_aggregates(parameters.aggregate);
  wanted.points.push_back(parse_aggregate("median"));
  wanted.levels.assign(asked.levels.begin(), asked.levels.end());
  std::ranges::sort(wanted.levels);
  return wanted;
}

Forecast in_users_units(const Forecast& raw, const Call& call, const Parameters& parameters,
                        const Guards& guards, std::size_t patch) {
  const Wanted& wanted = call.wanted;
  std::vector<float> read =
      read_forecast(raw, parameters, wanted, call.shown.bases, patch, call.shown.offsets);
  stretch(read, wanted, wanted.points.size() - 1, parameters);  // the median is the last point
  require_finite(read, "series " + quote(raw.id));
  Forecast out;
  out.applied = raw.applied;
  out.applied.value_offset = call.shown.offsets;
  out.applied.bounded = keep_bounds(read, wanted, guards, call.shown.offsets);
  out.id = raw.id;
  out.variates = raw.variates;
  out.horizon = raw.horizon;
  out.exact_steps = exact_steps(parameters, raw.horizon, patch);
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
                                    const ForecastOptions& asked) {
  check_guards(asked.guards);
  for (const Parameters& one : parameters) check_views(asked.views, one);
  const std::size_t patch = static_cast<std::size_t>(forecaster.model().impl().net->patch());
  std::vector<Call> calls(series.size());
  std::vector<Series> views(series.size());
  std::vector<ForecastOptions> options(series.size());
  for (std::size_t i = 0; i < series.size(); ++i) {
    calls[i] = {show_series(series[i], parameters[i]), wanted_for(parameters[i], asked)};
    options[i] = forecast_options(parameters[i], calls[i].wanted, asked.horizon, patch);
    options[i].seed = asked.seed;
    options[i].decode = asked.decode;
    options[i].decoding = asked.decoding;
    options[i].paths = asked.paths;
    options[i].tails = asked.tails;
    options[i].align = asked.align;
    options[i].guards.clamp = asked.guards.clamp;
    take_views(options[i], asked.views);
    options[i].progress = asked.progress;
    views[i].id = series[i].id;
    views[i].variates = series[i].variates.size();
    views[i].steps = calls[i].shown.values.size() / views[i].variates;
    views[i].values = calls[i].shown.values;
    views[i].mask = calls[i].shown.mask;
    views[i].value_offsets = calls[i].shown.shown_offsets;
    if (options[i].across_missing && missing_end(views[i]) > 0 && !asked.views.any()) {
      options[i].keep_samples = true;
    }
  }
  std::vector<Forecast> raw(series.size());
  forecaster.forecast(views, options, raw);
  std::vector<Forecast> out;
  out.reserve(series.size());
  for (std::size_t i = 0; i < series.size(); ++i) {
    out.push_back(in_users_units(raw[i], calls[i], parameters[i], asked.guards, patch));
  }
  return out;
}

}  // namespace toto::backtest
