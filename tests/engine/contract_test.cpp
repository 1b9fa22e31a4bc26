// SPDX-License-Identifier: Apache-2.0
// The contracts of docs/design.md on the fast CPU backend: bits that depend on nothing but the
// series, plans that are built once, and no heap allocation after warm-up.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "support/counted_allocations.h"
#include "support/requests.h"

namespace toto {
namespace {

using test::expect_same;
using test::odd_config;
using test::OwnedSeries;
using test::views;
using test::wave;

ForecastOptions sampled(std::size_t horizon, std::size_t samples) {
  ForecastOptions options;
  options.horizon = horizon;
  options.num_samples = samples;
  options.keep_samples = true;
  options.keep_parameters = true;
  options.seed = 3;
  return options;
}

struct Setting {
  Precision precision;
  bool eager;
};

/// Memory of this process that lies in RAM, in bytes; 0 where the system does not say.
std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  file >> total >> resident;
  return file ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

class Contract : public testing::TestWithParam<Setting> {
 protected:
  [[nodiscard]] Model make(int threads) const {
    LoadOptions options;
    options.precision = GetParam().precision;
    options.threads = threads;
    return test::make_model(odd_config(), false,
                            GetParam().eager ? Execution::eager() : Execution{}, 5, options);
  }
  static std::vector<OwnedSeries> many() { return test::many(64); }
};

TEST_P(Contract, ThreadsChangeNoBit) {
  const auto owned = many();
  const auto series = views(owned);
  const auto options = sampled(20, 6);
  const auto one = Forecaster(make(1)).forecast(series, options);
  for (const int threads : {2, 3}) {
    const auto other = Forecaster(make(threads)).forecast(series, options);
    for (std::size_t i = 0; i < series.size(); ++i) expect_same(one[i], other[i]);
  }
}

TEST_P(Contract, PlaceInTheBatchChangesNoBit) {
  const auto owned = many();
  const Model model = make(2);
  const auto options = sampled(12, 5);
  const auto all = Forecaster(model).forecast(views(owned), options);
  for (const std::size_t i : {0U, 1U, 7U, 31U, 62U, 63U}) {
    expect_same(Forecaster(model).forecast(views({owned[i]}), options).front(), all[i]);
  }
  std::vector<OwnedSeries> shuffled = owned;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(1));
  const auto mixed = Forecaster(model).forecast(views(shuffled), options);
  for (std::size_t i = 0; i < shuffled.size(); ++i) {
    const auto same = std::find_if(all.begin(), all.end(),
                                   [&](const Forecast& f) { return f.id == shuffled[i].id; });
    expect_same(mixed[i], *same);
  }
}

TEST_P(Contract, MemoryLimitsSplitBatchesAndChangeNoBit) {
  const auto owned = many();
  const auto series = views(owned);
  const Model model = make(2);
  const auto options = sampled(20, 6);
  Forecaster free(model);
  std::vector<Forecast> whole(series.size());
  free.forecast(series, options, whole);
  EXPECT_EQ(free.counters().splits, 0U);
  ForecasterOptions limited;
  limited.memory_limit = free.counters().working_bytes / 12;
  Forecaster small(model, limited);
  std::vector<Forecast> split(series.size());
  small.forecast(series, options, split);
  EXPECT_GT(small.counters().splits, 0U);
  EXPECT_LE(small.counters().working_bytes, limited.memory_limit);
  for (std::size_t i = 0; i < series.size(); ++i) expect_same(whole[i], split[i]);

  limited.memory_limit = 1000;
  Forecaster none(model, limited);
  try {
    none.forecast(series, options, split);
    FAIL() << "fitted into 1000 bytes";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "memory_limit");
    EXPECT_NE(std::string(e.what()).find("MiB"), std::string::npos);
  }
}

TEST_P(Contract, PlansEvictedAndRebuiltGiveTheSameBits) {
  const Model model = make(2);
  ForecasterOptions one_plan;
  one_plan.max_plans = 1;
  Forecaster forecaster(model, one_plan);
  const std::vector<OwnedSeries> small = {wave(0, 30)};
  const std::vector<OwnedSeries> large = {wave(1, 400, 3)};
  std::vector<Forecast> first(1), between(1), again(1);
  forecaster.forecast(views(small), sampled(20, 4), first);
  forecaster.forecast(views(large), sampled(40, 9), between);
  EXPECT_EQ(forecaster.counters().plan_evictions, 1U);
  forecaster.forecast(views(small), sampled(20, 4), again);
  expect_same(first.front(), again.front());
  expect_same(Forecaster(model).forecast(views(large), sampled(40, 9)).front(), between.front());
}

/// What only plans promise: `eager` has none.
class PlanContract : public Contract {};

TEST_P(PlanContract, NothingIsBuiltAfterWarmUp) {
  Forecaster forecaster(make(2));
  const WarmupShape shape{64, 20, 2, 5};
  ForecastOptions options;
  options.num_samples = 4;
  forecaster.warm_up({&shape, 1}, options);
  const Counters before = forecaster.counters();
  EXPECT_GE(before.plan_builds, 1U);
  EXPECT_FALSE(before.builds.empty());
  std::mt19937 random(4);
  for (int i = 0; i < 200; ++i) {
    std::vector<OwnedSeries> owned;
    const std::size_t batch = 1 + random() % 5;
    for (std::size_t b = 0; b < batch; ++b)
      owned.push_back(wave(b, 1 + random() % 64, 1 + random() % 2));
    options.horizon = 1 + random() % 20;
    (void)forecaster.forecast(views(owned), options);
  }
  const Counters after = forecaster.counters();
  EXPECT_EQ(after.plan_builds, before.plan_builds);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.forecasts, before.forecasts + 200);
  EXPECT_GE(after.plan_hits, before.plan_hits + 200);
}

TEST_P(PlanContract, NothingIsAllocatedAfterWarmUp) {
  if (!test::allocations_are_counted()) GTEST_SKIP() << "a sanitizer has the allocator";
  Forecaster forecaster(make(2));
  ForecastOptions options;
  options.num_samples = 4;
  options.horizon = 20;
  std::vector<OwnedSeries> largest;
  for (std::size_t b = 0; b < 5; ++b) largest.push_back(wave(b, 64, 2));
  std::vector<Forecast> out(5);
  forecaster.forecast(views(largest), options, out);  // the warm-up of everything, `out` included

  std::mt19937 random(5);
  const std::int64_t resident = resident_bytes();
  for (int i = 0; i < 1000; ++i) {
    std::vector<OwnedSeries> owned;
    const std::size_t batch = 1 + random() % 5;
    for (std::size_t b = 0; b < batch; ++b)
      owned.push_back(wave(b, 1 + random() % 64, 1 + random() % 2));
    const std::vector<Series> series = views(owned);
    options.horizon = 1 + random() % 20;
    const std::uint64_t before = test::allocations();
    forecaster.forecast(series, options, std::span(out).first(batch));
    ASSERT_EQ(test::allocations(), before)
        << "forecast " << i << ", batch " << batch << ", horizon " << options.horizon;
  }
  EXPECT_LE(resident_bytes() - resident, 1 << 20);
}

TEST(Tf32, IsFloat32OnACpu) {
  const auto forecast = [](Precision precision) {
    LoadOptions load;
    load.precision = precision;
    load.threads = 1;
    const std::vector<OwnedSeries> owned = {wave(0, 60, 2), wave(1, 33)};
    ForecastOptions options;
    options.horizon = 20;
    options.num_samples = 4;
    options.keep_samples = true;
    return Forecaster(test::make_model(test::spec_config(), false, {}, 1, load))
        .forecast(views(owned), options);
  };
  const auto found = forecast(Precision::tf32);
  const auto single = forecast(Precision::float32);
  for (std::size_t i = 0; i < found.size(); ++i) expect_same(found[i], single[i]);
}

std::string name_of(const testing::TestParamInfo<Setting>& test) {
  return std::string(test.param.precision == Precision::float32 ? "f32" : "bf16") +
         (test.param.eager ? "_eager" : "");
}

INSTANTIATE_TEST_SUITE_P(Cpu, PlanContract,
                         testing::Values(Setting{Precision::float32, false},
                                         Setting{Precision::bfloat16, false}),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Cpu, Contract,
                         testing::Values(Setting{Precision::float32, false},
                                         Setting{Precision::float32, true},
                                         Setting{Precision::bfloat16, false}),
                         name_of);

}  // namespace
}  // namespace toto
