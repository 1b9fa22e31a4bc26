// SPDX-License-Identifier: Apache-2.0
// Whole forecasts on a CUDA device: against the CPU, the contracts of docs/design.md, and that a
// forecast is one graph. Skipped where there is no device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "small_model.h"

namespace toto {
namespace {

using test::OwnedSeries;
using test::wave;

Toto1Config odd_config() {
  Toto1Config c = test::spec_config();
  c.embed_dim = 84;
  c.num_heads = 6;
  c.mlp_hidden_dim = 116;
  c.spacewise_every_n_layers = 2;
  c.components = 5;
  return c;
}

std::vector<OwnedSeries> many() {
  std::vector<OwnedSeries> all;
  for (std::size_t i = 0; i < 40; ++i) all.push_back(wave(i, 1 + (i * 37) % 120, 1 + i % 4));
  return all;
}

std::vector<Series> views(const std::vector<OwnedSeries>& owned) {
  std::vector<Series> series;
  for (const OwnedSeries& s : owned) series.push_back(s.view());
  return series;
}

void expect_same(const Forecast& a, const Forecast& b) {
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.std, b.std);
  EXPECT_EQ(a.quantiles, b.quantiles);
  EXPECT_EQ(a.samples, b.samples);
}

/// The largest difference in units of the series' scale, about 3.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]) /
                                    (1 + std::abs(static_cast<double>(b[i]))));
  }
  return largest;
}

class CudaForecast : public testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    const std::string why = cuda_unavailable();
    if (!why.empty()) GTEST_SKIP() << why;
  }
  [[nodiscard]] static Model make(const std::string& backend, Mode mode = Mode::reduce_overhead) {
    LoadOptions options;
    options.backend = backend;
    options.precision = GetParam();
    options.mode = mode;
    options.threads = 1;
    return test::make_model(odd_config(), false,
                            mode == Mode::eager ? Execution::eager() : Execution{}, 5, options);
  }
  static ForecastOptions options(std::size_t horizon, bool samples = true) {
    ForecastOptions o;
    o.horizon = horizon;
    o.num_samples = 6;
    o.keep_samples = samples;
    o.seed = 3;
    return o;
  }
};

TEST_P(CudaForecast, AgreesWithTheCpu) {
  const auto owned = many();
  const double bound = GetParam() == Precision::float32 ? 2e-5 : 5e-2;
  for (const std::size_t horizon : {1U, 5U, 8U, 20U}) {
    ForecastOptions o = options(horizon);
    o.mean_only = horizon == 20;  // draws may pick another component after a rounding
    o.keep_samples = false;
    const auto cpu = Forecaster(make("cpu")).forecast(views(owned), o);
    for (const Mode mode : {Mode::eager, Mode::planned, Mode::reduce_overhead}) {
      Forecaster forecaster(make("cuda", mode));
      const auto cuda = forecaster.forecast(views(owned), o);
      for (std::size_t i = 0; i < owned.size(); ++i) {
        EXPECT_LT(difference(cuda[i].mean, cpu[i].mean), bound) << "horizon " << horizon;
        EXPECT_LT(difference(cuda[i].std, cpu[i].std), bound) << "horizon " << horizon;
        EXPECT_LT(difference(cuda[i].quantiles, cpu[i].quantiles), bound) << "horizon " << horizon;
      }
      EXPECT_EQ(forecaster.counters().graph_replays, mode == Mode::reduce_overhead ? 1U : 0U);
    }
  }
}

TEST_P(CudaForecast, AGraphGivesWhatItsOperationsGive) {
  const auto owned = many();
  for (const std::size_t horizon : {3U, 20U}) {
    const auto one =
        Forecaster(make("cuda", Mode::planned)).forecast(views(owned), options(horizon));
    const auto graph = Forecaster(make("cuda")).forecast(views(owned), options(horizon));
    for (std::size_t i = 0; i < owned.size(); ++i) {
      EXPECT_EQ(one[i].samples, graph[i].samples);
      EXPECT_LT(difference(one[i].quantiles, graph[i].quantiles), 1e-6);
    }
  }
}

TEST_P(CudaForecast, PlaceInTheBatchChangesNoBit) {
  const auto owned = many();
  const Model model = make("cuda");
  for (const std::size_t horizon : {7U, 20U}) {
    const auto all = Forecaster(model).forecast(views(owned), options(horizon));
    for (const std::size_t i : {0U, 1U, 7U, 31U, 39U}) {
      expect_same(Forecaster(model).forecast(views({owned[i]}), options(horizon)).front(), all[i]);
    }
    std::vector<OwnedSeries> shuffled = owned;
    std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(1));
    const auto mixed = Forecaster(model).forecast(views(shuffled), options(horizon));
    for (std::size_t i = 0; i < shuffled.size(); ++i) {
      const auto same = std::find_if(all.begin(), all.end(),
                                     [&](const Forecast& f) { return f.id == shuffled[i].id; });
      expect_same(mixed[i], *same);
    }
  }
}

TEST_P(CudaForecast, MemoryLimitsSplitBatchesAndChangeNoBit) {
  const auto owned = many();
  const auto series = views(owned);
  const Model model = make("cuda");
  Forecaster free(model);
  std::vector<Forecast> whole(series.size());
  free.forecast(series, options(20), whole);
  ForecasterOptions limited;
  limited.memory_limit = free.counters().working_bytes / 12;
  Forecaster small(model, limited);
  std::vector<Forecast> split(series.size());
  small.forecast(series, options(20), split);
  EXPECT_GT(small.counters().splits, 0U);
  for (std::size_t i = 0; i < series.size(); ++i) expect_same(whole[i], split[i]);
}

TEST_P(CudaForecast, AForecastIsOneGraph) {
  Forecaster forecaster(make("cuda"));
  const std::vector<OwnedSeries> owned = {wave(0, 60, 2), wave(1, 64), wave(2, 57)};
  std::vector<Forecast> first(3), again(3);
  forecaster.forecast(views(owned), options(20), first);
  const Counters before = forecaster.counters();
  EXPECT_EQ(before.graph_captures, 1U);
  for (int i = 0; i < 10; ++i) forecaster.forecast(views(owned), options(20), again);
  // Other lengths of the same buckets, another seed: the same graph.
  const std::vector<OwnedSeries> other = {wave(3, 64, 2), wave(4, 58), wave(5, 64)};
  ForecastOptions o = options(20);
  o.seed = 9;
  std::vector<Forecast> unlike(3);
  forecaster.forecast(views(other), o, unlike);
  forecaster.forecast(views(owned), options(20), again);
  for (std::size_t i = 0; i < 3; ++i) {
    expect_same(first[i], again[i]);
    EXPECT_NE(first[i].samples, unlike[i].samples);
  }
  const Counters after = forecaster.counters();
  EXPECT_EQ(after.graph_captures, 1U);
  EXPECT_EQ(after.graph_replays, before.graph_replays + 12);
  EXPECT_EQ(after.host_reads, before.host_reads);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.graph_fallbacks, 0U);
}

TEST_P(CudaForecast, PlansEvictedAndRebuiltGiveTheSameBits) {
  const Model model = make("cuda");
  ForecasterOptions one_plan;
  one_plan.max_plans = 1;
  Forecaster forecaster(model, one_plan);
  const std::vector<OwnedSeries> small = {wave(0, 30)};
  const std::vector<OwnedSeries> large = {wave(1, 400, 3)};
  std::vector<Forecast> first(1), between(1), again(1);
  forecaster.forecast(views(small), options(20), first);
  forecaster.forecast(views(large), options(40), between);
  forecaster.forecast(views(small), options(20), again);
  expect_same(first.front(), again.front());
  expect_same(Forecaster(model).forecast(views(large), options(40)).front(), between.front());
}

std::string type_name(const testing::TestParamInfo<Precision>& made) {
  return made.param == Precision::float32 ? "float32" : "bfloat16";
}
INSTANTIATE_TEST_SUITE_P(Types, CudaForecast,
                         testing::Values(Precision::float32, Precision::bfloat16), type_name);

}  // namespace
}  // namespace toto
