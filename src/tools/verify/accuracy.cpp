// SPDX-License-Identifier: Apache-2.0
// Forecasts held against what happened, in every mode; and how much of a difference between runs is
// the noise of sampling.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "statistics/mixture.h"
#include "tools/verify/groups.h"
#include "tools/verify/without_parameters.h"
#include "toto/settings.hpp"

namespace toto::verify {
namespace {

constexpr double kMean = 1e-6;  // of scale: the bound of parameters, docs/production.md
constexpr double kNoFarther = 1.25;
constexpr std::size_t kNoiseSamples = 256;
// 8 seeds: sigma is above twice or below a quarter of its expectation by chance once in 4,000 runs.
constexpr double kNoise = 2, kMinNoise = 4;
constexpr double kShareOfMae = 0.01;
constexpr std::size_t kListedSeries = 12;

void add_rows(SuiteState& state, const Variant& variant, const std::vector<Forecast>& forecasts) {
  const Windows& windows = state.windows();
  VerifyTable& t = state.tables["0 accuracy"];
  if (t.columns.empty()) {
    t.title = "Accuracy against what happened";
    t.note = fmt::format(
        "Walk-forward, {} windows of {} steps{}. MAE of the median in the units of the series and "
        "in "
        "percent of the mean |value| of its context (only that is averaged over series), "
        "MASE "
        "against repeating the last value, weighted quantile loss over 0.1 to 0.9, share inside "
        "the "
        "80 % interval. All exact: nothing is drawn.",
        windows.all.size(), windows.horizon, windows.made ? " (series made by a formula)" : "");
    t.columns = {"series", "as", "steps", "MAE", "MAE %", "MASE", "WQL", "80 % coverage"};
  }
  std::vector<std::string> names;
  for (const Window& w : windows.all) {
    if (std::find(names.begin(), names.end(), w.series) == names.end()) names.push_back(w.series);
  }
  if (names.size() > kListedSeries) names.clear();
  names.emplace_back();
  for (const std::string& name : names) {
    const Scores s = score(windows, forecasts, name);
    // Beside the same series in other modes, so that they can be compared.
    const std::string title = name.empty() ? "all" : name;
    const auto last = std::find_if(t.rows.rbegin(), t.rows.rend(),
                                   [&](const auto& row) { return row.front() == title; });
    std::vector<std::string> row = {title,
                                    variant.label(),
                                    fmt::format("{}", s.steps),
                                    name.empty() ? "-" : fmt::format("{:.6g}", s.mae),
                                    fmt::format("{:.4f}", 100 * s.relative),
                                    fmt::format("{:.6f}", s.mase),
                                    fmt::format("{:.6f}", s.wql),
                                    fmt::format("{:.1f} %", 100 * s.coverage)};
    t.rows.insert(last == t.rows.rend() ? t.rows.end() : last.base(), std::move(row));
  }
}

/// The density at the median. Of a forecast that has no mixture: from the levels around it.
double median_density(const Forecast& f, std::size_t cell, Mixture& mixture) {
  const Parameters& p = f.parameters;
  const std::size_t k = p.components;
  if (k == 0) {
    const auto above = static_cast<std::size_t>(
        std::upper_bound(f.levels.begin(), f.levels.end(), 0.5) - f.levels.begin());
    const std::size_t below = above - 2;  // the levels are window_options(): 0.1 to 0.9
    const std::size_t cells = f.variates * f.horizon;
    const double width = static_cast<double>(f.quantiles[above * cells + cell]) -
                         static_cast<double>(f.quantiles[below * cells + cell]);
    return (f.levels[above] - f.levels[below]) / width;
  }
  const auto part = [&](const std::vector<double>& all) {
    return std::span(all).subspan(cell * k, k);
  };
  mixture.assign(part(p.df), part(p.loc), part(p.scale), part(p.probability));
  return mixture.pdf(mixture.quantile(0.5)) / p.affine_scale[cell];
}

/// Standard deviation of the relative MAE of sample medians. The variance of each step's median is
/// 1 / (4 N f(m)^2), in units of its context's size; steps are drawn independently.
double expected_noise(const Windows& windows, const std::vector<Forecast>& forecasts) {
  double variance = 0;
  std::size_t steps = 0;
  for (std::size_t i = 0; i < forecasts.size(); ++i) {
    const Forecast& f = forecasts[i];
    Mixture mixture(f.parameters.components);
    for (std::size_t cell = 0; cell < f.variates * f.horizon; ++cell) {
      if (windows.all[i].observed[cell] == 0) continue;
      const double size = context_size(windows.all[i], cell / f.horizon);
      if (!(size > 0)) continue;
      const double density = median_density(f, cell, mixture) * size;
      variance += 1 / (4 * static_cast<double>(kNoiseSamples) * density * density);
      ++steps;
    }
  }
  return std::sqrt(variance) / static_cast<double>(steps);
}

/// Quantiles against those of eager, and of float64.
Check compare_quantiles(SuiteState& state, const Variant& variant,
                        const std::vector<Forecast>& found) {
  const std::vector<Forecast>& eager = state.eager_windows();
  const std::vector<Forecast>& exact = state.exact_windows();
  const double to_eager = mean_quantile_difference(found, eager);
  const double to_exact = mean_quantile_difference(found, exact);
  const double its = mean_quantile_difference(eager, exact);
  const Scores s = score(state.windows(), found, "");
  const Scores base = score(state.windows(), eager, "");
  const std::string why = fmt::format(
      "quantiles 0.1 to 0.9 of {} windows: {:.2g} to eager, {:.2g} to float64 (eager: {:.2g}); MAE "
      "{:.6g}, eager {:.6g}",
      state.windows().all.size(), to_eager, to_exact, its, s.mae, base.mae);
  if (is_narrow(variant.precision, state.options.load.backend)) {
    return measured("walk-forward", "mean difference of quantiles to eager float32", to_eager,
                    narrow_bounds(variant.precision).mean, "of scale",
                    fmt::format("documented bound of {}; {}", word(variant.precision), why));
  }
  if (to_eager < kMean || its <= 0.5 * kMean) {
    return measured("walk-forward", "mean difference of quantiles to eager", to_eager, kMean,
                    "of scale", "absolute criterion; " + why);
  }
  return measured("walk-forward", "mean distance of quantiles to float64 / that of eager",
                  ratio(to_exact, its), kNoFarther, "x",
                  "relative criterion, since eager itself is too far from float64; " + why);
}

}  // namespace

std::vector<Check> walk_forward(SuiteState& state, const Variant& variant) {
  const Windows& windows = state.windows();
  Forecaster forecaster = state.forecaster(variant);
  const std::vector<Forecast> found = forecast_windows(forecaster, windows);
  add_rows(state, variant, found);
  std::vector<Check> checks = {compare_quantiles(state, variant, found)};
  for (Check& c : without_parameters(forecaster, window_series(windows), window_options(windows),
                                     found, "walk-forward, without parameters")) {
    checks.push_back(std::move(c));
  }
  return checks;
}

std::vector<Check> sampling_noise(SuiteState& state, const Variant& variant) {
  const Windows& windows = state.windows();
  const std::vector<Series> series = window_series(windows);
  Forecaster forecaster = state.forecaster(variant);
  ForecastOptions options;
  as_reference(options);
  options.horizon = windows.horizon;
  options.num_samples = kNoiseSamples;
  options.quantiles_from = QuantilesFrom::samples;
  const std::size_t seeds = state.quick() ? 8 : 32;
  std::vector<double> maes;
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    options.seed = state.options.seed + seed;
    maes.push_back(score(windows, forecaster.forecast(series, options), "").relative);
  }
  double mean = 0, squares = 0;
  for (const double x : maes) mean += x / static_cast<double>(seeds);
  for (const double x : maes) squares += (x - mean) * (x - mean);
  const double found = std::sqrt(squares / static_cast<double>(seeds - 1));
  const double expected = expected_noise(windows, state.eager_windows());
  VerifyTable& t = state.tables["2 noise"];
  t.title = "Noise of sampling";
  t.note =
      "The MAE of medians of trajectories moves from seed to seed. A difference between two runs "
      "that is smaller than a few times this is noise and no error of a mode.";
  t.columns = {"as",           "trajectories",   "seeds",       "MAE %, mean",
               "MAE %, sigma", "sigma expected", "sigma / mean"};
  t.rows.push_back({variant.label(), fmt::format("{}", kNoiseSamples), fmt::format("{}", seeds),
                    fmt::format("{:.6g}", 100 * mean), fmt::format("{:.3g}", 100 * found),
                    fmt::format("{:.3g}", 100 * expected),
                    fmt::format("{:.2f} %", 100 * found / mean)});
  const std::string why = fmt::format(
      "{:.3g} found, {:.3g} expected from the densities at the medians", found, expected);
  // Too few trajectories are the user's choice and no error of a mode: a warning, with the remedy.
  const double share = ratio(found, mean);
  Check noise = measured(
      "sampling noise, of the MAE", "sigma(MAE) over seeds / mean MAE", share, kShareOfMae, {},
      fmt::format("{} trajectories; about {:.0f} would make it {:g}", kNoiseSamples,
                  std::ceil(kNoiseSamples * std::pow(share / kShareOfMae, 2)), kShareOfMae));
  if (!noise.holds() && std::isfinite(share)) noise.verdict = Verdict::warning;
  return {
      noise,
      measured("sampling noise", "sigma(MAE) over seeds / that expected of so many trajectories",
               ratio(found, expected), kNoise, "x", why),
      measured("sampling noise, too little", "sigma(MAE) expected / that over seeds",
               found > 0 ? ratio(expected, found) : std::nan(""), kMinNoise, "x",
               why + "; none at all would be the same draws for every seed")};
}

}  // namespace toto::verify
