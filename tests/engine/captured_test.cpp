// SPDX-License-Identifier: Apache-2.0
// Forecasts that are captured and replayed: the bits of the operations one by one, a graph for each
// shape, and what the counters say of it. The device is the CPU (capturing_backend.h).
#include <gmock/gmock.h>

#include "support/capturing_backend.h"
#include "support/log_lines.h"
#include "support/requests.h"

namespace toto {
namespace {

using test::CapturingBackend;
using test::expect_same;
using test::many;
using test::odd_model_on;
using test::OwnedSeries;
using test::six_samples;
using test::views;
using test::wave;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::size_t kTooLong = 65 * 8;  // a graph holds 64 patches

class Captured : public testing::Test {
 protected:
  std::shared_ptr<CapturingBackend> device_ = std::make_shared<CapturingBackend>();
  Model model_{odd_model_on(device_)};
  Model plain_{odd_model_on(make_backend({}))};  // operation by operation
};

TEST_F(Captured, ForecastsHaveTheBitsOfOperationByOperation) {
  const auto owned = many(9);
  Forecaster replayed(model_), expected(plain_);
  std::uint64_t calls = 0;
  const auto compare = [&](const ForecastOptions& o) {
    const auto a = replayed.forecast(views(owned), o);
    const auto b = expected.forecast(views(owned), o);
    for (std::size_t i = 0; i < owned.size(); ++i) {
      expect_same(a[i], b[i]);
      EXPECT_EQ(a[i].median, b[i].median);
    }
    EXPECT_EQ(replayed.counters().graph_replays, ++calls);
  };
  for (const std::size_t horizon : {3U, 8U, 20U, 27U}) {
    for (const QuantilesFrom from : {QuantilesFrom::automatic, QuantilesFrom::samples}) {
      ForecastOptions o = six_samples(horizon);
      o.quantiles_from = from;
      compare(o);
      o.keep_samples = false;
      o.levels = {0.05, 0.5, 0.7, 0.99};
      o.seed = 77;
      compare(o);
    }
    ForecastOptions o = six_samples(horizon);
    o.keep_samples = false;
    o.mean_only = true;
    compare(o);
  }
  EXPECT_EQ(replayed.counters().graph_fallbacks, 0U);
  EXPECT_EQ(replayed.counters().splits, 0U);
}

TEST_F(Captured, CoherentPathsHaveTheBitsOfOperationByOperation) {
  const auto owned = many(9);
  ForecasterOptions little;
  little.memory_limit = 8'000'000;
  Forecaster replayed(model_), in_passes(model_, little), expected(plain_);
  std::uint64_t calls = 0;
  for (const std::size_t horizon : {3U, 8U, 27U}) {
    ForecastOptions o = six_samples(horizon);
    o.paths = Paths::coherent;
    o.quantiles_from = QuantilesFrom::samples;
    const auto a = replayed.forecast(views(owned), o);
    const auto b = expected.forecast(views(owned), o);
    for (std::size_t i = 0; i < owned.size(); ++i) expect_same(a[i], b[i]);
    EXPECT_EQ(replayed.counters().graph_replays, ++calls);
    o.paths = Paths::independent;
    EXPECT_NE(replayed.forecast(views(owned), o)[0].samples, a[0].samples);
    ++calls;
    o.paths = Paths::coherent;
    o.num_samples = 90;
    const auto few = in_passes.forecast(views(owned), o);
    const auto many_more = expected.forecast(views(owned), o);
    for (std::size_t i = 0; i < owned.size(); ++i) expect_same(few[i], many_more[i]);
  }
  EXPECT_EQ(replayed.counters().graph_fallbacks, 0U);
  EXPECT_EQ(in_passes.counters().graph_fallbacks, 0U);
}

TEST_F(Captured, TrajectoriesInSeveralPassesAreTheSame) {
  ForecasterOptions little;
  little.memory_limit = 1'000'000;
  Forecaster replayed(model_, little), expected(plain_);
  const std::vector<OwnedSeries> owned = {wave(1, 60, 2)};
  ForecastOptions o = six_samples();
  o.num_samples = 500;
  expect_same(replayed.forecast(views(owned), o).front(),
              expected.forecast(views(owned), o).front());
  EXPECT_EQ(replayed.counters().graph_replays, 1U);
  EXPECT_EQ(replayed.counters().graph_fallbacks, 0U);
  EXPECT_LE(replayed.counters().working_bytes, little.memory_limit);
  EXPECT_GT(expected.counters().working_bytes, little.memory_limit);
}

TEST_F(Captured, CovariatesAreInjected) {
  test::expect_unknown_covariates_are_forecast(model_, six_samples());
  OwnedSeries known = wave(5, 50, 3);
  known.exogenous = 1;
  known.future.assign(20, 3.0F);
  Forecaster replayed(model_), expected(plain_);
  expect_same(replayed.forecast(views({known}), six_samples()).front(),
              expected.forecast(views({known}), six_samples()).front());
}

TEST_F(Captured, AShapeIsCapturedOnce) {
  Forecaster replayed(model_), expected(plain_);
  const auto forecast = [&](const OwnedSeries& series, std::uint64_t seed) {
    ForecastOptions o = six_samples();
    o.seed = seed;
    expect_same(replayed.forecast(views({series}), o).front(),
                expected.forecast(views({series}), o).front());
  };
  forecast(wave(1, 64), 1);
  const Counters first = replayed.counters();
  EXPECT_EQ(first.graph_captures, 1U);
  EXPECT_GT(first.graph_launches, 10U);
  // Other values, seeds, names, and lengths of the same bucket.
  forecast(wave(2, 64), 2);
  forecast(wave(3, 61), 3);
  forecast(wave(4, 57), 4);
  EXPECT_EQ(replayed.counters().graph_captures, 1U);
  EXPECT_EQ(replayed.counters().graph_replays, 4U);
  EXPECT_EQ(replayed.counters().allocations, first.allocations);
  forecast(wave(5, 640), 5);
  EXPECT_EQ(replayed.counters().graph_captures, 2U);
}

TEST_F(Captured, NoMoreThanMaxPlansAreKept) {
  std::vector<std::string> log;
  ForecasterOptions few;
  few.max_plans = 2;
  few.log = test::infos_into(log);
  {
    Forecaster forecaster(model_, few);
    const std::vector<OwnedSeries> owned = {wave(1, 64)};
    const auto forecast = [&](std::size_t samples) {
      ForecastOptions o = six_samples();
      o.num_samples = samples;
      (void)forecaster.forecast(views(owned), o);
      return forecaster.counters().graph_captures;
    };
    EXPECT_EQ(forecast(7), 1U);
    EXPECT_EQ(forecast(6), 2U);  // in the same plan
    EXPECT_EQ(forecast(7), 2U);
    EXPECT_THAT(log, Not(Contains(HasSubstr("graph evicted"))));
    EXPECT_EQ(forecast(5), 3U);  // that of 6 goes, it was used before that of 7
    EXPECT_THAT(log, Contains(HasSubstr("graph evicted")));
    EXPECT_EQ(forecast(7), 3U);
    EXPECT_EQ(forecast(6), 4U);
    EXPECT_EQ(device_->stagings(), 2 * 2);
  }
  EXPECT_EQ(device_->stagings(), 0);
}

TEST_F(Captured, StrictCountersTellOfCapturesAndFallbacksAfterWarmUp) {
  std::vector<std::string> told;
  ForecasterOptions strict;
  strict.strict_counters = true;
  strict.log = test::warnings_into(told);
  Forecaster forecaster(model_, strict);
  const WarmupShape shape{100, 20, 1, 1};
  ForecastOptions o = six_samples();
  forecaster.warm_up({&shape, 1}, o);
  const std::vector<OwnedSeries> owned = {wave(1, 100)};
  (void)forecaster.forecast(views(owned), o);
  EXPECT_THAT(told, IsEmpty());
  o.num_samples = 5;  // the same plan, another graph
  (void)forecaster.forecast(views(owned), o);
  EXPECT_THAT(told, Contains(HasSubstr("after warm-up: 1 graph captures")));
  told.clear();
  o.horizon = kTooLong;
  (void)forecaster.forecast(views(owned), o);
  EXPECT_THAT(told, Contains(HasSubstr("after warm-up: 1 graph fallbacks")));
}

TEST_F(Captured, HostReadsAreOfOneForecaster) {
  const std::vector<OwnedSeries> owned = {wave(1, 100)};
  Forecaster captured(model_), executed(model_);
  (void)captured.forecast(views(owned), six_samples());
  EXPECT_EQ(captured.counters().host_reads, 0U);
  (void)executed.forecast(views(owned), six_samples(kTooLong));
  EXPECT_GT(executed.counters().host_reads, 0U);
  (void)captured.forecast(views(owned), six_samples());
  EXPECT_EQ(captured.counters().host_reads, 0U);
}

// Parameters, and so every aggregate of them, cost no graph.
TEST_F(Captured, ParametersAreKeptInTheGraph) {
  const auto owned = many(3);
  Forecaster captured(model_), expected(plain_);
  ForecastOptions o = six_samples(20);
  o.keep_parameters = true;
  const auto a = captured.forecast(views(owned), o);
  const auto b = expected.forecast(views(owned), o);
  for (std::size_t i = 0; i < owned.size(); ++i) {
    expect_same(a[i], b[i]);
    EXPECT_FALSE(a[i].parameters.df.empty());
    EXPECT_EQ(a[i].parameters.df, b[i].parameters.df);
    EXPECT_EQ(a[i].parameters.loc, b[i].parameters.loc);
    EXPECT_EQ(a[i].parameters.scale, b[i].parameters.scale);
    EXPECT_EQ(a[i].parameters.probability, b[i].parameters.probability);
    EXPECT_EQ(a[i].parameters.affine_loc, b[i].parameters.affine_loc);
    EXPECT_EQ(a[i].parameters.affine_scale, b[i].parameters.affine_scale);
  }
  EXPECT_EQ(captured.counters().graph_captures, 1U);
  EXPECT_EQ(captured.counters().graph_fallbacks, 0U);
}

// More samples than the device can put in order are put in order by the host.
TEST_F(Captured, StatisticsThatTheDeviceCannotFormAreTheHosts) {
  const auto owned = many(3);
  Forecaster captured(model_), expected(plain_);
  ForecastOptions o = six_samples();
  o.num_samples = 1001;
  const auto a = captured.forecast(views(owned), o);
  const auto b = expected.forecast(views(owned), o);
  for (std::size_t i = 0; i < owned.size(); ++i) expect_same(a[i], b[i]);
  EXPECT_EQ(captured.counters().graph_fallbacks, 0U);
}

TEST_F(Captured, WhatCannotBeCapturedHasTheSameBitsAndAReason) {
  const auto owned = many(3);
  std::vector<std::string> log;
  ForecasterOptions logged;
  logged.log = test::infos_into(log);
  Forecaster forecaster(model_, logged), expected(plain_);
  const ForecastOptions o = six_samples(kTooLong);
  const auto a = forecaster.forecast(views(owned), o);
  const auto b = expected.forecast(views(owned), o);
  for (std::size_t i = 0; i < owned.size(); ++i) expect_same(a[i], b[i]);
  EXPECT_GT(forecaster.counters().graph_fallbacks, 0U);
  EXPECT_EQ(forecaster.counters().graph_captures, 0U);
  EXPECT_THAT(log, Contains(HasSubstr("too many patches")));
}

// Graphs of other shapes are given up before trajectories are split, whichever of a graph's two
// staging buffers finds no memory.
TEST_F(Captured, WithoutMemoryForOneMoreTheOthersGo) {
  for (const int most : {2, 3}) {
    Forecaster forecaster(model_), expected(plain_);
    const std::vector<OwnedSeries> first = {wave(1, 640)}, second = {wave(2, 64)};
    (void)forecaster.forecast(views(first), six_samples());
    int refused = 0;
    device_->on_staging = [&] {
      if (device_->stagings() < most) return;
      ++refused;
      throw std::bad_alloc();
    };
    expect_same(forecaster.forecast(views(second), six_samples()).front(),
                expected.forecast(views(second), six_samples()).front());
    EXPECT_EQ(refused, 1);
    EXPECT_EQ(forecaster.counters().graph_captures, 2U);
    EXPECT_EQ(device_->stagings(), 2);
    expect_same(forecaster.forecast(views(first), six_samples()).front(),
                expected.forecast(views(first), six_samples()).front());
    EXPECT_EQ(refused, 2);
    EXPECT_EQ(forecaster.counters().graph_captures, 3U);
    EXPECT_EQ(forecaster.counters().splits, 0U);
    EXPECT_EQ(forecaster.counters().graph_fallbacks, 0U);
    device_->on_staging = {};
  }
}

TEST_F(Captured, WhatFailsWhileItIsPlayedIsAnErrorAndNotTheEnd) {
  Forecaster forecaster(model_);
  const std::vector<OwnedSeries> owned = {wave(1, 64)};
  const auto before = forecaster.forecast(views(owned), six_samples()).front();
  device_->on_replay = [] { throw Error(ExitStatus::internal, "device_failed", "it has stopped"); };
  try {
    (void)forecaster.forecast(views(owned), six_samples());
    FAIL() << "nothing was replayed";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "device_failed");
  }
  device_->on_replay = {};
  expect_same(forecaster.forecast(views(owned), six_samples()).front(), before);
  EXPECT_EQ(forecaster.counters().graph_captures, 1U);
}

}  // namespace
}  // namespace toto
