// SPDX-License-Identifier: Apache-2.0
// The evaluation: windows, forecasts, cells.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backtest/aggregate.h"
#include "backtest/baselines.h"
#include "backtest/predict.h"
#include "backtest/read_forecast.h"
#include "backtest/scale_effect.h"
#include "backtest/windows.h"
#include "core/json.h"
#include "model/model_impl.h"

namespace toto::backtest {
namespace {

void check(const Options& options, const Parameters& parameters) {
  const auto refuse = [](std::string_view code, std::string_view message) {
    throw Error(ExitStatus::usage, code, message);
  };
  if (options.horizon == 0 || options.horizon > 100'000) {
    refuse("invalid_horizon", "expected a horizon of 1 to 100000 bars");
  }
  if (parameters.context == 0 || parameters.context > 10'000'000) {
    refuse("invalid_context", "expected a context of 1 to 10000000 bars");
  }
  if (parameters.samples == 0 || parameters.samples > 65'536) {
    refuse("invalid_samples", "expected 1 to 65536 samples");
  }
  if (!(parameters.input_scale >= 0) || parameters.input_scale > 1e12) {
    refuse("invalid_input_scale", "expected an input scale above 0, at most 1e12");
  }
  (void)parse_aggregate(parameters.aggregate);
}

/// Moves are not defined at prices of 0 and below, whenever they were.
void check_prices(const Symbol& symbol, const Parameters& parameters) {
  if (parameters.transform == Transform::none) return;
  for (std::size_t v = 0; v < symbol.targets.size(); ++v) {
    const auto values = symbol.values_of(v);
    const auto bad = std::ranges::find_if(values, [](float x) { return !(x > 0); });
    if (bad == values.end()) continue;
    const auto at = static_cast<std::size_t>(bad - values.begin());
    throw Error(
        ExitStatus::bad_data, "non_positive_value",
        fmt::format("{} is {} at {}, which has no {}", symbol.targets[v], *bad,
                    data::format_time(symbol.times[at], symbol.style), word(parameters.transform)),
        fmt::format("{}: series {}", symbol.file, quote(symbol.name)),
        "mend the row, or use --transform none");
  }
}

class Evaluation {
 public:
  Evaluation(Forecaster& forecaster, const Options& options)
      : options_(options),
        predictor_(forecaster, options),
        patch_(static_cast<std::size_t>(forecaster.model().impl().net->config().patch_size)) {}

  Result evaluate(const Market& market) {
    result_.rolling = options_.rolling;
    result_.horizon = options_.horizon;
    choose_windows(market);
    for (const Window& window : windows_) {
      const auto requests = requests_of(window, result_.symbols[window.symbol], options_,
                                        result_.parameters[window.symbol]);
      requests_.insert(requests_.end(), requests.begin(), requests.end());
    }
    const auto answers = predictor_.predict(result_.symbols, result_.parameters, requests_);
    for (std::size_t i = 0; i < requests_.size(); ++i) add_cells(i, answers[i]);
    sort_cells();
    result_.statistics = predictor_.statistics();
    result_.scale_effect = measure_scale_effect(predictor_, result_, requests_, answers, options_);
    return std::move(result_);
  }

 private:
  void choose_windows(const Market& market) {
    for (const Symbol& symbol : market.symbols) {
      const auto own = options_.by_symbol.find(symbol.name);
      const Parameters& parameters =
          own == options_.by_symbol.end() ? options_.parameters : own->second;
      check(options_, parameters);
      try {
        check_prices(symbol, parameters);
        const std::size_t least = std::min(patch_, parameters.context);
        const std::vector<Window> windows =
            find_windows(symbol, result_.symbols.size(), options_, parameters, least);
        windows_.insert(windows_.end(), windows.begin(), windows.end());
        result_.windows.push_back(windows.size());
      } catch (const Error& error) {
        if (error.status() != ExitStatus::bad_data) throw;
        result_.errors.push_back({symbol.name, error});
        continue;
      }
      result_.symbols.push_back(symbol);
      result_.parameters.push_back(parameters);
      result_.season.push_back(options_.season != 0 ? options_.season : season_of(symbol.interval));
      const std::size_t exact = options_.rolling == Rolling::one_step
                                    ? options_.horizon
                                    : exact_steps(parameters, options_.horizon, patch_);
      result_.exact_steps =
          result_.symbols.size() == 1 ? exact : std::min(result_.exact_steps, exact);
    }
    if (!result_.symbols.empty()) return;
    if (!result_.errors.empty()) throw result_.errors.front().error;
    throw Error(ExitStatus::bad_data, "no_windows", "there is no symbol to evaluate");
  }

  /// The cells that one forecast answers.
  void add_cells(std::size_t index, std::size_t answer) {
    const Request& request = requests_[index];
    const Symbol& symbol = result_.symbols[request.symbol];
    const std::span<const float> stored = predictor_.stored(answer);
    const std::size_t variates = variates_of(symbol, options_);
    const Window& window = window_of(index);
    for (std::size_t v = 0; v < variates; ++v) {
      const std::size_t target = request.target + v;
      const std::size_t first = request.last + 1 - request.bars;
      const auto context = symbol.values_of(target).subspan(first, request.bars);
      const double scale = seasonal_scale(context, result_.season[request.symbol]);
      for (std::size_t h = 0; h < request.steps; ++h) {
        Cell cell;
        cell.symbol = static_cast<std::uint32_t>(request.symbol);
        cell.target = static_cast<std::uint32_t>(target);
        cell.window = static_cast<std::uint32_t>(window.number);
        cell.step = static_cast<std::uint32_t>(request.last - window.origin + h + 1);
        cell.bar = static_cast<std::uint32_t>(request.last + 1 + h);
        cell.time = symbol.times[cell.bar];
        cell.base = context.back();
        cell.scale = scale;
        const bool observed = symbol.mask_of(target)[cell.bar] != 0;
        cell.actual = observed ? symbol.values_of(target)[cell.bar] : NAN;
        const float* from = stored.data() + (v * request.steps + h) * kStored;
        cell.model.point = from[0];
        cell.model.mean = from[1];
        std::copy(from + 2, from + kStored, cell.model.quantiles.begin());
        for (std::size_t b = 1; b < kSources; ++b) {
          const Baseline said =
              baseline(static_cast<Source>(b), context, result_.season[request.symbol], h + 1);
          cell.baseline[b - 1] = said.point;
          cell.baseline_sigma[b - 1] = said.sigma;
        }
        result_.cells.push_back(cell);
      }
    }
  }

  /// Requests come window by window, the same number for each window of a symbol.
  const Window& window_of(std::size_t index) {
    while (true) {
      const Window& window = windows_[at_window_];
      const std::size_t targets =
          options_.joint ? 1 : result_.symbols[window.symbol].targets.size();
      const std::size_t count =
          targets * (options_.rolling == Rolling::one_step ? options_.horizon : 1);
      if (index < window_begin_ + count) return window;
      window_begin_ += count;
      ++at_window_;
    }
  }

  void sort_cells() {
    std::ranges::sort(result_.cells, {}, [](const Cell& c) {
      return std::tuple(c.symbol, c.target, c.window, c.step);
    });
  }

  const Options& options_;
  Predictor predictor_;
  std::size_t patch_;
  Result result_;
  std::vector<Window> windows_;
  std::vector<Request> requests_;
  std::size_t at_window_ = 0, window_begin_ = 0;
};

}  // namespace

Result run(const Market& market, Forecaster& forecaster, const Options& options) {
  return Evaluation(forecaster, options).evaluate(market);
}

}  // namespace toto::backtest
