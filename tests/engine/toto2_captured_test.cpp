// SPDX-License-Identifier: Apache-2.0
// Forecasts of Toto 2.0 that are captured and replayed: the bits of the operations one by one, and
// one graph for each shape. On the CPU as a device (capturing_backend.h), and on a CUDA device
// where there is one, there against the CPU too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "models/checkpoint/checkpoint.h"
#include "models/model_impl.h"
#include "support/capturing_backend.h"
#include "support/needs_device.h"
#include "support/requests.h"
#include "support/test_files.h"

namespace toto {
namespace {

using test::expect_same;
using test::OwnedSeries;
using test::wave;

Model golden_model(const std::string& name, const LoadOptions& load) {
  return Model::load({.model = test::golden(name)}, load);
}

/// The same on a backend of the test's.
Model golden_model_on(const std::string& name, std::shared_ptr<Backend> backend) {
  const Checkpoint checkpoint = open_checkpoint({.model = test::golden(name)});
  auto impl = std::make_shared<Model::Impl>();
  impl->info = checkpoint.info;
  impl->content_hash = impl->configuration = checkpoint.config->to_json();
  impl->net = checkpoint.config->build(checkpoint.weights, std::move(backend), Build::planned,
                                       ContextCache::shared);
  return Model(std::move(impl));
}

std::vector<OwnedSeries> mixed() {
  std::vector<OwnedSeries> all;
  for (std::size_t i = 0; i < 7; ++i) all.push_back(wave(i, 5 + 13 * i, 1 + i % 3));
  return all;
}

/// Requests of every kind that the program serves.
std::vector<ForecastOptions> every_kind(bool coherent = true) {
  std::vector<ForecastOptions> all;
  for (const std::size_t horizon : {3U, 8U, 20U, 45U}) {
    for (const std::size_t block : {0U, 16U}) {
      ForecastOptions o;
      o.horizon = horizon;
      o.seed = horizon;
      o.num_samples = 6;
      o.decoding.decode_block_size = block;
      all.push_back(o);
      o.keep_samples = true;
      all.push_back(o);
      o.keep_samples = false;
      o.quantiles_from = QuantilesFrom::samples;
      o.levels = {0.15, 0.5, 0.7};
      all.push_back(o);
      o.quantiles_from = QuantilesFrom::automatic;
      o.keep_samples = true;
      o.levels = {0.02, 0.5, 0.97};
      for (const Tails tails : {Tails::normal, Tails::exponential}) {
        o.tails = tails;
        all.push_back(o);
      }
      o.paths = Paths::coherent;
      if (coherent) all.push_back(o);
    }
    ForecastOptions mean;
    mean.horizon = horizon;
    mean.mean_only = true;
    all.push_back(mean);
  }
  return all;
}

/// Every forecast of one forecaster has the bits of the other's, and is one replay.
void expect_replays(const Model& captured, const Model& plain) {
  const std::vector<OwnedSeries> owned = mixed();
  Forecaster replayed(captured), expected(plain);
  std::uint64_t calls = 0;
  for (const ForecastOptions& o : every_kind()) {
    const auto a = replayed.forecast(test::views(owned), o);
    const auto b = expected.forecast(test::views(owned), o);
    for (std::size_t i = 0; i < owned.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "horizon " << o.horizon << ", series " << i);
      expect_same(a[i], b[i]);
    }
    EXPECT_EQ(replayed.counters().graph_replays, ++calls);
  }
  EXPECT_EQ(replayed.counters().graph_fallbacks, 0U);
  EXPECT_EQ(expected.counters().graph_replays, 0U);
}

TEST(Toto2Captured, HasTheBitsOfOperationByOperation) {
  for (const char* name : {"toto2-tiny-uni", "toto2-tiny-multi", "toto2-tiny-switches"}) {
    SCOPED_TRACE(name);
    const auto device = std::make_shared<test::CapturingBackend>();
    expect_replays(golden_model_on(name, device), golden_model(name, {}));
  }
}

TEST(Toto2Captured, OtherValuesReplayTheSameGraph) {
  const auto device = std::make_shared<test::CapturingBackend>();
  const Model model = golden_model_on("toto2-tiny-uni", device);
  const Model plain = golden_model("toto2-tiny-uni", {});
  Forecaster replayed(model), expected(plain);
  ForecastOptions o;
  o.horizon = 20;
  for (const std::size_t steps : {64U, 64U, 61U, 57U}) {
    OwnedSeries owned = wave(steps, steps);
    owned.values[steps / 2] += static_cast<float>(replayed.counters().graph_replays);
    const std::vector<OwnedSeries> series = {owned};
    expect_same(replayed.forecast(test::views(series), o).front(),
                expected.forecast(test::views(series), o).front());
  }
  EXPECT_EQ(replayed.counters().graph_captures, 1U);
  EXPECT_EQ(replayed.counters().graph_replays, 4U);
}

TEST(CudaToto2Forecaster, GraphsHaveTheBitsOfOperationByOperation) {
  TOTO_NEEDS_DEVICE();
  for (const char* name : {"toto2-tiny-uni", "toto2-tiny-multi", "toto2-tiny-switches"}) {
    for (const Precision precision : {Precision::float32, Precision::tf32, Precision::bfloat16}) {
      SCOPED_TRACE(name);
      LoadOptions load;
      load.backend = "cuda";
      load.precision = precision;
      LoadOptions at_once = load;
      at_once.mode = Mode::planned;
      expect_replays(golden_model(name, load), golden_model(name, at_once));
    }
  }
}

// Their results are copied in two parts.
TEST(CudaToto2Forecaster, ManySeriesHaveTheBitsOfEachAlone) {
  TOTO_NEEDS_DEVICE();
  LoadOptions load;
  load.backend = "cuda";
  Forecaster forecaster(golden_model("toto2-tiny-uni", load));
  ForecastOptions o;
  o.horizon = 100;
  std::vector<OwnedSeries> owned;
  for (std::size_t i = 0; i < 700; ++i) owned.push_back(wave(i, 30 + i % 50));
  for (std::size_t call = 0; call < 3; ++call) {
    owned.front().values.back() += 1;
    const auto many = forecaster.forecast(test::views(owned), o);
    for (const std::size_t i : {0U, 1U, 349U, 350U, 351U, 698U, 699U}) {
      const std::vector<OwnedSeries> alone = {owned[i]};
      expect_same(many[i], forecaster.forecast(test::views(alone), o).front());
    }
  }
}

// Statistics and draws of the same knots are worked out by the same code in float64. What differs
// is the network in float32: 3e-5 of the scale where nothing is fed back. Coherent draws are held
// against the reference in toto2_paths_test.cpp: they follow correlations, which small differences
// of knots move further.
TEST(CudaToto2Forecaster, AgreesWithTheCpu) {
  TOTO_NEEDS_DEVICE();
  const std::vector<OwnedSeries> owned = mixed();
  for (const char* name : {"toto2-tiny-uni", "toto2-tiny-multi"}) {
    LoadOptions cuda;
    cuda.backend = "cuda";
    for (ForecastOptions o : every_kind(false)) {
      o.decoding.decode_block_size = 0;
      const auto a = Forecaster(golden_model(name, cuda)).forecast(test::views(owned), o);
      const auto b = Forecaster(golden_model(name, {})).forecast(test::views(owned), o);
      for (std::size_t i = 0; i < owned.size(); ++i) {
        const auto close = [](const std::vector<float>& x, const std::vector<float>& y) {
          ASSERT_EQ(x.size(), y.size());
          for (std::size_t k = 0; k < x.size(); ++k) {
            if (std::isnan(y[k])) {  // a deviation that the draws do not give
              ASSERT_TRUE(std::isnan(x[k])) << k;
              continue;
            }
            ASSERT_NEAR(x[k], y[k], 1e-4 * (3 + std::abs(y[k]))) << k;
          }
        };
        close(a[i].mean, b[i].mean);
        close(a[i].median, b[i].median);
        close(a[i].quantiles, b[i].quantiles);
        close(a[i].std, b[i].std);
        close(a[i].samples, b[i].samples);
      }
    }
  }
}

}  // namespace
}  // namespace toto
