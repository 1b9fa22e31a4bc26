// SPDX-License-Identifier: Apache-2.0
#include "tools/backtest/read_forecast.h"

#include <algorithm>
#include <cmath>

#include "engine/guards.h"
#include "tools/backtest/transform.h"

namespace toto::backtest {
namespace {

using Kind = Aggregate::Kind;

bool has_quantile(Kind kind) {
  return kind == Kind::quantile || kind == Kind::mean_quantile || kind == Kind::quantile_std;
}

bool has_std(Kind kind) { return kind == Kind::mean_std || kind == Kind::quantile_std; }

/// A level as the engine takes it: within (0, 1). Only an aggregate may ask for 0 or 1.
double engine_level(double level) {
  if (level <= 0) return 1e-6;
  return level < 1 ? level : 1 - 1e-6;
}

/// One step of one variate whose distribution is exact.
class ExactReader {
 public:
  explicit ExactReader(const Forecast& forecast)
      : forecast_(forecast), cells_(forecast.variates * forecast.horizon) {}

  [[nodiscard]] double quantile(double level, std::size_t cell) const {
    const auto at = std::ranges::lower_bound(forecast_.levels, engine_level(level));
    return forecast_
        .quantiles[static_cast<std::size_t>(at - forecast_.levels.begin()) * cells_ + cell];
  }
  [[nodiscard]] double mean(std::size_t cell) const { return forecast_.mean[cell]; }

  /// What the model says, in its units.
  [[nodiscard]] double point(const Aggregate& point, std::size_t cell) const {
    const double mean = forecast_.mean[cell];
    const double known = forecast_.std[cell];
    const auto std = [&] {
      return std::isnan(known) ? spread_of_band(quantile(kBandLow, cell), quantile(kBandHigh, cell))
                               : known;
    };
    switch (point.kind) {
      case Kind::mean:
        return mean;
      case Kind::quantile:
        return quantile(point.first, cell);
      case Kind::mean_std:
        return mean + point.first * std();
      case Kind::mean_quantile:
        return point.second * mean + (1 - point.second) * quantile(point.first, cell);
      case Kind::quantile_std:
        return quantile(point.first, cell) + point.second * std();
      case Kind::trimmed:
        break;
    }
    const toto::Parameters& p = forecast_.parameters;
    const std::size_t k = p.components;
    if (k == 0) return trimmed(point.first, 1 - point.second, cell);  // no mixture: quantiles
    const auto part = [&](const std::vector<double>& all) {
      return std::span(all).subspan(cell * k, k);
    };
    const double scaled =
        aggregate(point, ExactStep{part(p.df), part(p.loc), part(p.scale), part(p.probability)});
    return p.affine_loc[cell] + p.affine_scale[cell] * scaled;
  }

 private:
  /// The mean of the quantile function from one level to another: linear between levels(), flat
  /// beyond them.
  [[nodiscard]] double trimmed(double from, double to, std::size_t cell) const {
    double level = 0, value = quantile(levels().front(), cell), sum = 0;
    const auto add = [&](double next_level, double next_value) {
      const double slope = (next_value - value) / (next_level - level);
      const double low = std::clamp(from, level, next_level);
      const double high = std::clamp(to, level, next_level);
      sum += (high - low) * (value + slope * ((low + high) / 2 - level));
      level = next_level;
      value = next_value;
    };
    for (const double next : levels()) add(next, quantile(next, cell));
    add(1, value);
    return sum / (to - from);
  }

  const Forecast& forecast_;
  std::size_t cells_;
};

}  // namespace

std::size_t exact_steps(const Parameters& parameters, std::size_t steps, std::size_t patch) {
  return std::min(steps, parameters.transform == Transform::none ? patch : 1);
}

bool needs_trajectories(const Parameters& parameters, std::size_t steps, std::size_t patch) {
  return exact_steps(parameters, steps, patch) < steps;
}

Wanted wanted_of(const Parameters& parameters) {
  return {parse_aggregates(parameters.aggregate), {levels().begin(), levels().end()}};
}

ForecastOptions forecast_options(const Parameters& parameters, const Wanted& wanted,
                                 std::size_t steps, std::size_t patch) {
  ForecastOptions options;
  options.horizon = steps;
  options.num_samples = parameters.samples;
  options.levels.clear();
  for (const double level : wanted.levels) options.levels.push_back(engine_level(level));
  for (const Aggregate& point : wanted.points) {
    if (has_quantile(point.kind)) options.levels.push_back(engine_level(point.first));
    if (has_std(point.kind)) options.levels.insert(options.levels.end(), {kBandLow, kBandHigh});
    if (point.kind == Kind::trimmed) options.keep_parameters = true;
  }
  options.keep_samples = needs_trajectories(parameters, steps, patch);
  options.input_scale = has_automatic_scale(parameters) ? 0 : 1;
  // Returns in the gap would be lost: the next value follows from all moves since the last one.
  options.across_missing = parameters.transform == Transform::none;
  return options;
}

ModelDefaults settled(const Options& options, const ModelDefaults& defaults) {
  return {defaults.paths, defaults.meaning(options.tails)};
}

void take_views(ForecastOptions& options, const Views& views) {
  options.views = views;
  if (views.any()) options.keep_samples = false;
}

std::size_t keep_bounds(std::span<float> read, const Wanted& wanted, const Guards& guards,
                        std::span<const double> offsets) {
  if (!bounds_of(guards).any() && !guards.integer) return 0;
  const std::size_t mean = wanted.points.size();
  std::size_t moved = 0;
  const std::size_t size = read.size() / std::max<std::size_t>(1, offsets.size());
  for (std::size_t cell = 0; cell < read.size(); cell += wanted.size()) {
    const double offset = offsets.empty() ? 0 : offsets[cell / size];
    const Bounds bounds = bounds_of(guards, offset);
    bool beyond = false;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      float& value = read[cell + i];
      if (guards.integer && i != mean) value = to_whole(value, offset);
      beyond = beyond || !bounds.hold(value);
      value = bounds.nearest(value);
    }
    moved += beyond ? 1 : 0;
  }
  return moved;
}

std::vector<float> read_forecast(const Forecast& forecast, const Parameters& parameters,
                                 const Wanted& wanted, std::span<const double> bases,
                                 std::size_t patch, std::span<const double> offsets) {
  const std::size_t steps = forecast.horizon;
  const std::size_t exact =
      forecast.samples.empty() ? steps  // averages of views have no trajectories
      : forecast.applied.missing_end == 0
          ? exact_steps(parameters, steps, patch)
          : std::min(exact_steps(parameters, steps, patch), forecast.exact_steps);
  const double scale = input_scale(parameters);
  std::vector<float> out;
  out.reserve(forecast.variates * steps * wanted.size());
  std::vector<double> path(steps);
  std::vector<double> on_line((steps - exact) * forecast.num_samples);  // [step][sample]
  const ExactReader reader(forecast);
  for (std::size_t v = 0; v < forecast.variates; ++v) {
    const double base = bases[v];
    const bool moves = parameters.transform != Transform::none;
    const double offset = moves && !offsets.empty() ? offsets[v] : 0;
    const auto put = [&](double x) {
      const double value = to_value(parameters.transform, base, x);
      out.push_back(static_cast<float>(offset == 0 ? value : value - offset));
    };
    const Line line = first_step(parameters.transform, scale, base);
    for (std::size_t h = 0; h < exact; ++h) {
      const std::size_t cell = v * steps + h;
      const auto put_mapped = [&](double x) { put(line.shift + line.slope * x); };
      for (const Aggregate& point : wanted.points) put_mapped(reader.point(point, cell));
      put_mapped(reader.mean(cell));
      for (const double level : wanted.levels) put_mapped(reader.quantile(level, cell));
    }
    for (std::size_t n = 0; n < forecast.num_samples && exact < steps; ++n) {
      const float* drawn = forecast.samples.data() + (n * forecast.variates + v) * steps;
      std::copy(drawn, drawn + steps, path.begin());
      follow(parameters.transform, scale, base, path);
      for (std::size_t h = exact; h < steps; ++h) {
        on_line[(h - exact) * forecast.num_samples + n] = path[h];
      }
    }
    for (std::size_t h = exact; h < steps; ++h) {
      const std::span<double> all =
          std::span(on_line).subspan((h - exact) * forecast.num_samples, forecast.num_samples);
      std::ranges::sort(all);
      for (const Aggregate& point : wanted.points) put(aggregate(point, all));
      put(aggregate(Aggregate{Kind::mean, 0, 0}, all));
      for (const double level : wanted.levels) put(quantile_of(all, level));
    }
  }
  return out;
}

}  // namespace toto::backtest
