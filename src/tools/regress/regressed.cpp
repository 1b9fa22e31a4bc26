// SPDX-License-Identifier: Apache-2.0
// Taking the effect out of a series, and putting it back into a forecast.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/check_finite.h"
#include "engine/guards.h"
#include "statistics/mixture.h"
#include "toto/tools/regress.hpp"

namespace toto::regress {
namespace {

double normal_quantile(double level) {
  const std::array df = {std::numeric_limits<double>::infinity()};  // Student's t with it
  const std::array zero = {0.0};
  const std::array one = {1.0};
  Mixture normal(1);
  normal.assign(df, zero, one, one);
  return normal.quantile(level);
}

/// Of one step, what Guards say (engine/guards.cpp, of the results of the engine).
void keep_bounds(Forecast& forecast, std::size_t cell, const Bounds& bounds, bool integer,
                 double offset) {
  const std::size_t cells = forecast.variates * forecast.horizon;
  bool beyond = false;
  const auto keep = [&](std::vector<float>& values, std::size_t at, bool whole) {
    if (values.empty()) return;
    float& value = values[at];
    if (whole) value = to_whole(value, offset);
    beyond = beyond || !bounds.hold(value);
    value = bounds.nearest(value);
  };
  keep(forecast.mean, cell, false);
  keep(forecast.median, cell, integer);
  keep(forecast.point, cell, integer);
  for (std::size_t q = 0; q < forecast.levels.size(); ++q) {
    keep(forecast.quantiles, q * cells + cell, integer);
  }
  forecast.applied.bounded += beyond ? 1 : 0;
  for (std::size_t n = 0; n < forecast.num_samples; ++n) {
    keep(forecast.samples, n * cells + cell, integer);
  }
  if (!forecast.std.empty() && forecast.std[cell] > (bounds.high - bounds.low) / 2) {
    forecast.std[cell] = std::numeric_limits<float>::quiet_NaN();
  }
}

}  // namespace

Regressed take_out(const data::TimeSeries& series) {
  check_finite(series.id, series.values, series.steps, series.future_covariates);
  const std::size_t targets = series.targets();
  const std::size_t columns = series.covariates;
  const std::size_t steps = series.steps;
  Regressed out;
  out.horizon = columns == 0 ? 0 : series.future_covariates.size() / columns;
  out.residuals = series;
  out.residuals.covariates = 0;
  out.residuals.future_covariates.clear();
  out.residuals.variates.resize(targets);
  out.residuals.values.resize(targets * steps);
  out.residuals.mask.resize(targets * steps);
  if (!out.residuals.value_offsets.empty()) out.residuals.value_offsets.resize(targets);
  const auto known = std::span(series.values).subspan(targets * steps);
  std::vector<double> x(columns);
  for (std::size_t v = 0; v < targets; ++v) {
    const auto y = std::span(out.residuals.values).subspan(v * steps, steps);
    const auto mask = std::span(series.mask).subspan(v * steps, steps);
    const Fit found = fit(y, mask, known);
    for (std::size_t t = 0; t < steps && found.found; ++t) {
      for (std::size_t j = 0; j < columns; ++j) x[j] = static_cast<double>(known[j * steps + t]);
      const bool gap = mask[t] == 0 && t > 0;
      y[t] = gap ? y[t - 1] : static_cast<float>(static_cast<double>(y[t]) - found.effect(x));
    }
    for (std::size_t h = 0; h < out.horizon; ++h) {
      for (std::size_t j = 0; j < columns; ++j) {
        x[j] = static_cast<double>(series.future_covariates[j * out.horizon + h]);
      }
      out.effect.push_back(found.effect(x));
      out.deviation.push_back(std::sqrt(found.variance(x)));
    }
    out.fits.push_back(found);
  }
  return out;
}

ForecastOptions options_of_residuals(ForecastOptions options) {
  check_adaptation(options);
  options.guards = {options.guards.clamp};
  return options;
}

double stretch(double deviation, double spread, double low, double high) {
  const double model = spread / (normal_quantile(high) - normal_quantile(low));
  if (!(deviation > 0) || !(model > 0)) return 1;
  return std::sqrt(1 + deviation * deviation / (model * model));
}

void put_back(Forecast& forecast, const Regressed& regressed, const Guards& guards) {
  const std::size_t cells = forecast.variates * forecast.horizon;
  const std::size_t levels = forecast.levels.size();
  const bool bands = levels > 1 && forecast.quantiles.size() == levels * cells;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    const double effect = regressed.effect[cell];
    double factor = 1;
    if (bands) {
      const double spread = static_cast<double>(forecast.quantiles[(levels - 1) * cells + cell]) -
                            static_cast<double>(forecast.quantiles[cell]);
      factor = stretch(regressed.deviation[cell], spread, forecast.levels.front(),
                       forecast.levels.back());
    }
    const double centre = forecast.median.empty() ? 0 : static_cast<double>(forecast.median[cell]);
    const auto shift = [&](std::vector<float>& values, std::size_t at, double by) {
      if (values.empty()) return;
      const auto value = static_cast<double>(values[at]);
      values[at] = static_cast<float>(centre + (value - centre) * by + effect);
    };
    shift(forecast.mean, cell, 1);
    shift(forecast.point, cell, 1);
    if (!forecast.std.empty()) {
      forecast.std[cell] = static_cast<float>(
          std::hypot(static_cast<double>(forecast.std[cell]), regressed.deviation[cell]));
    }
    for (std::size_t q = 0; q < levels && !forecast.quantiles.empty(); ++q) {
      shift(forecast.quantiles, q * cells + cell, factor);
    }
    for (std::size_t n = 0; n < forecast.num_samples && !forecast.samples.empty(); ++n) {
      shift(forecast.samples, n * cells + cell, factor);
    }
    shift(forecast.median, cell, 1);
    const double offset = regressed.residuals.offset_of(cell / forecast.horizon);
    const Bounds bounds = bounds_of(guards, offset);
    if (!bounds.any() && !guards.integer) continue;
    keep_bounds(forecast, cell, bounds, guards.integer, offset);
  }
}

}  // namespace toto::regress
