// SPDX-License-Identifier: Apache-2.0
// Time and memory of a mode against `eager`, which takes turns with it in the same run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tools/verify/groups.h"

namespace toto::verify {
namespace {

constexpr double kNeverSlower = 2;       // times the time of eager
constexpr double kSpread = 0.5;          // coefficient of variation that is a failure
constexpr double kQuietSpread = 0.05;    // and that is worth a warning
constexpr double kBusyCores = 0.5;       // used by other programs: then the times are theirs too
constexpr double kMemoryOverhead = 0.5;  // of a plan over the working memory of eager
constexpr double kBuildSeconds = 1;
constexpr int kAttempts = 3;  // a machine that is busy with something else gets three chances

struct Workload {
  const char* name;
  std::size_t patches;  // of horizon
  std::size_t samples;
  double target;  // documented: time of the mode / time of eager (docs/production.md)
};
constexpr Workload kWorkloads[] = {{"one patch", 1, 0, 1.0}, {"trajectories", 2, 8, 0.5}};

struct Sample {
  std::vector<double> seconds;
  [[nodiscard]] double at(double q) const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<std::size_t>(
        std::lround(q * static_cast<double>(sorted.size() - 1)))];
  }
  [[nodiscard]] double spread() const {
    const auto n = static_cast<double>(seconds.size());
    const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / n;
    double squares = 0;
    for (const double s : seconds) squares += (s - mean) * (s - mean);
    return std::sqrt(squares / (n - 1)) / mean;
  }
};

struct Pair {
  Sample eager, mode;
  Counters eager_counters, mode_counters;
  double others = 0;          // cores that other programs used meanwhile
  double by_processor = NAN;  // processor time of one thread / that of eager; measured if needed
};

/// What a forecast is timed by.
struct Work {
  OwnedSeries owned;
  ForecastOptions options;

  Work(const Workload& w, std::size_t patch) : owned(made_series(500, 8 * patch)) {
    as_reference(options);
    options.horizon = w.patches * patch;
    if (w.samples > 0) options.num_samples = w.samples;
  }
};

Pair measure(SuiteState& state, const Variant& variant, const Workload& w, std::size_t runs) {
  Forecaster eager(state.eager()), mode = state.forecaster(variant);
  const Work work(w, patch_of(mode.model()));
  const Series series = work.owned.view();
  std::vector<Forecast> out(1);
  Pair pair;
  const auto time = [&](Forecaster& forecaster, Sample& sample) {
    const double start = state.harness.now();
    forecaster.forecast({&series, 1}, work.options, out);
    sample.seconds.push_back(state.harness.now() - start);
  };
  Sample warm_up;
  for (int i = 0; i < 2; ++i) {
    time(eager, warm_up);
    time(mode, warm_up);
  }
  const double begun = state.harness.now();
  const double others = state.harness.used_by_others();
  for (std::size_t i = 0; i < runs; ++i) {
    time(eager, pair.eager);
    time(mode, pair.mode);
  }
  pair.others =
      std::max(state.harness.used_by_others() - others, 0.0) / (state.harness.now() - begun);
  pair.eager_counters = eager.counters();
  pair.mode_counters = mode.counters();
  return pair;
}

/// Processor time of the mode over that of eager, on one thread each, so that none waits for
/// another: what other programs do adds nothing to it.
double processor_ratio(SuiteState& state, const Variant& variant, const Workload& w) {
  if (state.eager().loaded().device.starts_with("cuda")) return NAN;  // no processor's work
  constexpr std::size_t kRuns = 8;
  const auto least = [&](const Variant& one) {
    const Model model = state.harness.load(one, 1);
    Forecaster forecaster = state.forecaster(model, one);
    const Work work(w, patch_of(model));
    const Series series = work.owned.view();
    std::vector<Forecast> out(1);
    double best = INFINITY;
    for (std::size_t i = 0; i < kRuns; ++i) {
      const double start = state.harness.processor_seconds();
      forecaster.forecast({&series, 1}, work.options, out);
      best = std::min(best, state.harness.processor_seconds() - start);
    }
    return best;
  };
  return least(variant) / least({Mode::eager, Precision::float32});
}

std::string milliseconds(double seconds) { return fmt::format("{:.3g}", seconds * 1e3); }

void add_row(SuiteState& state, const Variant& variant, const Workload& w, const Pair& p) {
  VerifyTable& t = state.tables["1 performance"];
  if (t.columns.empty()) {
    t.title = "Performance";
    t.note =
        "Milliseconds of one forecast: one series, eight patches of context; one patch ahead, and "
        "two patches ahead with 8 trajectories. `eager` takes turns with each mode.";
    t.columns = {
        "workload",           "as",      "p50", "p95", "p99", "spread", "eager p50", "faster",
        "working memory MiB", "of eager"};
  }
  const auto mebibytes = [](std::uint64_t bytes) {
    return fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 20));
  };
  t.rows.push_back(
      {w.name, variant.label(), milliseconds(p.mode.at(0.5)), milliseconds(p.mode.at(0.95)),
       milliseconds(p.mode.at(0.99)), fmt::format("{:.1f} %", 100 * p.mode.spread()),
       milliseconds(p.eager.at(0.5)), fmt::format("{:.2f} x", p.eager.at(0.5) / p.mode.at(0.5)),
       mebibytes(p.mode_counters.working_bytes), mebibytes(p.eager_counters.working_bytes)});
}

/// Measures again where the machine was too busy with something else for a verdict.
Pair measure_in_quiet(SuiteState& state, const Variant& variant, const Workload& w, int& attempts) {
  const std::size_t runs = state.quick() ? 8 : 40;
  const auto good = [](const Pair& p) {
    return p.mode.spread() <= kSpread && p.mode.at(0) <= kNeverSlower * p.eager.at(0);
  };
  Pair best = measure(state, variant, w, runs);
  for (attempts = 1; attempts < kAttempts && !good(best); ++attempts) {
    Pair again = measure(state, variant, w, runs);
    if (good(again) || again.mode.spread() < best.mode.spread()) best = std::move(again);
  }
  return best;
}

std::vector<Check> speed_of(const Workload& w, const Pair& p, int attempts) {
  const std::string name = w.name;
  std::vector<Check> checks;
  // Whatever else the machine does only adds to a time: the fastest runs tell the programs apart.
  const double slowdown = p.mode.at(0) / p.eager.at(0);
  const std::string times = fmt::format(
      "fastest of {} runs {} ms, eager {} ms; median {} ms, eager {} ms; attempt {} of {}; "
      "other programs kept {:.1f} cores busy",
      p.mode.seconds.size(), milliseconds(p.mode.at(0)), milliseconds(p.eager.at(0)),
      milliseconds(p.mode.at(0.5)), milliseconds(p.eager.at(0.5)), attempts, kAttempts, p.others);
  checks.push_back(judge_slowdown(name + ", slowdown", slowdown, p.by_processor, p.others, times));
  Check target = measured(name + ", target", "fastest time / that of eager", slowdown, w.target,
                          "x", "the documented target; missing it is a warning; " + times);
  if (target.verdict == Verdict::fails && std::isfinite(slowdown))
    target.verdict = Verdict::warning;
  checks.push_back(std::move(target));
  checks.push_back(judge_spread(name + ", spread", p.mode.spread(), p.eager.spread(), p.others));
  const std::uint64_t mine = p.mode_counters.working_bytes, its = p.eager_counters.working_bytes;
  checks.push_back(measured(name + ", memory", "working memory over that of eager",
                            ratio(static_cast<double>(mine), static_cast<double>(its)) - 1,
                            kMemoryOverhead, "of eager's",
                            fmt::format("{} and {} bytes", mine, its)));
  checks.push_back(measured(name + ", build", "seconds to build the plans",
                            p.mode_counters.plan_seconds + p.mode_counters.capture_seconds,
                            kBuildSeconds, "s",
                            fmt::format("{} plans", p.mode_counters.plan_builds)));
  return checks;
}

}  // namespace

bool is_busy(double others) { return others >= kBusyCores; }

Check judge_slowdown(const std::string& name, double slowdown, double by_processor, double others,
                     const std::string& times) {
  Check c = measured(name, "fastest time / that of eager", slowdown, kNeverSlower, "x", times);
  if (c.verdict != Verdict::fails || !std::isfinite(slowdown)) return c;
  if (!is_busy(others)) {
    c.why += "; the machine was idle: this build is slow";
    return c;
  }
  if (!std::isfinite(by_processor)) {
    c.why +=
        "; this machine was busy, so that nothing is known of this build: run again on an idle "
        "machine";
    return c;
  }
  const std::string processor = fmt::format(
      "by the processor time of one thread, to which other programs add nothing, it is {:.2f} x",
      by_processor);
  if (by_processor <= kNeverSlower) {
    c.verdict = Verdict::warning;
    c.why += "; this machine was busy: " + processor + ", so this build is not slow";
  } else {
    c.measure = "processor time of one thread / that of eager";
    c.value = by_processor;
    c.why += "; this machine was busy, and this build is slow: " + processor;
  }
  return c;
}

Check judge_spread(const std::string& name, double spread, double of_eager, double others) {
  Check c = measured(name, "standard deviation / mean of the times", spread, kSpread, {},
                     fmt::format("above 0.05 is a warning; {:.3g} for eager; other programs kept "
                                 "{:.1f} cores busy",
                                 of_eager, others));
  if (c.holds() && spread > kQuietSpread) c.verdict = Verdict::warning;
  if (c.verdict == Verdict::fails && std::isfinite(spread) && is_busy(others)) {
    c.verdict = Verdict::warning;
    c.why +=
        "; this machine was busy, which says nothing about this build: run again on an idle "
        "machine";
  }
  return c;
}

std::vector<Check> speed(SuiteState& state, const Variant& variant) {
  state.wait_for_second_process();  // which would have its share of the machine
  std::vector<Check> checks;
  for (const Workload& w : kWorkloads) {
    int attempts = 0;
    Pair pair = measure_in_quiet(state, variant, w, attempts);
    if (pair.mode.at(0) > kNeverSlower * pair.eager.at(0) && is_busy(pair.others)) {
      pair.by_processor = processor_ratio(state, variant, w);
    }
    add_row(state, variant, w, pair);
    for (Check& c : speed_of(w, pair, attempts)) checks.push_back(std::move(c));
  }
  return checks;
}

}  // namespace toto::verify
