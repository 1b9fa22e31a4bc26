// SPDX-License-Identifier: Apache-2.0
// What a forecaster takes from the plan cache on disk and leaves there, and what max-autotune
// chooses.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "engine/autotune.h"
#include "support/small_model.h"

namespace toto {
namespace {

class PlanCacheFolder : public testing::Test {
 protected:
  PlanCacheFolder()
      : folder_(std::filesystem::temp_directory_path() /
                ("toto-plan-use-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(folder_);
  }
  ~PlanCacheFolder() override { std::filesystem::remove_all(folder_); }

  static Model make(Mode mode, const std::string& backend = {}) {
    LoadOptions options;
    options.mode = mode;
    if (!backend.empty()) options.backend = backend;
    return test::make_model(test::spec_config(), false, {}, 1, options);
  }
  [[nodiscard]] ForecasterOptions options() const {
    ForecasterOptions o;
    o.plan_cache_dir = folder_.string();
    return o;
  }
  static Forecast run(Forecaster& forecaster) {
    const test::OwnedSeries s = test::wave(3, 100, 2);
    const Series view = s.view();
    ForecastOptions o;
    o.horizon = 20;
    o.num_samples = 8;
    o.keep_samples = true;
    std::vector<Forecast> out(1);
    forecaster.forecast({&view, 1}, o, out);
    return out.front();
  }

 private:
  std::filesystem::path folder_;
};

class PlanCacheUse : public PlanCacheFolder, public testing::WithParamInterface<Mode> {};

TEST_P(PlanCacheUse, APlanFromTheCacheGivesTheSameBits) {
  const Model model = make(GetParam());
  Forecaster first(model, options());
  const Forecast before = run(first);
  EXPECT_EQ(first.counters().cache_loads, 0U);
  EXPECT_EQ(first.counters().plan_builds, 1U);

  Forecaster second(model, options());
  EXPECT_EQ(second.counters().cache_loads, 1U);
  EXPECT_EQ(second.counters().plan_builds, 0U);  // nothing that was not asked for
  EXPECT_EQ(second.counters().working_bytes, 0U);
  ASSERT_EQ(second.known_shapes().size(), 1U);
  EXPECT_EQ(second.known_shapes().front().context, 100U);
  EXPECT_EQ(second.known_shapes().front().horizon, 20U);
  EXPECT_EQ(second.known_shapes().front().variates, 2U);
  ForecastOptions warm;
  warm.num_samples = 8;
  warm.keep_samples = true;
  second.warm_up(second.known_shapes(), warm);
  EXPECT_EQ(second.counters().plan_builds, 1U);
  const Forecast after = run(second);
  EXPECT_EQ(second.counters().plan_builds, 1U);
  EXPECT_GE(second.counters().plan_hits, 1U);
  EXPECT_EQ(before.samples, after.samples);
  EXPECT_EQ(before.quantiles, after.quantiles);
}

TEST_F(PlanCacheFolder, TuningMeasuresOnceAndChangesNoBit) {
  Forecaster tuned(make(Mode::max_autotune), options());
  EXPECT_GT(tuned.counters().autotune_runs, 0U);
  Forecaster again(make(Mode::max_autotune), options());
  EXPECT_EQ(again.counters().autotune_runs, 0U);  // from the cache
  Forecaster plain(make(Mode::reduce_overhead));
  EXPECT_EQ(run(tuned).samples, run(plain).samples);
  EXPECT_EQ(run(again).samples, run(plain).samples);
}

TEST_F(PlanCacheFolder, NothingIsMeasuredWhereThereIsNothingToChoose) {
  Forecaster one_way(make(Mode::max_autotune, "reference"), options());
  EXPECT_EQ(one_way.counters().autotune_runs, 0U);
}

INSTANTIATE_TEST_SUITE_P(Modes, PlanCacheUse,
                         testing::Values(Mode::planned, Mode::reduce_overhead, Mode::max_autotune),
                         [](const auto& test) {
                           return test.param == Mode::planned           ? "planned"
                                  : test.param == Mode::reduce_overhead ? "reduce_overhead"
                                                                        : "max_autotune";
                         });

TEST(Autotune, EveryCandidateGivesTheSameBits) {
  LoadOptions options;
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    options.precision = precision;
    const Model model = test::make_model(test::spec_config(), false, {}, 1, options);
    std::uint64_t measured = 0;
    int refused = 0;
    const auto choices = autotune(
        *model.impl().net, {},
        [&](const LogEvent& event) { refused += event.code == "kernel_refused" ? 1 : 0; },
        measured);
    EXPECT_EQ(refused, 0);
    EXPECT_EQ(measured, choices.size());
    EXPECT_GE(choices.size(), 5U);  // embed, qkv, out, in, out of the MLP, head
    const auto again = autotune(*model.impl().net, choices, {}, measured);
    EXPECT_EQ(measured, choices.size());
    EXPECT_EQ(again, choices);
  }
}

}  // namespace
}  // namespace toto
