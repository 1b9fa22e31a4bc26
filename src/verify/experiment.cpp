// SPDX-License-Identifier: Apache-2.0
#include "verify/experiment.h"

#include <algorithm>
#include <cmath>

#include "model/model_impl.h"

namespace toto::verify {
const Model& Experiment::eager() {
  if (!eager_) eager_ = lab.load({Mode::eager, Precision::float32}, 0);
  return *eager_;
}

const Model& Experiment::model(const Subject& subject) {
  if (subject == Subject{Mode::eager, Precision::float32}) return eager();
  if (!model_ || !(loaded_ == subject)) {
    unload();
    model_ = lab.load(subject, 0);
    loaded_ = subject;
    const Forecaster tuned(*model_);  // what max-autotune measures, it measures here
  }
  return *model_;
}

void Experiment::unload() {
  if (!model_) return;
  model_.reset();
  resident_after_unloading.push_back(lab.resident());
}

const std::vector<Case>& Experiment::cases() {
  if (cases_.empty()) cases_ = make_cases(options, eager());
  return cases_;
}

const std::vector<Record>& Experiment::eager_records() {
  if (eager_records_.empty()) {
    for (const Case& one : cases()) eager_records_.push_back(run_case(eager(), one));
  }
  return eager_records_;
}

/// Everything that float64 is asked, since it is loaded once.
void Experiment::run_exact() {
  if (!exact_records_.empty()) return;
  const std::vector<Case>& all = cases();
  const Model exact = lab.load({Mode::planned, Precision::float64}, 0);
  exact_windows_ = forecast_windows(exact, windows());
  for (const Case& one : all) exact_records_.push_back(run_case(exact, one));
}

const std::vector<Record>& Experiment::exact_records() {
  run_exact();
  return exact_records_;
}

const std::vector<Forecast>& Experiment::exact_windows() {
  run_exact();
  return exact_windows_;
}

const Windows& Experiment::windows() {
  if (windows_.all.empty()) {
    windows_ = make_windows(options, static_cast<std::size_t>(eager().info().patch_size));
  }
  return windows_;
}

const std::vector<Forecast>& Experiment::eager_windows() {
  if (eager_windows_.empty()) eager_windows_ = forecast_windows(eager(), windows());
  return eager_windows_;
}

void Experiment::start_second_process() {
  second_ = std::async(std::launch::async, [this] { return lab.second_process(); });
}

const std::string& Experiment::second_process() {
  if (second_.valid()) second_bits_ = second_.get();
  return second_bits_;
}

std::string Experiment::isa() const {
  return eager_ ? std::string(eager_->impl().net->backend().isa()) : std::string();
}

void Experiment::wait_for_second_process() const {
  if (second_.valid()) second_.wait();
}

std::vector<Subject> Experiment::subjects() const {
  std::vector<Subject> all;
  for (const Mode mode : {Mode::planned, Mode::reduce_overhead, Mode::max_autotune}) {
    all.push_back({mode, Precision::float32});
  }
  if (options.load.backend != "cpu") return all;
  if (quick()) {
    all.push_back({options.load.mode == Mode::eager ? Mode::reduce_overhead : options.load.mode,
                   Precision::bfloat16});
    return all;
  }
  for (const Mode mode : {Mode::eager, Mode::planned, Mode::reduce_overhead, Mode::max_autotune}) {
    all.push_back({mode, Precision::bfloat16});
  }
  return all;
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

std::vector<OwnedSeries> own_series(const Experiment& e, std::size_t steps, std::size_t most) {
  std::vector<OwnedSeries> all;
  for (const Series& s : e.options.data.first(std::min(most, e.options.data.size()))) {
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
