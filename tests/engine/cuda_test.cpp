// SPDX-License-Identifier: Apache-2.0
// Whole forecasts on a CUDA device: against the CPU, the contracts of docs/design.md, and that a
// forecast is one graph. Skipped where there is no device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "support/needs_device.h"
#include "support/paths.h"
#include "support/requests.h"
#include "toto/settings.hpp"

namespace toto {
namespace {

using test::expect_same;
using test::many;
using test::odd_config;
using test::OwnedSeries;
using test::views;
using test::wave;

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

/// Of the values, at least 1.
double deviation(const std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (const float v : values) {
    sum += v;
    squares += static_cast<double>(v) * v;
  }
  const auto n = static_cast<double>(values.size());
  return std::max(1.0, std::sqrt(std::max(0.0, squares / n - sum / n * (sum / n))));
}

class CudaForecast : public testing::TestWithParam<Precision> {
 protected:
  void SetUp() override { TOTO_NEEDS_DEVICE(); }
  [[nodiscard]] static Model make(const std::string& backend, Mode mode = Mode::reduce_overhead,
                                  Precision precision = GetParam()) {
    LoadOptions options;
    options.backend = backend;
    options.precision = precision;
    options.mode = mode;
    options.threads = 1;
    return test::make_model(odd_config(), false,
                            mode == Mode::eager ? Execution::eager() : Execution{}, 5, options);
  }
  /// With heads of 64 channels, as the published model has them.
  [[nodiscard]] static Model wide_heads(Mode mode, bool labels) {
    Toto1Config config = odd_config();
    config.embed_dim = 128;
    config.num_heads = 2;
    LoadOptions load;
    load.backend = "cuda";
    load.precision = GetParam();
    load.mode = mode;
    return test::make_model(config, labels, mode == Mode::eager ? Execution::eager() : Execution{},
                            5, load);
  }
  /// Contexts of so many tokens.
  static std::vector<OwnedSeries> of_tokens(std::initializer_list<std::size_t> tokens) {
    const auto patch = static_cast<std::size_t>(odd_config().patch_size);
    std::vector<OwnedSeries> all;
    for (const std::size_t n : tokens) all.push_back(wave(all.size(), n * patch));
    return all;
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

/// What a forecast says of the first patch exactly, or of all patches in mean mode: compared in
/// units of the values, on average.
double mean_error(const std::vector<Forecast>& found, const std::vector<Forecast>& exact) {
  double sum = 0;
  double count = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const auto& [a, b] : {std::pair{&found[i].mean, &exact[i].mean},
                               {&found[i].std, &exact[i].std},
                               {&found[i].quantiles, &exact[i].quantiles}}) {
      EXPECT_EQ(a->size(), b->size());
      for (std::size_t j = 0; j < a->size(); ++j) {
        // Tails that are too heavy have no deviation; rounding may tip the degrees of freedom over.
        if (!std::isfinite((*a)[j]) || !std::isfinite((*b)[j])) continue;
        sum += std::abs(static_cast<double>((*a)[j]) - (*b)[j]) /
               (1 + std::abs(static_cast<double>((*b)[j])));
        count += 1;
      }
    }
  }
  return sum / count;
}

// No farther from float64 than 1.25 times what `eager` is on a CPU with the same type; in tf32,
// which has three bits more than bfloat16 and is float32 on a CPU, than a fifth of what bfloat16
// is.
TEST_P(CudaForecast, IsAsNearToFloat64AsTheCpu) {
  LoadOptions wide;
  wide.backend = "reference";
  wide.precision = Precision::float64;
  const Model exact_model = test::make_model(odd_config(), false, Execution::eager(), 5, wide);
  const auto owned = many();
  for (const std::size_t horizon : {5U, 8U, 20U}) {
    ForecastOptions o = options(horizon, false);
    o.mean_only = horizon == 20;  // draws may pick another component after a rounding
    const auto exact = Forecaster(exact_model).forecast(views(owned), o);
    const bool tf32 = GetParam() == Precision::tf32;
    const double cpu =
        mean_error(Forecaster(make("cpu", Mode::eager, tf32 ? Precision::bfloat16 : GetParam()))
                       .forecast(views(owned), o),
                   exact);
    for (const Mode mode :
         {Mode::eager, Mode::planned, Mode::reduce_overhead, Mode::max_autotune}) {
      Forecaster forecaster(make("cuda", mode));
      const double cuda = mean_error(forecaster.forecast(views(owned), o), exact);
      EXPECT_LE(cuda, (tf32 ? 0.2 : 1.25) * cpu)
          << "horizon " << horizon << ", mode " << static_cast<int>(mode);
      const bool graphs = mode == Mode::reduce_overhead || mode == Mode::max_autotune;
      EXPECT_EQ(forecaster.counters().graph_replays, graphs ? 1U : 0U);
      std::printf("horizon %zu, mode %d: %.3g from float64, eager on the CPU %.3g\n", horizon,
                  static_cast<int>(mode), cuda, cpu);
    }
  }
}

// Where no draw decides, with the trained model that ships, in units of the contexts' deviation.
TEST_P(CudaForecast, IsNearTheCpu) {
  if (GetParam() != Precision::float32) GTEST_SKIP() << "other types are held against float64";
  std::vector<OwnedSeries> owned;
  for (std::size_t i = 0; i < 8; ++i) owned.push_back(wave(i, 512 + 100 * i, 1 + i % 3));
  const auto forecast = [&](const std::string& backend, Mode mode, const ForecastOptions& o) {
    LoadOptions load;
    load.backend = backend;
    load.mode = mode;
    load.threads = 1;
    const Model model = Model::load({.model = test::source_path("models/toto-nano")}, load);
    return Forecaster(model).forecast(views(owned), o);
  };
  for (const bool mean_only : {false, true}) {
    ForecastOptions o = options(mean_only ? 200 : 32, false);
    o.mean_only = mean_only;
    const auto cpu = forecast("cpu", Mode::eager, o);
    for (const Mode mode : {Mode::eager, Mode::planned, Mode::reduce_overhead}) {
      const auto cuda = forecast("cuda", mode, o);
      double sum = 0, largest = 0, count = 0;
      for (std::size_t i = 0; i < owned.size(); ++i) {
        const double scale = deviation(owned[i].values);
        const auto hold = [&](const std::vector<float>& a, const std::vector<float>& b) {
          ASSERT_EQ(a.size(), b.size());
          for (std::size_t j = 0; j < a.size(); ++j) {
            const double beyond_last_digit =
                std::abs(static_cast<double>(a[j]) - b[j]) - std::abs(b[j]) * 0x1p-23;
            const double error = std::max(0.0, beyond_last_digit) / scale;
            sum += error;
            count += 1;
            largest = std::max(largest, error);
          }
        };
        hold(cuda[i].mean, cpu[i].mean);
        hold(cuda[i].quantiles, cpu[i].quantiles);
      }
      EXPECT_LE(sum / count, 1e-6);
      EXPECT_LE(largest, 1e-5);
      std::printf("mode %d: %.3g from the CPU, largest %.3g\n", static_cast<int>(mode), sum / count,
                  largest);
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

TEST_P(CudaForecast, CovariatesThatAreNotKnownAreForecast) {
  for (const Mode mode : {Mode::eager, Mode::planned, Mode::reduce_overhead}) {
    test::expect_unknown_covariates_are_forecast(make("cuda", mode), options(20));
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

/// Whether all of a batch see few keys decides which kernels run: bits are the same.
TEST_P(CudaForecast, BitsDoNotDependOnWhetherOthersSeeManyKeys) {
  const auto few = of_tokens({13, 9, 3, 1});
  const auto at_the_edge = of_tokens({16, 15, 14});
  const auto with_more = [](std::vector<OwnedSeries> series) {
    series.push_back(of_tokens({1, 1, 1, 1, 30}).back());
    return series;
  };
  for (const Mode mode : {Mode::eager, Mode::planned, Mode::reduce_overhead}) {
    for (const bool labels : {false, true}) {
      const Model model = wide_heads(mode, labels);
      for (const Decode decode : {Decode::cached, Decode::uncached}) {
        for (const std::size_t horizon : {3U, 20U}) {
          ForecastOptions o = options(horizon);
          o.decode = decode;
          for (const auto& series : {few, at_the_edge}) {
            const auto alone = Forecaster(model).forecast(views(series), o);
            const auto among = Forecaster(model).forecast(views(with_more(series)), o);
            for (std::size_t i = 0; i < series.size(); ++i) expect_same(alone[i], among[i]);
          }
        }
      }
    }
  }
}

/// Lanes that see few keys have a kernel of their own, which a graph of as many rows may not keep
/// for a lane that sees more.
TEST_P(CudaForecast, AGraphForShortContextsDoesNotServeALongOne) {
  const Model model = wide_heads(Mode::reduce_overhead, false);
  const auto few = of_tokens({16, 16, 16, 16});
  const auto more = of_tokens({40, 8, 8, 8});
  for (const std::size_t horizon : {3U, 20U}) {
    Forecaster forecaster(model);
    const auto few_first = forecaster.forecast(views(few), options(horizon));
    const auto more_then = forecaster.forecast(views(more), options(horizon));
    const auto few_again = forecaster.forecast(views(few), options(horizon));
    EXPECT_EQ(forecaster.counters().graph_captures, 2U);
    for (std::size_t i = 0; i < few.size(); ++i) {
      expect_same(few_again[i], few_first[i]);
      expect_same(Forecaster(model).forecast(views({more[i]}), options(horizon)).front(),
                  more_then[i]);
      expect_same(Forecaster(model).forecast(views({few[i]}), options(horizon)).front(),
                  few_first[i]);
    }
  }
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
  return std::string(word(made.param));
}
INSTANTIATE_TEST_SUITE_P(Types, CudaForecast,
                         testing::Values(Precision::float32, Precision::tf32, Precision::bfloat16),
                         type_name);

}  // namespace
}  // namespace toto
