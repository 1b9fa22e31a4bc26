// SPDX-License-Identifier: Apache-2.0
// What the runner of a real model puts into one micro-batch, and what comes out of it.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/service/forecaster_runner.h"
#include "support/requests.h"
#include "support/test_files.h"

namespace toto {
namespace {

using test::OwnedSeries;

TEST(ServiceRunner, OnlyOtherOperationsKeepRequestsApart) {
  const ForecasterRunner runner(test::make_model(test::spec_config()), {});
  const auto together = [&](const auto& change) {
    const Request plain;
    Request other;
    change(other.options);
    EXPECT_EQ(runner.compatible(plain, other), runner.compatible(other, plain));
    return runner.compatible(plain, other);
  };
  EXPECT_TRUE(together([](ForecastOptions& o) { o.horizon = 3; }));
  EXPECT_TRUE(together([](ForecastOptions& o) { o.seed = 3; }));
  EXPECT_TRUE(together([](ForecastOptions& o) { o.num_samples = 3; }));
  EXPECT_TRUE(together([](ForecastOptions& o) { o.levels = {0.25}; }));
  EXPECT_TRUE(together([](ForecastOptions& o) { o.align = Align::trim; }));
  EXPECT_TRUE(together([](ForecastOptions& o) { o.keep_samples = true; }));
  EXPECT_TRUE(together([](ForecastOptions& o) { o.keep_parameters = true; }));
  EXPECT_TRUE(together([](ForecastOptions& o) { o.decoding.decode_block_size = 32; }));
  EXPECT_TRUE(together([](ForecastOptions& o) { o.paths = Paths::independent; }));  // the default
  EXPECT_FALSE(together([](ForecastOptions& o) { o.paths = Paths::coherent; }));
  EXPECT_FALSE(together([](ForecastOptions& o) { o.mean_only = true; }));
  EXPECT_FALSE(together([](ForecastOptions& o) { o.decode = Decode::uncached; }));
  EXPECT_FALSE(together([](ForecastOptions& o) { o.quantiles_from = QuantilesFrom::samples; }));
  EXPECT_FALSE(together([](ForecastOptions& o) { o.time_device = true; }));
}

void expect_equal(const Forecast& a, const Forecast& b) {
  test::expect_same(a, b);
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.horizon, b.horizon);
  EXPECT_EQ(a.median, b.median);
  EXPECT_EQ(a.levels, b.levels);
  EXPECT_EQ(a.exact_steps, b.exact_steps);
  EXPECT_EQ(a.num_samples, b.num_samples);
  EXPECT_EQ(a.parameters.components, b.parameters.components);
  EXPECT_EQ(a.parameters.loc, b.parameters.loc);
  EXPECT_EQ(a.parameters.affine_scale, b.parameters.affine_scale);
}

/// Runs all of them as one micro-batch, and each alone.
void expect_bits_of_alone(const Model& model, const std::vector<OwnedSeries>& owned,
                          const std::vector<ForecastOptions>& options) {
  std::vector<Request> requests(owned.size());
  std::vector<const Request*> all;
  for (std::size_t i = 0; i < owned.size(); ++i) {
    requests[i].series = owned[i].view();
    requests[i].options = options[i];
    all.push_back(&requests[i]);
  }
  ForecasterRunner runner(model, {});
  std::vector<Outcome> together(owned.size());
  const StopCheck never = [] { return false; };
  const std::function<void()> nobody;
  runner.run(all, together, {0, never, nobody});
  Forecaster alone(model);
  for (std::size_t i = 0; i < owned.size(); ++i) {
    SCOPED_TRACE(i);
    const Series series = owned[i].view();
    expect_equal(together[i].forecast, alone.forecast({&series, 1}, options[i]).front());
  }
}

TEST(ServiceRunner, ARaggedMicroBatchHasTheBitsOfEachAlone) {
  std::vector<OwnedSeries> owned;
  std::vector<ForecastOptions> options;
  for (std::size_t i = 0; i < 30; ++i) {
    owned.push_back(test::wave(i % 25, 3 + (i * 29) % 90, 1 + i % 3));  // some ids come twice
    ForecastOptions& o = options.emplace_back();
    o.horizon = 1 + (i * 7) % 20;
    o.seed = i % 3;
    o.num_samples = 1 + i % 5;
    o.keep_samples = i % 4 == 1;
    o.keep_parameters = i % 7 == 3;
    if (i % 3 == 0) o.levels = {0.05, 0.5, 0.95};
    if (i % 6 == 2) o.levels = {0.9};
    if (i % 10 == 4) o.levels = {};
    o.align = i % 5 == 4 ? Align::trim : Align::pad;
  }
  for (const Mode mode : {Mode::eager, Mode::reduce_overhead}) {
    LoadOptions load;
    load.threads = 1;
    load.mode = mode;
    const Model model(test::make_impl(test::odd_config(), false,
                                      mode == Mode::eager ? Execution::eager() : Execution{}, 3,
                                      load));
    expect_bits_of_alone(model, owned, options);
  }
}

TEST(ServiceRunner, ARaggedMicroBatchOfToto2HasTheBitsOfEachAlone) {
  std::vector<OwnedSeries> owned;
  std::vector<ForecastOptions> options;
  for (std::size_t i = 0; i < 12; ++i) {
    owned.push_back(test::wave(i, 40 + (i * 29) % 90, 1 + i % 3));
    if (i % 3 == 2) {
      owned.back().mask.assign(owned.back().values.size(), 1);
      std::fill_n(owned.back().mask.begin(), 33, std::uint8_t{0});
    }
    ForecastOptions& o = options.emplace_back();
    o.horizon = 20 + i * 13;
    o.seed = i;
    o.num_samples = 2 + i % 3;
    o.keep_samples = i % 4 == 1;
    o.decoding.decode_block_size = i % 2 == 0 ? 0 : 64;
    o.decoding.has_missing_values = i % 3 != 1;
    o.decoding.scaler_fallback_min_obs = i % 5 == 3 ? 8 : 0;
    o.decoding.quantile_real_cap_k = i % 4 == 2 ? 0.25 : 0;
    o.tails = i % 5 < 2 ? Tails::exponential : i % 5 < 3 ? Tails::normal : Tails::clamp;
    o.levels = {0.03, 0.5, 0.9};
  }
  expect_bits_of_alone(Model::load({.model = test::golden("toto2-tiny-multi")}), owned, options);
}

TEST(ServiceRunner, TheEstimateOfARequestGrowsWithAllThatMakesItLarger) {
  const ForecasterRunner runner(test::make_model(test::spec_config()), {});
  const OwnedSeries owned = test::wave(1, 100, 2);
  const Request base{owned.view(), {}};
  const Estimate found = runner.estimate(base, true);
  const auto larger = [&](const auto& change) {
    Request other = base;
    change(other.options);
    const Estimate e = runner.estimate(other, true);
    return e.bytes > found.bytes && e.cost >= found.cost;
  };
  EXPECT_GT(found.cost, 0);
  EXPECT_EQ(runner.estimate(base, false).cost, found.cost);
  EXPECT_TRUE(larger([](ForecastOptions& o) { o.horizon *= 4; }));
  EXPECT_TRUE(larger([](ForecastOptions& o) { o.num_samples *= 4; }));
  EXPECT_TRUE(larger([](ForecastOptions& o) { o.keep_samples = true; }));
  EXPECT_TRUE(larger([](ForecastOptions& o) { o.keep_parameters = true; }));
  EXPECT_TRUE(larger([](ForecastOptions& o) { o.levels.assign(90, 0.5); }));
}

}  // namespace
}  // namespace toto
