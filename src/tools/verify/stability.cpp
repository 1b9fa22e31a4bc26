// SPDX-License-Identifier: Apache-2.0
// What must not happen after warm-up, and memory that stays where it is.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/sha256.h"
#include "tools/verify/groups.h"

namespace toto::verify {
namespace {

constexpr double kMebibyte = 1 << 20;
constexpr double kGrowth = 1.0 / 16;   // MiB for each forecast: 64 KiB
constexpr std::size_t kPieces = 3;     // in which growth is measured; the median of them counts
constexpr double kReturn = 32;         // MiB that may stay from model to model
constexpr double kSoakGrowth = 16;     // MiB in all
constexpr double kPlansOfAFamily = 2;  // fewer than 3

ForecastOptions sampled(std::size_t horizon) {
  ForecastOptions options;
  as_reference(options);
  options.horizon = horizon;
  options.num_samples = 4;
  return options;
}

/// Series of one family: up to 4 patches of context, up to 3 series, one variate.
struct Varying {
  std::vector<OwnedSeries> owned;
  std::vector<Series> series;
  ForecastOptions options;
};

Varying varying(std::size_t i, std::size_t patch) {
  Varying v;
  const std::size_t batch = 1 + i % 3;
  for (std::size_t b = 0; b < batch; ++b) {
    v.owned.push_back(made_series(600 + i * 3 + b, 1 + (i * 31 + b * 17) % (4 * patch)));
  }
  v.series = views(v.owned);
  v.options = sampled(1 + (i * 13) % (2 * patch));
  return v;
}

struct Odd {
  std::string name;
  std::vector<float> values;
  std::vector<std::uint8_t> mask;
};

/// Legal, and unlike anything a model was trained on.
std::vector<Odd> odd_series(std::size_t patch) {
  const std::size_t n = 3 * patch;
  std::vector<Odd> all;
  const auto add = [&](std::string name, auto value) {
    Odd odd{std::move(name), {}, {}};
    for (std::size_t t = 0; t < n; ++t) odd.values.push_back(static_cast<float>(value(t)));
    all.push_back(std::move(odd));
  };
  add("constant", [](std::size_t) { return 7.0; });
  add("zero", [](std::size_t) { return 0.0; });
  add("huge", [](std::size_t t) { return 1e20 * (1 + 0.1 * std::sin(static_cast<double>(t))); });
  add("tiny", [](std::size_t t) { return 1e-20 * std::sin(static_cast<double>(t)); });
  add("denormal", [](std::size_t t) { return t % 2 == 0 ? 1e-42 : -1e-42; });
  add("one spike", [&](std::size_t t) { return t == n / 2 ? 1e6 : 1.0; });
  add("level of a million", [](std::size_t t) { return 1e6 + std::sin(static_cast<double>(t)); });
  add("step", [&](std::size_t t) { return t < n / 2 ? -100.0 : 100.0; });
  add("alternating", [](std::size_t t) { return t % 2 == 0 ? 1.0 : -1.0; });
  all.push_back({"one point", {3.5F}, {}});
  Odd gaps = all[6];
  gaps.name = "one observation";
  gaps.mask.assign(n, 0);
  gaps.mask[n / 2] = 1;
  all.push_back(std::move(gaps));
  return all;
}

/// Finite everywhere, quantiles ascending.
std::string problem_of(const Forecast& f) {
  const std::size_t cells = f.variates * f.horizon;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    if (!std::isfinite(f.mean[cell])) return fmt::format("the mean of step {} is not finite", cell);
    for (std::size_t level = 0; level < f.levels.size(); ++level) {
      const float q = f.quantiles[level * cells + cell];
      if (!std::isfinite(q)) return fmt::format("a quantile of step {} is not finite", cell);
      if (level > 0 && q < f.quantiles[(level - 1) * cells + cell]) {
        return fmt::format("quantiles of step {} are not ascending", cell);
      }
    }
  }
  return {};
}

std::string hash_of(const std::vector<Forecast>& forecasts) {
  Sha256 hash;
  for (const Forecast& f : forecasts) {
    for (const auto* part : {&f.mean, &f.median, &f.std, &f.quantiles, &f.samples}) {
      hash.update(std::as_bytes(std::span(*part)));
    }
  }
  return hash.hex();
}

double mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / kMebibyte; }

}  // namespace

std::vector<Check> nothing_is_built(SuiteState& state, const Variant& variant) {
  Forecaster forecaster = state.forecaster(variant);
  const std::size_t patch = patch_of(forecaster.model());
  const WarmupShape shape{4 * patch, 2 * patch, 1, 3};
  forecaster.warm_up({&shape, 1}, sampled(shape.horizon));
  std::vector<Forecast> out(shape.batch);
  // The results' own memory, for the largest of them.
  for (std::size_t i = 0; i < 3; ++i) {
    Varying v = varying(i, patch);
    v.options.horizon = shape.horizon;
    forecaster.forecast(v.series, v.options, std::span(out).first(v.series.size()));
  }
  for (Forecast& f : out) f.id.reserve(64);
  const std::size_t runs = state.quick() ? 12 : 200;
  const bool recorded = forecaster.counters().graph_replays > 0;
  // A graph is captured when the first shape of its bucket comes: here they all come once.
  for (std::size_t i = 0; recorded && i < runs; ++i) {
    const Varying v = varying(i, patch);
    forecaster.forecast(v.series, v.options, std::span(out).first(v.series.size()));
  }
  const Counters before = forecaster.counters();
  std::uint64_t allocations = 0;
  for (std::size_t i = 0; i < runs; ++i) {
    const Varying v = varying(i, patch);
    const std::span<Forecast> results = std::span(out).first(v.series.size());
    state.harness.before_forecast(forecaster);
    const std::uint64_t had = state.harness.allocations();
    forecaster.forecast(v.series, v.options, results);
    allocations += state.harness.allocations() - had;
  }
  const Counters after = forecaster.counters();
  const auto zero = [&](std::string name, std::string measure, std::uint64_t value,
                        const std::string& why = {}) {
    return measured(std::move(name), std::move(measure), static_cast<double>(value), 0, {},
                    why.empty()
                        ? fmt::format("{} forecasts of other lengths, horizons and batches", runs)
                        : why);
  };
  const std::uint64_t builds = after.plan_builds - before.plan_builds;
  Check splits = zero("batch splits", "batches split because memory did not suffice",
                      after.splits - before.splits);
  if (!splits.holds() && state.options.forecaster.memory_limit != 0) {
    splits.verdict = Verdict::warning;  // which is what the limit in force is for
    splits.why += "; a memory limit is in force";
  }
  Check allocated = zero("allocations", "calls of operator new inside forecasts", allocations);
  Check read = zero("host reads", "times the host waited for a device inside a forecast",
                    after.host_reads - before.host_reads);
  for (Check* check : {&allocated, &read}) {
    if (check->holds() || recorded || state.options.load.backend != "cuda") continue;
    check->verdict = Verdict::warning;  // only what is recorded promises that
    check->why += "; on a device this mode goes operation by operation";
  }
  return {zero("plan builds", "plans built after warm-up", builds,
               builds > 0 && !after.builds.empty() ? after.builds.back() : ""),
          measured("plans of a family", "plans built in all, warm-up included",
                   static_cast<double>(after.plan_builds), kPlansOfAFamily, "plans",
                   "fewer than 3 for each model and shape family"),
          zero("plan memory", "pieces of working memory allocated after warm-up",
               after.allocations - before.allocations),
          allocated,
          read,
          zero("captures", "graphs captured for buckets of shapes that came before",
               after.graph_captures - before.graph_captures),
          zero("fallbacks", "graph fallbacks", after.graph_fallbacks),
          splits};
}

std::vector<Check> odd_inputs(SuiteState& state, const Variant& variant) {
  Forecaster forecaster = state.forecaster(variant);
  const std::size_t patch = patch_of(forecaster.model());
  std::size_t bad = 0;
  std::string why;
  const std::vector<Odd> all = odd_series(patch);
  for (const Odd& odd : all) {
    Series series;
    series.id = odd.name;
    series.steps = odd.values.size();
    series.values = odd.values;
    series.mask = odd.mask;
    std::string problem;
    try {
      problem = problem_of(forecaster.forecast({&series, 1}, sampled(patch + 1)).front());
    } catch (const Error& error) {
      if (error.status() == ExitStatus::interrupted) throw;
      problem = error.what();
    }
    if (problem.empty()) continue;
    ++bad;
    if (why.empty()) why = fmt::format("series '{}': {}", odd.name, problem);
  }
  return {measured("odd series", "series whose forecast is not finite and ordered",
                   static_cast<double>(bad), 0, "series",
                   why.empty()
                       ? fmt::format("{} kinds: constant, huge, denormal, spikes, gaps, one "
                                     "point and others",
                                     all.size())
                       : why)};
}

std::vector<Check> memory_is_flat(SuiteState& state, const Variant& variant) {
  state.wait_for_second_process();  // whose answer is memory of this process
  Forecaster forecaster = state.forecaster(variant);
  const std::size_t patch = patch_of(forecaster.model());
  const OwnedSeries owned = made_series(600, 4 * patch);
  const Series series = owned.view();
  std::vector<Forecast> out(1);
  const auto run = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      forecaster.forecast({&series, 1}, sampled(patch + 1), out);
    }
  };
  const std::size_t runs = state.quick() ? 4 : 32;  // of each piece
  run(4);
  const double before = mebibytes(state.harness.resident());
  double last = before;
  std::vector<double> growth;
  for (std::size_t i = 0; i < kPieces; ++i) {
    run(runs);
    const double now = mebibytes(state.harness.resident());
    growth.push_back((now - last) / static_cast<double>(runs));
    last = now;
  }
  // What grows once, whatever it is, is no leak; a leak is in every piece.
  std::sort(growth.begin(), growth.end());
  return {measured("memory of forecasts", "growth of resident memory for each forecast",
                   std::max(growth[kPieces / 2], 0.0), kGrowth, "MiB",
                   fmt::format("the median of {} pieces of {} forecasts each; {:.2f} MiB before, "
                               "{:.2f} after all of them",
                               kPieces, runs, before, last))};
}

std::vector<Check> memory_returns(SuiteState& state) {
  state.unload();
  std::vector<std::uint64_t>& all = state.resident_after_unloading;
  while (all.size() < 3) {  // where few modes are judged: what is in force, again
    { const Forecaster again(state.harness.load(state.in_force(), 0)); }
    all.push_back(state.harness.resident());
  }
  const double first = mebibytes(all.front());
  const double last = mebibytes(all.back());
  return {measured("memory of models", "resident memory that stays from model to model",
                   std::max(last - first, 0.0), kReturn, "MiB",
                   fmt::format("{:.1f} MiB after the first of {} was let go, {:.1f} after the last",
                               first, all.size(), last))};
}

std::vector<Check> soak(SuiteState& state, const Variant& variant) {
  Forecaster forecaster = state.forecaster(variant);
  const std::size_t patch = patch_of(forecaster.model());
  std::vector<Varying> requests;
  std::vector<std::string> hashes;
  for (std::size_t i = 0; i < 12; ++i) {
    requests.push_back(varying(i, patch));
    requests.back().options.keep_samples = true;
    hashes.push_back(hash_of(forecaster.forecast(requests[i].series, requests[i].options)));
  }
  const Counters before = forecaster.counters();
  const double begun = state.harness.now();
  const double memory = mebibytes(state.harness.resident());
  double most = memory;
  std::size_t forecasts = 0, changed = 0;
  while (state.harness.now() - begun < state.options.soak_seconds) {
    const std::size_t i = forecasts++ % requests.size();
    const auto again = forecaster.forecast(requests[i].series, requests[i].options);
    changed += hash_of(again) == hashes[i] ? 0 : 1;
    if (forecasts % 100 != 0) continue;
    most = std::max(most, mebibytes(state.harness.resident()));
    if (state.options.progress && !state.options.progress(0, 1, "soak")) {
      throw Error(ExitStatus::interrupted, "interrupted", "stopped before it was done");
    }
  }
  most = std::max(most, mebibytes(state.harness.resident()));
  const std::string why =
      fmt::format("{} forecasts in {:.0f} s", forecasts, state.options.soak_seconds);
  return {measured("soak, bits", "forecasts whose bits changed", static_cast<double>(changed), 0,
                   "forecasts", why),
          measured("soak, memory", "most resident memory above that at the start",
                   std::max(most - memory, 0.0), kSoakGrowth, "MiB", why),
          measured("soak, plans", "plans built",
                   static_cast<double>(forecaster.counters().plan_builds - before.plan_builds), 0,
                   "plans", why)};
}

}  // namespace toto::verify
