// SPDX-License-Identifier: Apache-2.0
// Choosing parameters on validation windows, and saying on later ones what that was worth.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "core/json.h"
#include "models/model_impl.h"
#include "tools/backtest/band_width.h"
#include "tools/backtest/baselines.h"
#include "tools/backtest/check.h"
#include "tools/backtest/describe.h"
#include "tools/backtest/measures.h"
#include "tools/backtest/predict.h"
#include "tools/backtest/read_forecast.h"
#include "tools/backtest/reality_check.h"

namespace toto::backtest {
namespace {

/// The windows of one symbol, parted in time.
struct Parted {
  std::vector<Window> validation, test;
};

class Tuner {
 public:
  Tuner(const Market& market, Forecaster& forecaster, const Options& options,
        const Candidates& candidates)
      : market_(market),
        candidates_(candidates),
        options_(with_progress(options)),
        predictor_(forecaster, options_),
        patch_(static_cast<std::size_t>(forecaster.model().impl().net->patch())) {
    for (const std::string& one : candidates.aggregates) {
      (void)parse_aggregate(one);
      all_aggregates_.append(all_aggregates_.empty() ? "" : ",").append(one);
    }
    check_candidates();
    least_context_ = std::min(std::ranges::min(candidates.contexts), options.parameters.context);
    longest_context_ = std::max(std::ranges::max(candidates.contexts), options.parameters.context);
  }

  Tuning run() {
    tuning_.candidates = candidates_.contexts.size() * candidates_.samples.size() *
                         candidates_.transforms.size() * candidates_.aggregates.size();
    for (const Symbol& symbol : market_.symbols) {
      try {
        check_prices(symbol, options_.parameters);
        windows_.push_back(part(symbol));
        symbols_.push_back(&symbol);
      } catch (const Error& error) {
        if (error.status() != ExitStatus::bad_data) throw;
        tuning_.errors.push_back({symbol.name, error});
      }
    }
    if (symbols_.empty()) fail_no_windows(tuning_.errors);
    best_.resize(symbols_.size());
    calls_ = symbols_.size() * (5 + candidates_.contexts.size() * candidates_.samples.size() *
                                        candidates_.transforms.size());
    for (std::size_t s = 0; s < symbols_.size(); ++s) start(s);
    for (const std::size_t context : candidates_.contexts) {
      for (const std::size_t samples : candidates_.samples) {
        for (const Transform transform : candidates_.transforms) {
          Parameters parameters{context, samples, transform, 0, all_aggregates_};
          for (std::size_t s = 0; s < symbols_.size(); ++s) try_candidates(s, parameters);
        }
      }
    }
    for (std::size_t s = 0; s < symbols_.size(); ++s) report(s);
    tuning_.statistics = predictor_.statistics();
    return std::move(tuning_);
  }

 private:
  void check_candidates() const {
    check(options_, options_.parameters);
    Parameters one = options_.parameters;
    for (const std::size_t context : candidates_.contexts) {
      one.context = context;
      check(options_, one);
    }
    for (const std::size_t samples : candidates_.samples) {
      one.samples = samples;
      check(options_, one);
    }
  }

  struct Best {
    Parameters parameters;
    double mase = INFINITY;
    std::vector<double> of_default;          // by validation window
    std::vector<std::vector<double>> leads;  // over the defaults, of each candidate, by window
  };

  Parted part(const Symbol& symbol) const {
    Options all = options_;
    all.windows = candidates_.validation_windows + candidates_.test_windows;
    Parameters parameters = options_.parameters;
    parameters.context = least_context_;
    parameters.transform = Transform::pct;  // which needs one bar more
    std::vector<Window> windows =
        find_windows(symbol, 0, all, parameters, std::min(patch_, least_context_));
    if (windows.size() < 2) {
      throw Error(ExitStatus::bad_data, "too_short",
                  "one window cannot be both for validation and for the test",
                  fmt::format("{}: series {}", symbol.file, quote(symbol.name)));
    }
    // Fewer windows than asked for are parted in the same proportion.
    const std::size_t test = std::clamp<std::size_t>(
        windows.size() * candidates_.test_windows / all.windows, 1, windows.size() - 1);
    const auto at = windows.end() - static_cast<std::ptrdiff_t>(test);
    Parted parted;
    parted.test.assign(at, windows.end());
    // No bar of a validation window is one of a test window.
    const std::size_t first_test = parted.test.front().origin;
    for (auto w = windows.begin(); w != at; ++w) {
      if (w->origin + options_.horizon <= first_test) parted.validation.push_back(*w);
    }
    if (parted.validation.empty()) {
      throw Error(ExitStatus::bad_data, "too_short", "no window is left for validation",
                  fmt::format("{}: series {}", symbol.file, quote(symbol.name)));
    }
    return parted;
  }

  [[nodiscard]] static bool has_returns(const Symbol& symbol) {
    return std::ranges::all_of(symbol.values, [](float x) { return x > 0; });
  }

  /// Scaled errors by window, so that windows can be compared in pairs.
  struct Errors {
    std::vector<double> sum, count;  // [windows]

    explicit Errors(std::size_t windows) : sum(windows, 0), count(windows, 0) {}
    void add(std::size_t window, double error) {
      sum[window] += error;
      count[window] += 1;
    }
    [[nodiscard]] double mean() const {
      double all = 0;
      double cells = 0;
      for (std::size_t w = 0; w < sum.size(); ++w) {
        all += sum[w];
        cells += count[w];
      }
      return cells > 0 ? all / cells : NAN;
    }
    [[nodiscard]] std::vector<double> by_window() const {
      std::vector<double> means;
      for (std::size_t w = 0; w < sum.size(); ++w) {
        if (count[w] > 0) means.push_back(sum[w] / count[w]);
      }
      return means;
    }
  };

  /// Calls take(window, row, actual, last, scale) for every bar that is observed and has a scale:
  /// the row is what the parameters want of it.
  template <typename Take>
  void each_bar(std::size_t s, const Parameters& parameters, const std::vector<Window>& windows,
                const Take& take) {
    const Symbol& symbol = *symbols_[s];
    const std::size_t season = options_.season != 0 ? options_.season : season_of(symbol);
    std::vector<Request> requests;
    for (const Window& window : windows) {
      const auto more = requests_of(window, symbol, options_, parameters);
      requests.insert(requests.end(), more.begin(), more.end());
    }
    for (Request& request : requests) request.symbol = 0;
    const auto answers = predictor_.predict({&symbol, 1}, std::span(&parameters, 1), requests);
    ++calls_done_;
    const Wanted wanted = wanted_of(parameters);
    const std::size_t variates = variates_of(symbol, options_);
    const std::size_t each = requests.size() / windows.size();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Request& request = requests[i];
      for (std::size_t v = 0; v < variates; ++v) {
        const auto values = symbol.values_of(request.target + v);
        const auto mask = symbol.mask_of(request.target + v);
        // The same denominator for every candidate: that of the longest context.
        const std::size_t longest = std::min(longest_context_, request.last + 1);
        const std::size_t first = request.last + 1 - longest;
        const double scale =
            scale_of({values.subspan(first, longest), mask.subspan(first, longest)}, season).value;
        const float* from =
            predictor_.stored(answers[i]).data() + v * request.steps * wanted.size();
        for (std::size_t h = 0; h < request.steps; ++h, from += wanted.size()) {
          const std::size_t bar = request.last + 1 + h;
          if (!(scale > 0) || mask[bar] == 0) continue;
          take(i / each, std::span(from, wanted.size()), double{values[bar]},
               double{values[request.last]}, scale);
        }
      }
    }
  }

  /// Of each aggregate of the parameters, and of the last value after them.
  std::vector<Errors> errors(std::size_t s, const Parameters& parameters,
                             const std::vector<Window>& windows) {
    const std::size_t points = wanted_of(parameters).points.size();
    std::vector<Errors> all(points + 1, Errors(windows.size()));
    each_bar(s, parameters, windows,
             [&](std::size_t window, std::span<const float> row, double actual, double last,
                 double scale) {
               for (std::size_t a = 0; a < points; ++a) {
                 all[a].add(window, std::abs(double{row[a]} - actual) / scale);
               }
               all[points].add(window, std::abs(last - actual) / scale);
             });
    return all;
  }

  /// The widths that would have been right on the validation windows, and what they do to later
  /// ones.
  void find_band_widths(std::size_t s, Tuned& tuned) {
    std::vector<BandCell> cells;
    const Wanted wanted = wanted_of(tuned.chosen);
    const std::size_t first = wanted.points.size() + 1;
    each_bar(s, tuned.chosen, windows_[s].validation,
             [&](std::size_t window, std::span<const float> row, double actual, double, double) {
               cells.push_back(band_cell(row.subspan(first), actual, window));
             });
    std::ranges::stable_sort(cells, {}, &BandCell::window);  // targets may come one after another
    const std::size_t stride = options_.stride == 0 ? options_.horizon : options_.stride;
    const Widths widths = find_widths(cells, {options_.horizon, stride});
    BandScore as_is, with;
    Parameters stretched = tuned.chosen;
    stretched.width_below = widths.below;
    stretched.width_above = widths.above;
    std::vector<float> own;
    each_bar(s, tuned.chosen, windows_[s].test,
             [&](std::size_t, std::span<const float> row, double actual, double, double scale) {
               as_is.add(row.subspan(first), actual, scale);
               own.assign(row.begin(), row.end());
               stretch(own, wanted, first + kLevels / 2, stretched);
               with.add(std::span<const float>(own).subspan(first), actual, scale);
             });
    tuned.chosen = std::move(stretched);
    tuned.test_coverage_as_is = as_is.coverage();
    tuned.test_coverage = with.coverage();
    tuned.test_loss_as_is = as_is.loss();
    tuned.test_loss = with.loss();
  }

  void try_candidates(std::size_t s, const Parameters& parameters) {
    if (parameters.transform != Transform::none && !has_returns(*symbols_[s])) {
      ++calls_done_;
      return;
    }
    const auto all = errors(s, parameters, windows_[s].validation);
    for (std::size_t a = 0; a + 1 < all.size(); ++a) {
      std::vector<double> lead = best_[s].of_default;
      const std::vector<double> own = all[a].by_window();
      std::ranges::transform(lead, own, lead.begin(), std::minus<>());
      best_[s].leads.push_back(std::move(lead));
      const double mase = all[a].mean();
      if (!(mase < best_[s].mase)) continue;  // the first of equals
      best_[s].mase = mase;
      best_[s].parameters = parameters;
      best_[s].parameters.aggregate = candidates_.aggregates[a];
    }
  }

  /// What is in force without tuning is what a candidate has to beat.
  void start(std::size_t s) {
    best_[s].parameters = options_.parameters;
    const Errors own = errors(s, options_.parameters, windows_[s].validation)[0];
    best_[s].mase = own.mean();
    best_[s].of_default = own.by_window();
    default_mase_.push_back(best_[s].mase);
  }

  void report(std::size_t s) {
    Tuned tuned;
    tuned.symbol = symbols_[s]->name;
    const std::size_t stride = options_.stride == 0 ? options_.horizon : options_.stride;
    const std::size_t overlap = (options_.horizon + stride - 1) / stride - 1;
    tuned.best = best_[s].parameters;
    tuned.p_luck = reality_check(best_[s].leads, overlap);
    tuned.keeps_default = !(tuned.p_luck <= kTunedByLuck);
    tuned.chosen = tuned.keeps_default ? options_.parameters : tuned.best;
    tuned.validation_windows = windows_[s].validation.size();
    tuned.test_windows = windows_[s].test.size();
    tuned.best_validation_mase = best_[s].mase;
    tuned.default_validation_mase = default_mase_[s];
    tuned.validation_mase =
        tuned.keeps_default ? tuned.default_validation_mase : tuned.best_validation_mase;
    const auto own = errors(s, best_[s].parameters, windows_[s].test);
    const auto other = errors(s, options_.parameters, windows_[s].test);
    tuned.best_test_mase = own[0].mean();
    tuned.default_test_mase = other[0].mean();
    tuned.test_mase = tuned.keeps_default ? tuned.default_test_mase : tuned.best_test_mase;
    tuned.last_value_test_mase = other.back().mean();
    find_band_widths(s, tuned);
    tuned.against_default = paired_test(own[0].by_window(), other[0].by_window(), overlap);
    tuning_.symbols.push_back(std::move(tuned));
  }

  /// Of one call out of many, in hundredths of calls.
  [[nodiscard]] Options with_progress(const Options& from) {
    Options all = from;
    if (!from.progress) return all;
    all.progress = [this, tell = from.progress](std::size_t done, std::size_t total) {
      return tell(100 * calls_done_ + 100 * done / std::max<std::size_t>(total, 1), 100 * calls_);
    };
    return all;
  }

  const Market& market_;
  const Candidates& candidates_;
  std::size_t calls_ = 0, calls_done_ = 0;
  const Options options_;
  Predictor predictor_;
  std::size_t patch_;
  std::string all_aggregates_;
  std::size_t least_context_ = 0, longest_context_ = 0;
  std::vector<const Symbol*> symbols_;
  std::vector<Parted> windows_;
  std::vector<Best> best_;
  std::vector<double> default_mase_;
  Tuning tuning_;
};

}  // namespace

Tuning tune(const Market& market, Forecaster& forecaster, const Options& options,
            const Candidates& candidates) {
  if (candidates.contexts.empty() || candidates.samples.empty() || candidates.transforms.empty() ||
      candidates.aggregates.empty() || candidates.validation_windows == 0 ||
      candidates.test_windows == 0) {
    throw Error(ExitStatus::usage, "no_candidates", "there is nothing to choose from");
  }
  return Tuner(market, forecaster, options, candidates).run();
}

void write_parameters(const data::TextSink& sink, const Tuning& tuning, const Options& options,
                      const RunDescription& run) {
  nlohmann::ordered_json out = {
      {"format", "toto-parameters"},
      {"version", 1},
      {"model", {{"name", run.model}, {"family", run.family}, {"weights", run.model_hash}}},
      {"rolling", word(options.rolling)},
      {"horizon", options.horizon},
      {"symbols", nlohmann::ordered_json::object()},
      {"found", nlohmann::ordered_json::object()}};
  for (const Tuned& t : tuning.symbols) {
    out["symbols"][t.symbol] = to_json(t.chosen);
    out["found"][t.symbol] = {{"validation_windows", t.validation_windows},
                              {"default_is_as_good", t.keeps_default},
                              {"p_luck", json_number(t.p_luck)},
                              {"best", to_json(t.best)},
                              {"best_validation_mase", json_number(t.best_validation_mase)},
                              {"best_test_mase", json_number(t.best_test_mase)},
                              {"validation_mase", json_number(t.validation_mase)},
                              {"default_validation_mase", json_number(t.default_validation_mase)},
                              {"test_windows", t.test_windows},
                              {"test_mase", json_number(t.test_mase)},
                              {"default_test_mase", json_number(t.default_test_mase)},
                              {"last_value_test_mase", json_number(t.last_value_test_mase)},
                              {"test_coverage_80_as_is", json_number(t.test_coverage_as_is)},
                              {"test_coverage_80", json_number(t.test_coverage)},
                              {"test_quantile_loss_as_is", json_number(t.test_loss_as_is)},
                              {"test_quantile_loss", json_number(t.test_loss)},
                              {"p_against_default", json_number(t.against_default.p_value)}};
  }
  sink(out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  sink("\n");
}

}  // namespace toto::backtest
