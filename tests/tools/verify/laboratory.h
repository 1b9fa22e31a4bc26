// SPDX-License-Identifier: Apache-2.0
// The checks of `toto verify` on a small model that may have planted faults. Time is counted, not
// measured.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "models/backend_choice.h"
#include "models/checkpoint/checkpoint.h"
#include "models/model_impl.h"
#include "support/faulty_backend.h"
#include "support/test_files.h"
#include "tools/verify/groups.h"

namespace toto::verify {

using test::Faults;

inline const std::string kModel = test::golden("toto1-tiny-a");

/// The small checkpoint, with faults in one mode. A clock that goes on by one with every product.
class FaultyLaboratory : public Harness {
 public:
  FaultyLaboratory(const VerifyOptions& options, Faults faults)
      : Harness(options), faults_(std::move(faults)) {}

  [[nodiscard]] Model load(const Variant& variant, int threads) const override {
    if (variant.precision == Precision::float64) return Harness::load(variant, threads);
    LoadOptions load = options_.load;
    load.mode = variant.mode;
    load.precision = variant.precision;
    if (threads != 0) load.threads = threads;
    Checkpoint checkpoint = open_checkpoint(options_.query);
    auto impl = std::make_shared<Model::Impl>();
    impl->info = std::move(checkpoint.info);
    impl->mode = *load.mode;
    impl->precision = load.precision;
    impl->content_hash = checkpoint.weights.source().content_hash();
    const bool eager = variant.mode == Mode::eager;
    Faults faults = eager ? eager_faults : faults_;
    faults.on_linear = [this, mine = faults.on_linear] {
      clock_ = clock_ + 1;
      processor_ = processor_ + 1;
      if (mine) mine();
    };
    impl->net = checkpoint.config->build(
        checkpoint.weights, std::make_shared<test::FaultyBackend>(make_backend(load), faults),
        eager ? Build::eager : Build::planned,
        eager ? ContextCache::per_trajectory : ContextCache::shared);
    return Model(std::move(impl));
  }
  [[nodiscard]] double now() const override { return clock_; }
  [[nodiscard]] double processor_seconds() const override { return processor_; }
  [[nodiscard]] double used_by_others() const override { return others * clock_; }
  [[nodiscard]] std::uint64_t allocations() const override { return allocations_; }
  [[nodiscard]] std::string second_process() const override {
    const Harness healthy(options_);
    SuiteState state(options_, healthy);
    return bits_of_all(state);
  }
  void before_forecast(Forecaster& forecaster) const override {
    if (before) before(forecaster);
  }

  std::function<void(Forecaster&)> before;
  Faults eager_faults;
  mutable std::atomic<std::uint64_t> allocations_ = 0;
  mutable double clock_ = 0, processor_ = 0;
  double others = 0;  // cores that other programs keep busy

 private:
  Faults faults_;
};

inline VerifyOptions options_for_test() {
  VerifyOptions o;
  o.query.model = kModel;
  o.load.threads = 2;
  o.load.mode = Mode::reduce_overhead;
  o.load = complete(o.load);
  o.modes = {Mode::eager, Mode::planned, Mode::reduce_overhead, Mode::max_autotune};
  o.command = "toto verify";
  return o;
}

/// Runs the items of a group, of all variants or one.
inline VerifyReport run(const Harness& harness, const VerifyOptions& options,
                        const std::string& group, const std::string& name = {}) {
  SuiteState state(options, harness);
  std::vector<Item> items = items_of(state);
  std::erase_if(items, [&](const Item& item) {
    return !item.group.starts_with(group) || item.name.find(name) == std::string::npos;
  });
  return run_items(state, items);
}

inline const Check* find(const VerifyReport& report, const std::string& name) {
  for (const Check& c : report.checks) {
    if (c.name.find(name) != std::string::npos) return &c;
  }
  return nullptr;
}

/// That this check fails, and with it the report.
inline void expect_found(const VerifyReport& report, const std::string& name,
                         Verdict verdict = Verdict::fails) {
  const Check* c = find(report, name);
  ASSERT_NE(c, nullptr) << name;
  EXPECT_EQ(c->verdict, verdict) << c->name << ": " << c->value << " " << c->why;
  EXPECT_EQ(report.status(), ExitStatus::verification_failed);
}

inline void expect_holds(const VerifyReport& report) {
  EXPECT_FALSE(report.checks.empty());
  for (const Check& c : report.checks) {
    EXPECT_TRUE(c.holds()) << c.group << ": " << c.name << ": " << c.value << " > " << c.bound
                           << " " << c.why;
  }
  EXPECT_EQ(report.status(), ExitStatus::ok);
}

inline const std::string kMode = "reduce-overhead float32";

}  // namespace toto::verify
