// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/suite_state.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "core/cpu_info.h"
#include "models/model_impl.h"

namespace toto::verify {
namespace {

/// Calls `unit(i)` for i below `count` on all cores. Throws what a unit throws, once all have
/// ended.
template <typename Unit>
void on_all_cores(std::size_t count, const Unit& unit) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) unit(i);
  };
  std::vector<std::future<void>> others;
  for (int core = 1; core < available_cores(); ++core) {
    others.push_back(std::async(std::launch::async, work));
  }
  work();
  for (std::future<void>& other : others) other.get();
}

}  // namespace

const Model& SuiteState::eager() {
  if (!eager_) eager_ = harness.load({Mode::eager, Precision::float32}, 0);
  return *eager_;
}

const Model& SuiteState::model(const Variant& variant) {
  if (variant == Variant{Mode::eager, Precision::float32}) return eager();
  if (!model_ || !(loaded_ == variant)) {
    unload();
    model_ = harness.load(variant, 0);
    loaded_ = variant;
    const Forecaster tuned = forecaster(*model_, variant);  // max-autotune measures here
  }
  return *model_;
}

Forecaster SuiteState::forecaster(const Variant& variant) {
  return forecaster(model(variant), variant);
}

Forecaster SuiteState::forecaster(const Model& model, const Variant& variant) const {
  ForecasterOptions o = options.forecaster;
  if (o.plan_cache_dir.empty() || o.plan_cache == CachePolicy::never) return Forecaster(model, o);
  // `only` reads what `prefer` would read, and writes nothing.
  const bool must = o.plan_cache == CachePolicy::only && variant == in_force();
  o.plan_cache = CachePolicy::only;
  try {
    return Forecaster(model, o);
  } catch (const Error& error) {
    if (must || error.code() != "plan_cache_miss") throw;
  }
  o.plan_cache = CachePolicy::never;
  return Forecaster(model, o);
}

void SuiteState::unload() {
  if (!model_) return;
  model_.reset();
  resident_after_unloading.push_back(harness.resident());
}

const std::vector<Case>& SuiteState::cases() {
  if (cases_.empty()) cases_ = make_cases(options, eager());
  return cases_;
}

const std::vector<Record>& SuiteState::eager_records() {
  if (eager_records_.empty()) {
    std::vector<Record> records;  // all or none, whatever is thrown
    for (const Case& one : cases()) records.push_back(run_case(eager(), one, {}));
    eager_records_ = std::move(records);
  }
  return eager_records_;
}

/// Everything that float64 is asked, since it is loaded once. The plain loops have no threads of
/// their own and keep nothing, so that cases can be computed side by side.
void SuiteState::run_exact() {
  if (!exact_records_.empty()) return;
  const std::vector<Case>& all = cases();
  const Windows& held = windows();
  const Model exact = harness.load({Mode::planned, Precision::float64}, 0);
  std::vector<Record> records(all.size());
  std::vector<Forecast> forecasts;
  on_all_cores(all.size() + 1, [&](std::size_t i) {
    if (i == 0) {
      Forecaster forecaster(exact);
      forecasts = forecast_windows(forecaster, held);
    } else if (all[i - 1].with_float64) {
      records[i - 1] = run_case_beside_others(exact, all[i - 1]);
    }
  });
  exact_windows_ = std::move(forecasts);
  exact_records_ = std::move(records);
}

const std::vector<Record>& SuiteState::exact_records() {
  run_exact();
  return exact_records_;
}

const std::vector<Forecast>& SuiteState::exact_windows() {
  run_exact();
  return exact_windows_;
}

const Windows& SuiteState::windows() {
  if (windows_.all.empty()) {
    windows_ = make_windows(options, static_cast<std::size_t>(eager().info().patch_size));
  }
  return windows_;
}

const std::vector<Forecast>& SuiteState::eager_windows() {
  if (eager_windows_.empty()) {
    Forecaster forecaster(eager());
    eager_windows_ = forecast_windows(forecaster, windows());
  }
  return eager_windows_;
}

void SuiteState::start_second_process() {
  second_ = std::async(std::launch::async, [this] { return harness.second_process(); });
}

const std::string& SuiteState::second_process() {
  if (second_.valid()) second_bits_ = second_.get();
  return second_bits_;
}

std::string SuiteState::isa() const {
  return eager_ ? std::string(eager_->impl().net->backend().isa()) : std::string();
}

void SuiteState::wait_for_second_process() const {
  if (second_.valid()) second_.wait();
}

std::vector<Mode> SuiteState::modes() const {
  return options.modes.empty() ? std::vector<Mode>{in_force().mode} : options.modes;
}

std::vector<Variant> SuiteState::variants() const {
  std::vector<Variant> all;
  const auto add = [&](const Variant& variant) {
    const bool there = std::find(all.begin(), all.end(), variant) != all.end();
    if (!there && !(variant == Variant{Mode::eager, Precision::float32})) all.push_back(variant);
  };
  const std::vector<Mode> judged = modes();
  for (const Mode mode : judged) add({mode, Precision::float32});
  // Types that nobody has chosen are looked at where more than what is in force was asked for.
  if (!options.modes.empty() && options.load.backend == "cpu") {
    for (const Mode mode : judged) {
      if (!quick() || mode == in_force().mode) add({mode, Precision::bfloat16});
    }
  }
  // A narrow type in force is looked at wherever it runs. Float32 is in every mode already.
  const Variant chosen = in_force();
  const bool judges_it = std::find(judged.begin(), judged.end(), chosen.mode) != judged.end();
  const bool narrow = chosen.precision == Precision::tf32 ||
                      chosen.precision == Precision::bfloat16 ||
                      chosen.precision == Precision::int8;
  if (judges_it && narrow) add(chosen);
  return all;
}

std::size_t patch_of(const Model& model) {
  return static_cast<std::size_t>(model.info().patch_size);
}

double ratio(double mine, double its) {
  if (!std::isfinite(mine) || !std::isfinite(its)) return std::numeric_limits<double>::quiet_NaN();
  return mine == its ? 1 : mine / its;
}

Check measured(std::string name, std::string measure, double value, double bound, std::string unit,
               std::string why) {
  Check c;
  c.name = std::move(name);
  c.measure = std::move(measure);
  c.value = value;
  c.bound = bound;
  c.unit = std::move(unit);
  c.why = std::move(why);
  // Not `value > bound`: what is not a number must not hold.
  c.verdict = std::isfinite(value) && value <= bound ? Verdict::holds : Verdict::fails;
  return c;
}

std::vector<OwnedSeries> own_series(const SuiteState& state, std::size_t steps, std::size_t most) {
  std::vector<OwnedSeries> all;
  for (const Series& s : state.options.data.first(std::min(most, state.options.data.size()))) {
    all.push_back(cut(s, s.steps, steps));
  }
  if (!all.empty()) return all;
  for (std::size_t i = 0; i < std::min<std::size_t>(most, 7); ++i) {
    all.push_back(
        made_series(400 + i, std::max<std::size_t>(steps - 37 * i % steps, 1), 1 + i % 2));
  }
  return all;
}

}  // namespace toto::verify
