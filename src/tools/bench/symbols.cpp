// SPDX-License-Identifier: Apache-2.0
// Symbol by mode: time, speed-up, error with its noise, memory.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>

#include "toto/tools/bench.hpp"

namespace toto {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Contexts of a symbol, what came after each, and the last context, which is timed.
struct Symbol {
  std::vector<std::vector<float>> values;  // [windows][V * context]
  std::vector<std::vector<std::uint8_t>> masks;
  std::vector<std::string> ids;
  std::vector<Series> windows;
  std::vector<std::vector<float>> actual;  // [windows][V * horizon]
  std::vector<std::vector<std::uint8_t>> observed;
};

template <typename T>
std::vector<T> cut(std::span<const T> all, std::size_t variates, std::size_t first,
                   std::size_t count) {
  const std::size_t steps = all.size() / variates;
  std::vector<T> out;
  for (std::size_t v = 0; v < variates; ++v) {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(v * steps + first);
    out.insert(out.end(), from, from + static_cast<std::ptrdiff_t>(count));
  }
  return out;
}

Symbol make_symbol(const Series& series, const SymbolOptions& options) {
  Symbol symbol;
  const std::vector<std::uint8_t> all(series.values.size(), 1);
  const std::span<const std::uint8_t> mask = series.mask.empty() ? all : series.mask;
  for (std::size_t w = options.windows; w > 0; --w) {
    const std::size_t back = w * options.horizon;
    if (series.steps < back + options.horizon) continue;
    const std::size_t end = series.steps - back;
    const std::size_t context = std::min(options.context, end);
    std::vector<std::uint8_t> seen = cut(mask, series.variates, end - context, context);
    if (std::ranges::find(seen, 1) == seen.end()) continue;
    symbol.values.push_back(cut(series.values, series.variates, end - context, context));
    symbol.masks.push_back(std::move(seen));
    symbol.ids.push_back(std::string(series.id) + " before " + std::to_string(back));
    symbol.actual.push_back(cut(series.values, series.variates, end, options.horizon));
    symbol.observed.push_back(cut(mask, series.variates, end, options.horizon));
  }
  if (symbol.values.empty()) {
    throw Error(ExitStatus::bad_data, "too_short",
                "expected at least " + std::to_string(2 * options.horizon) + " steps, found " +
                    std::to_string(series.steps),
                "series '" + std::string(series.id) + "'");
  }
  for (std::size_t i = 0; i < symbol.values.size(); ++i) {
    Series view;
    view.id = symbol.ids[i];
    view.variates = series.variates;
    view.steps = symbol.values[i].size() / series.variates;
    view.values = symbol.values[i];
    view.mask = symbol.masks[i];
    symbol.windows.push_back(view);
  }
  return symbol;
}

double error_of(const Symbol& symbol, const std::vector<Forecast>& forecasts) {
  double sum = 0, count = 0;
  for (std::size_t w = 0; w < forecasts.size(); ++w) {
    for (std::size_t i = 0; i < symbol.actual[w].size(); ++i) {
      if (symbol.observed[w][i] == 0) continue;
      sum += std::abs(static_cast<double>(forecasts[w].median[i]) -
                      static_cast<double>(symbol.actual[w][i]));
      ++count;
    }
  }
  return count > 0 ? sum / count : std::nan("");
}

struct Spread {
  double mean = 0, deviation = 0;
};
Spread spread_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double x : values) squares += (x - mean) * (x - mean);
  return {mean, values.size() > 1 ? std::sqrt(squares / (n - 1)) : 0};
}

struct Runner {
  std::unique_ptr<Forecaster> forecaster;
  double build_seconds = 0;
};

/// Trajectories throughout: what is exact has no noise that could be compared.
ForecastOptions sampled(const SymbolOptions& options) {
  ForecastOptions forecast;
  forecast.horizon = options.horizon;
  forecast.num_samples = options.samples;
  forecast.quantiles_from = QuantilesFrom::samples;
  return forecast;
}

std::vector<SymbolRow> rows_of(const Series& series, std::span<const std::string> labels,
                               std::vector<Runner>& runners, const SymbolOptions& options) {
  const Symbol symbol = make_symbol(series, options);
  std::vector<SymbolRow> rows(labels.size());
  std::vector<std::vector<double>> seconds(labels.size());
  ForecastOptions forecast = sampled(options);
  for (std::size_t s = 0; s < labels.size(); ++s) {
    rows[s].symbol = series.id;
    rows[s].subject = labels[s];
    rows[s].windows = symbol.windows.size();
    std::vector<double> errors;
    for (std::size_t seed = 0; seed < options.seeds; ++seed) {
      if (options.progress && !options.progress(rows[s].symbol + ", " + labels[s])) {
        throw Error(ExitStatus::interrupted, "interrupted", "stopped before it was done");
      }
      forecast.seed = seed;
      errors.push_back(error_of(symbol, runners[s].forecaster->forecast(symbol.windows, forecast)));
    }
    const Spread mae = spread_of(errors);
    rows[s].mae = mae.mean;
    rows[s].mae_sigma = mae.deviation;
  }
  const std::span<const Series> last = std::span(symbol.windows).last(1);
  std::vector<Forecast> out(1);
  for (std::size_t run = 0; run <= options.runs; ++run) {
    for (std::size_t s = 0; s < labels.size(); ++s) {
      const double begun = now();
      runners[s].forecaster->forecast(last, forecast, out);
      if (run > 0) seconds[s].push_back(now() - begun);  // the first one builds its plan
    }
  }
  for (std::size_t s = 0; s < labels.size(); ++s) {
    const Spread time = spread_of(seconds[s]);
    const auto middle = seconds[s].begin() + static_cast<std::ptrdiff_t>(seconds[s].size() / 2);
    std::ranges::nth_element(seconds[s], middle);
    rows[s].seconds = *middle;
    rows[s].variation = time.deviation / time.mean;
    rows[s].speed_up = rows[0].seconds / rows[s].seconds;
    rows[s].build_seconds = runners[s].build_seconds;
    const Counters counters = runners[s].forecaster->counters();
    rows[s].plan_bytes = counters.working_bytes;
    if (counters.device_bytes > 0) rows[s].peak_device_memory = counters.device_bytes;
  }
  return rows;
}

}  // namespace

std::vector<SymbolRow> run_symbols(std::span<const Series> series,
                                   std::span<const std::string> labels, const LoadSubject& load,
                                   const SymbolOptions& options) {
  std::vector<Runner> runners;
  for (std::size_t s = 0; s < labels.size() && !series.empty(); ++s) {
    const double begun = now();
    Runner& runner = runners.emplace_back();
    runner.forecaster = std::make_unique<Forecaster>(load(s));
    const Symbol first = make_symbol(series.front(), options);
    (void)runner.forecaster->forecast(std::span(first.windows).last(1), sampled(options));
    runner.build_seconds = now() - begun;
  }
  std::vector<SymbolRow> all;
  for (const Series& one : series) {
    for (SymbolRow& row : rows_of(one, labels, runners, options)) all.push_back(std::move(row));
  }
  return all;
}

}  // namespace toto
