// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/verify/measures.h"

namespace toto::verify {
namespace {

constexpr std::size_t kHorizon = 20;  // or a patch, where that is shorter: exact statistics only

struct Plan {
  std::size_t context, origins, series;
};
Plan plan_of(Suite suite) { return suite == Suite::quick ? Plan{256, 2, 8} : Plan{1024, 8, 64}; }

void add_windows(const Series& series, const Plan& plan, std::size_t patch, Windows& windows) {
  const std::size_t h = windows.horizon;
  const std::size_t targets = series.variates - series.exogenous;
  for (std::size_t origin = 1; origin <= plan.origins; ++origin) {
    if (series.steps < origin * h + patch) return;
    const std::size_t end = series.steps - origin * h;
    Window w;
    w.series = series.id;
    w.context = cut(series, end, plan.context);
    w.value_offsets.assign(series.value_offsets.begin(), series.value_offsets.end());
    w.context.id = fmt::format("{} before {}", series.id, origin * h);
    if (std::find(w.context.mask.begin(), w.context.mask.end(), 1) == w.context.mask.end() &&
        !w.context.mask.empty()) {
      continue;  // nothing was observed
    }
    for (std::size_t v = 0; v < targets; ++v) {
      for (std::size_t t = end; t < end + h; ++t) {
        const std::size_t at = v * series.steps + t;
        w.actual.push_back(series.values[at]);
        w.observed.push_back(series.mask.empty() ? 1 : series.mask[at]);
      }
    }
    windows.all.push_back(std::move(w));
  }
}

}  // namespace

Windows make_windows(const VerifyOptions& options, std::size_t patch) {
  const Plan plan = plan_of(options.suite);
  Windows windows;
  windows.horizon = std::min(kHorizon, patch);
  windows.made = options.data.empty();
  for (const Series& s : options.data.first(std::min(plan.series, options.data.size()))) {
    add_windows(s, plan, patch, windows);
  }
  if (windows.made) {
    for (std::size_t i = 0; i < 4; ++i) {
      const OwnedSeries made = made_series(700 + i, plan.context + (plan.origins + 1) * kHorizon);
      add_windows(made.view(), plan, patch, windows);
    }
  }
  if (windows.all.empty()) {
    throw Error(ExitStatus::bad_data, "too_short",
                fmt::format("no series has a patch of {} steps and {} more to be held against",
                            patch, windows.horizon),
                "--data");
  }
  return windows;
}

ForecastOptions window_options(const Windows& windows) {
  ForecastOptions options;
  as_reference(options);
  options.horizon = windows.horizon;
  options.keep_parameters = true;
  return options;
}

std::vector<Series> window_series(const Windows& windows) {
  std::vector<Series> series;
  series.reserve(windows.all.size());
  for (const Window& w : windows.all) series.push_back(w.context.view());
  return series;
}

std::vector<Forecast> forecast_windows(Forecaster& forecaster, const Windows& windows) {
  return forecaster.forecast(window_series(windows), window_options(windows));
}

double context_size(const Window& window, std::size_t v) {
  const OwnedSeries& context = window.context;
  const std::size_t steps = context.values.size() / context.variates;
  const double offset = window.value_offsets.empty() ? 0 : window.value_offsets[v];
  double sum = 0, count = 0;
  for (std::size_t t = v * steps; t < (v + 1) * steps; ++t) {
    if (!context.mask.empty() && context.mask[t] == 0) continue;
    sum += std::abs(offset + static_cast<double>(context.values[t]));
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

Scores score(const Windows& windows, const std::vector<Forecast>& forecasts,
             const std::string& series) {
  Scores s;
  double inside = 0, actual_sum = 0, scaled = 0, scaled_steps = 0, relative_steps = 0;
  std::vector<double> losses;
  for (std::size_t i = 0; i < windows.all.size(); ++i) {
    const Window& w = windows.all[i];
    const Forecast& f = forecasts[i];
    if (!series.empty() && w.series != series) continue;
    losses.resize(f.levels.size());
    const std::size_t cells = f.variates * f.horizon;
    const std::size_t steps = w.context.values.size() / w.context.variates;
    for (std::size_t cell = 0; cell < cells; ++cell) {
      if (w.observed[cell] == 0) continue;
      const std::size_t v = cell / f.horizon;
      const std::span<const float> actual(&w.actual[cell], 1);
      const double error = mean_absolute_error({&f.median[cell], 1}, actual);
      const double naive = naive_error(std::span(w.context.values).subspan(v * steps, steps));
      s.mae += error;
      if (const double size = context_size(w, v); size > 0) {
        s.relative += error / size;
        ++relative_steps;
      }
      if (naive > 0) {
        scaled += error / naive;
        ++scaled_steps;
      }
      inside += coverage({&f.quantiles[cell], 1},
                         {&f.quantiles[(f.levels.size() - 1) * cells + cell], 1}, actual);
      actual_sum += std::abs(static_cast<double>(actual[0]));
      for (std::size_t level = 0; level < f.levels.size(); ++level) {
        losses[level] +=
            quantile_loss(f.levels[level], static_cast<double>(f.quantiles[level * cells + cell]),
                          static_cast<double>(actual[0]));
      }
      ++s.steps;
    }
  }
  const auto n = static_cast<double>(s.steps);
  s.mae /= n;
  s.relative /= relative_steps;
  s.mase = scaled / scaled_steps;
  for (const double loss : losses) {
    s.wql += loss / actual_sum / static_cast<double>(losses.size());
  }
  s.coverage = inside / n;
  return s;
}

double mean_quantile_difference(const std::vector<Forecast>& a, const std::vector<Forecast>& b) {
  double sum = 0;
  std::size_t count = 0;
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < b.size(); ++i) {
    const std::size_t cells = b[i].variates * b[i].horizon;
    if (a[i].quantiles.size() != b[i].quantiles.size()) {
      return std::numeric_limits<double>::infinity();
    }
    for (std::size_t j = 0; j < b[i].quantiles.size(); ++j, ++count) {
      const auto wanted = static_cast<double>(b[i].quantiles[j]);
      sum += std::abs(static_cast<double>(a[i].quantiles[j]) - wanted) /
             (b[i].parameters.affine_scale[j % cells] + std::abs(wanted));
    }
  }
  const double mean = sum / static_cast<double>(count);
  return count > 0 && std::isfinite(mean) ? mean : std::numeric_limits<double>::infinity();
}

}  // namespace toto::verify
