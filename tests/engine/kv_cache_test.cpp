// SPDX-License-Identifier: Apache-2.0
// Where the keys and values of a context are kept: the same function, and what it costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "support/capturing_backend.h"
#include "support/needs_device.h"
#include "support/requests.h"
#include "support/test_files.h"

namespace toto {
namespace {

using test::ScopedEnvironment;

constexpr Execution kShared = {true, true, true};
constexpr Execution kPrivate = {true, true, false};

ForecastOptions asked(Decode decode, std::size_t horizon = 20) {
  ForecastOptions o = test::six_samples(horizon);
  o.decode = decode;
  return o;
}

struct Kind {
  const char* backend;
  Precision precision;
  double bound;  // of the means, fed back undrawn, in units of 1 + |mean|
};

/// The farthest that two lots of means are apart beyond the first patch, whose bits are the same.
double farthest(const std::vector<Forecast>& a, const std::vector<Forecast>& b, std::size_t patch,
                std::size_t horizon) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t t = 0; t < a[i].mean.size(); ++t) {
      const auto x = static_cast<double>(a[i].mean[t]);
      const auto y = static_cast<double>(b[i].mean[t]);
      if (t % horizon < patch) {
        EXPECT_EQ(x, y);
      }
      worst = std::max(worst, std::abs(x - y) / (1 + std::abs(x)));
    }
  }
  return worst;
}

/// Draws that fall on another component after a rounding are left out by comparing means.
void expect_rounding_only(const Kind& kind) {
  const std::vector<test::OwnedSeries> owned = test::many(9);
  LoadOptions load;
  load.backend = kind.backend;
  load.precision = kind.precision;
  Forecaster shared(test::make_model(test::odd_config(), false, kShared, 5, load));
  Forecaster apart(test::make_model(test::odd_config(), false, kPrivate, 5, load));
  for (const Decode decode : {Decode::cached, Decode::uncached}) {
    SCOPED_TRACE(testing::Message() << kind.backend << ", decode " << static_cast<int>(decode));
    ForecastOptions o = asked(decode);
    o.keep_samples = false;
    o.mean_only = true;
    const auto a = shared.forecast(test::views(owned), o);
    const auto b = apart.forecast(test::views(owned), o);
    const double worst = farthest(a, b, 8, o.horizon);
    EXPECT_LE(worst, kind.bound);
    std::printf("%s, type %d, decode %d: %.2e\n", kind.backend, static_cast<int>(kind.precision),
                static_cast<int>(decode), worst);
  }
}

TEST(KvCache, ChangesForecastsByRoundingOnly) {
  expect_rounding_only({"cpu", Precision::float32, 1e-5});
  expect_rounding_only({"cpu", Precision::bfloat16, 0.02});
  expect_rounding_only({"reference", Precision::float32, 1e-5});
  // Where the context is computed again, what was fed back has been staged in float32.
  expect_rounding_only({"reference", Precision::float64, 1e-6});
}

TEST(KvCache, PrivateComputesTheContextForEachTrajectory) {
  const std::vector<test::OwnedSeries> owned = {test::wave(1, 120)};
  const auto operations = [&](const Execution& execution, Decode decode) {
    Forecaster forecaster(test::make_model(test::odd_config(), false, execution, 5));
    (void)forecaster.forecast(test::views(owned), asked(decode, 27));
    return forecaster.counters().operations;
  };
  const double shared = operations(kShared, Decode::cached);
  EXPECT_EQ(operations(kShared, Decode::uncached), shared);
  EXPECT_GT(operations(kPrivate, Decode::cached), 2 * shared);
  EXPECT_GT(operations(kPrivate, Decode::uncached), 2 * operations(kPrivate, Decode::cached));
}

TEST(KvCache, PrivateHasNoGraph) {
  const auto counters = [](const Execution& execution) {
    const auto device = std::make_shared<test::CapturingBackend>();
    Forecaster forecaster(Model(test::impl_on(device, test::odd_config(), false, execution, 5)));
    (void)forecaster.forecast(test::views(test::many(3)), asked(Decode::cached));
    return forecaster.counters();
  };
  EXPECT_EQ(counters(kShared).graph_fallbacks, 0U);
  EXPECT_EQ(counters(kShared).graph_replays, 1U);
  EXPECT_EQ(counters(kPrivate).graph_fallbacks, 1U);
  EXPECT_EQ(counters(kPrivate).graph_replays, 0U);
}

/// How a model was loaded, and whether it repeats the context of each trajectory.
struct Loaded {
  ContextCache said;
  bool repeats;
};
Loaded load(std::optional<Mode> mode, std::optional<ContextCache> cache,
            Environment environment = Environment::obeyed) {
  LoadOptions options;
  options.mode = mode;
  options.kv_cache = cache;
  options.environment = environment;
  const Model model = Model::load({.model = test::golden("toto1-tiny-a")}, options);
  const auto& net = dynamic_cast<const Toto1&>(*model.impl().net);
  return {model.loaded().kv_cache, !net.execution().share_prefix};
}

TEST(KvCache, IsThatOfTheModeUnlessSomethingElseIsAskedFor) {
  const auto expect = [](const Loaded& loaded, ContextCache cache) {
    EXPECT_EQ(loaded.said, cache);
    EXPECT_EQ(loaded.repeats, cache == ContextCache::per_trajectory);
  };
  constexpr auto own = ContextCache::per_trajectory;
  constexpr auto shared = ContextCache::shared;
  for (const Mode mode : {Mode::planned, Mode::reduce_overhead, Mode::max_autotune}) {
    expect(load(mode, {}), shared);
    expect(load(mode, own), own);
  }
  expect(load(Mode::eager, {}), own);
  expect(load(Mode::eager, shared), shared);
  {
    const ScopedEnvironment variable("TOTO_KV_CACHE", "private");
    expect(load({}, {}), own);
    expect(load({}, shared), shared);
    expect(load({}, {}, Environment::ignored), shared);
  }
  // The way back goes all the way.
  const ScopedEnvironment off("TOTO_DISABLE_COMPILE", "1");
  expect(load(Mode::planned, shared), own);
}

TEST(CudaKvCache, ChangesForecastsByRoundingOnly) {
  TOTO_NEEDS_DEVICE();
  expect_rounding_only({"cuda", Precision::float32, 1e-4});
  expect_rounding_only({"cuda", Precision::bfloat16, 0.05});
}

}  // namespace
}  // namespace toto
