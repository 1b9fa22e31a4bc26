// SPDX-License-Identifier: Apache-2.0
// The evaluation: windows, forecasts, cells.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "core/json.h"
#include "models/model_impl.h"
#include "tools/backtest/baselines.h"
#include "tools/backtest/check.h"
#include "tools/backtest/covariates.h"
#include "tools/backtest/predict.h"
#include "tools/backtest/read_forecast.h"
#include "tools/backtest/scale_effect.h"
#include "tools/backtest/windows.h"

namespace toto::backtest {
namespace {

class Evaluation {
 public:
  Evaluation(Forecaster& forecaster, const Options& options)
      : options_(options),
        predictor_(forecaster, options),
        patch_(static_cast<std::size_t>(forecaster.model().impl().net->patch())) {}

  Result evaluate(const Market& market) {
    result_.rolling = options_.rolling;
    result_.horizon = options_.horizon;
    choose_windows(market);
    std::vector<std::size_t> answers = forecast_windows();
    // What was forecast is known by now, so that the second time costs nothing.
    while (leave_out_overflows(answers)) {
      choose_windows(market);
      answers = forecast_windows();
    }
    tell_without_parameters();
    for (std::size_t i = 0; i < requests_.size(); ++i) add_cells(i, answers[i]);
    sort_cells();
    tell_unseasonal();
    result_.statistics = predictor_.statistics();
    result_.scale_effect = measure_scale_effect(predictor_, result_, requests_, answers, options_);
    return std::move(result_);
  }

 private:
  std::vector<std::size_t> forecast_windows() {
    requests_.clear();
    for (const Window& window : windows_) {
      const auto requests = requests_of(window, result_.symbols[window.symbol], options_,
                                        result_.parameters[window.symbol]);
      requests_.insert(requests_.end(), requests.begin(), requests.end());
    }
    return predictor_.predict(result_.symbols, result_.parameters, requests_);
  }

  /// A symbol with a forecast beyond the float32 range becomes an error; the others are evaluated.
  /// Whether there was one.
  bool leave_out_overflows(std::span<const std::size_t> answers) {
    const std::size_t before = overflows_.size();
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const Symbol& symbol = result_.symbols[requests_[i].symbol];
      try {
        require_finite(predictor_.stored(answers[i]),
                       fmt::format("{}: series {}", symbol.file, quote(symbol.name)));
      } catch (const Error& error) {
        overflows_.try_emplace(symbol.name, error);
      }
    }
    return overflows_.size() > before;
  }

  void choose_windows(const Market& market) {
    windows_.clear();
    result_.symbols.clear();
    result_.parameters.clear();
    result_.season.clear();
    result_.windows.clear();
    result_.errors.clear();
    for (const Symbol& symbol : market.symbols) {
      if (const auto bad = overflows_.find(symbol.name); bad != overflows_.end()) {
        result_.errors.push_back({symbol.name, bad->second});
        continue;
      }
      const auto own = options_.by_symbol.find(symbol.name);
      const Parameters& parameters =
          own == options_.by_symbol.end() ? options_.parameters : own->second;
      check(options_, parameters);
      try {
        check_prices(symbol, parameters);
        if (uses_covariates(symbol, options_) && parameters.transform != Transform::none) {
          throw Error(ExitStatus::usage, "conflicting_flags",
                      "covariates are regressed on values, not on returns", "--transform");
        }
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
      result_.season.push_back(options_.season != 0 ? options_.season : season_of(symbol));
      const std::size_t exact = options_.rolling == Rolling::one_step
                                    ? options_.horizon
                                    : exact_steps(parameters, options_.horizon, patch_);
      result_.exact_steps =
          result_.symbols.size() == 1 ? exact : std::min(result_.exact_steps, exact);
    }
    if (result_.symbols.empty()) fail_no_windows(result_.errors);
    result_.unseasonal.assign(result_.symbols.size(), 0);
  }

  /// Symbols that a file of parameters was to cover and does not.
  void tell_without_parameters() const {
    if (options_.by_symbol.empty() || !options_.warning) return;
    std::string names;
    for (const Symbol& symbol : result_.symbols) {
      if (options_.by_symbol.contains(symbol.name)) continue;
      names.append(names.empty() ? "" : ", ").append(quote(symbol.name));
    }
    if (names.empty()) return;
    options_.warning(
        fmt::format("there are no parameters for {}: forecast as without a file of them", names));
  }

  void tell_unseasonal() const {
    if (!options_.warning) return;
    std::size_t symbols = 0;
    std::size_t first = 0;
    for (std::size_t s = 0; s < result_.symbols.size(); ++s) {
      if (result_.unseasonal[s] == 0) continue;
      if (symbols++ == 0) first = s;
    }
    if (symbols == 0) return;
    options_.warning(fmt::format(
        "{}{}: {} forecasts have no season of {} bars before them; there MASE is scaled by moves "
        "from bar to bar, and the seasonal forecast is the last value",
        quote(result_.symbols[first].name),
        symbols > 1 ? fmt::format(" (and {} symbols more)", symbols - 1) : "",
        result_.unseasonal[first], result_.season[first]));
  }

  /// What the seasonal baseline and the scale of MASE look at: the context, or, where that is no
  /// longer than a season, the last two seasons before the forecast.
  [[nodiscard]] Context seasonal_past(const Symbol& symbol, std::size_t target,
                                      const Request& request) const {
    const std::size_t season = result_.season[request.symbol];
    const std::size_t there = request.last + 1;
    const std::size_t bars =
        request.bars > season ? request.bars : std::min(std::max(request.bars, 2 * season), there);
    return {symbol.values_of(target).subspan(there - bars, bars),
            symbol.mask_of(target).subspan(there - bars, bars)};
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
      const Context context = {symbol.values_of(target).subspan(first, request.bars),
                               symbol.mask_of(target).subspan(first, request.bars)};
      const Context past = seasonal_past(symbol, target, request);
      const Scale scale = scale_of(past, result_.season[request.symbol]);
      if (!scale.seasonal) ++result_.unseasonal[request.symbol];
      for (std::size_t h = 0; h < request.steps; ++h) {
        Cell cell;
        cell.symbol = static_cast<std::uint32_t>(request.symbol);
        cell.target = static_cast<std::uint32_t>(target);
        cell.window = static_cast<std::uint32_t>(window.number);
        cell.step = static_cast<std::uint32_t>(request.last - window.origin + h + 1);
        cell.bar = static_cast<std::uint32_t>(request.last + 1 + h);
        cell.time = symbol.times[cell.bar];
        const double offset = symbol.offset_of(target);
        const auto whole = [offset](double x) { return offset == 0 ? x : offset + x; };
        cell.value_offset = offset;
        cell.base = whole(context.values.back());
        cell.scale = scale.value;
        const bool observed = symbol.mask_of(target)[cell.bar] != 0;
        cell.actual = observed ? whole(symbol.values_of(target)[cell.bar]) : NAN;
        const float* from = stored.data() + (v * request.steps + h) * kStored;
        cell.model.point = whole(from[0]);
        cell.model.mean = whole(from[1]);
        std::copy(from + 2, from + kStored, cell.model.quantiles.begin());
        for (std::size_t b = 1; b < kSources; ++b) {
          const auto source = static_cast<Source>(b);
          const Baseline said = baseline(source, source == Source::seasonal_naive ? past : context,
                                         result_.season[request.symbol], h + 1);
          cell.baseline[b - 1] = whole(said.point);
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
  std::map<std::string, Error, std::less<>> overflows_;  // by symbol
  std::size_t at_window_ = 0, window_begin_ = 0;
};

}  // namespace

Result run(const Market& market, Forecaster& forecaster, const Options& options) {
  Result result = Evaluation(forecaster, options).evaluate(market);
  const auto uses = [&](const Symbol& symbol) { return uses_covariates(symbol, options); };
  if (std::ranges::any_of(result.symbols, uses)) {
    Options without = options;
    without.covariates = false;
    without.warning = nullptr;  // said already
    const Result other = Evaluation(forecaster, without).evaluate(market);
    result.covariate_gain = covariate_gain(result, other, options);
  }
  return result;
}

}  // namespace toto::backtest
