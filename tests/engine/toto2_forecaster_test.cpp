// SPDX-License-Identifier: Apache-2.0
// Toto 2.0 through toto::Forecaster: the official numbers, any level, trajectories, covariates,
// bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "models/checkpoint/safetensors.h"
#include "models/model_impl.h"
#include "models/toto2/generation.h"
#include "statistics/knots.h"
#include "support/log_lines.h"
#include "support/requests.h"
#include "support/test_files.h"
#include "toto/service.hpp"

namespace toto {
namespace {

using test::OwnedSeries;
using test::wave;

Model golden_model(const std::string& name, const LoadOptions& load = {}) {
  return Model::load({.model = test::golden(name)}, load);
}

std::vector<Forecast> run(const Model& model, const std::vector<OwnedSeries>& owned,
                          const ForecastOptions& options, const ForecasterOptions& how = {}) {
  std::vector<Series> series;
  for (const OwnedSeries& s : owned) series.push_back(s.view());
  return Forecaster(model, how).forecast(series, options);
}

ForecastOptions steps(std::size_t horizon) {
  ForecastOptions options;
  options.horizon = horizon;
  return options;
}

void expect_same(const Forecast& a, const Forecast& b) {
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.median, b.median);
  EXPECT_EQ(a.std, b.std);
  EXPECT_EQ(a.quantiles, b.quantiles);
  EXPECT_EQ(a.samples, b.samples);
}

template <typename T>
std::vector<T> read(const SafetensorsFile& file, const std::string& name) {
  std::vector<T> values(file.at(name).bytes() / sizeof(T));
  file.read_bytes(name, std::as_writable_bytes(std::span(values)));
  return values;
}

/// The call of tiny-multi: two series of four variates.
void expect_golden(const std::string& call, std::size_t horizon, const BlockDecoding& decoding,
                   double bound) {
  const SafetensorsFile inputs(test::golden("toto2-tiny-multi/inputs.safetensors"));
  const SafetensorsFile expected(test::golden("toto2-tiny-multi/expected.safetensors"));
  const auto shape = inputs.at("target").shape;
  const auto batch = static_cast<std::size_t>(shape[0]);
  const auto variates = static_cast<std::size_t>(shape[1]);
  const auto length = static_cast<std::size_t>(shape[2]);
  const auto values = read<float>(inputs, "target");
  const auto mask = read<std::uint8_t>(inputs, "target_mask");
  const auto groups = read<std::int32_t>(inputs, "series_ids");
  const auto quantiles = read<float>(expected, call + ".quantiles");
  ASSERT_EQ(quantiles.size(), 9 * batch * variates * horizon);
  std::vector<Series> series;
  const std::vector<std::string> ids = {"a", "b"};
  for (std::size_t b = 0; b < batch; ++b) {
    Series s;
    s.id = ids[b];
    s.variates = variates;
    s.steps = length;
    s.values = std::span(values).subspan(b * variates * length, variates * length);
    s.mask = std::span(mask).subspan(b * variates * length, variates * length);
    s.groups = std::span(groups).subspan(b * variates, variates);
    series.push_back(s);
  }
  ForecastOptions options = steps(horizon);
  options.decoding = decoding;
  for (const char* backend : {"reference", "cpu"}) {
    LoadOptions load;
    load.backend = backend;
    const auto found = Forecaster(golden_model("toto2-tiny-multi", load)).forecast(series, options);
    for (std::size_t q = 0; q < 9; ++q) {
      for (std::size_t b = 0; b < batch; ++b) {
        for (std::size_t i = 0; i < variates * horizon; ++i) {
          const float e = quantiles[(q * batch + b) * variates * horizon + i];
          EXPECT_NEAR(found[b].quantiles[q * variates * horizon + i], e, bound * (1 + std::abs(e)))
              << backend << " " << q << " " << b << " " << i;
        }
      }
    }
  }
}

std::size_t horizon_of(const std::string& call) {
  const SafetensorsFile expected(test::golden("toto2-tiny-multi/expected.safetensors"));
  return static_cast<std::size_t>(expected.at(call + ".quantiles").shape[3]);
}

TEST(Toto2Forecaster, OnePassGivesTheOfficialQuantiles) {
  expect_golden("single", horizon_of("single"), {}, 1e-4);
}

TEST(Toto2Forecaster, BlocksGiveTheOfficialQuantiles) {
  BlockDecoding decoding;
  decoding.decode_block_size = 16;
  expect_golden("block16", horizon_of("block16"), decoding, 1e-3);
}

TEST(Toto2Forecaster, LevelsAreLinearBetweenTheQuantilesAndConstantBeyond) {
  const Model model = golden_model("toto2-tiny-uni");
  const std::vector<OwnedSeries> series = {wave(0, 60)};
  const Forecast knots = run(model, series, steps(20)).front();
  ForecastOptions options = steps(20);
  options.levels = {0.01, 0.1, 0.25, 0.5, 0.62, 0.9, 0.999};
  std::vector<std::string> warnings;
  ForecasterOptions how;
  how.log = test::warnings_into(warnings);
  Forecaster forecaster(model, how);
  const Series view = series.front().view();
  const Forecast found = forecaster.forecast(std::span(&view, 1), options).front();
  (void)forecaster.forecast(std::span(&view, 1), options);
  ASSERT_EQ(warnings.size(), 1U);  // once
  EXPECT_THAT(warnings[0], testing::HasSubstr("0.1 to 0.9"));
  EXPECT_EQ(found.exact_steps, 20U);
  EXPECT_EQ(found.num_samples, 0U);
  for (std::size_t t = 0; t < 20; ++t) {
    std::vector<double> at;
    for (std::size_t q = 0; q < 9; ++q) at.push_back(knots.quantiles[q * 20 + t]);
    for (std::size_t i = 0; i < options.levels.size(); ++i) {
      const double e = knot_quantile(at, options.levels[i]);
      EXPECT_NEAR(found.quantiles[i * 20 + t], e, 1e-6 * (1 + std::abs(e)));
    }
    EXPECT_NEAR(found.mean[t], knot_mean(at), 1e-6 * (1 + std::abs(knot_mean(at))));
    EXPECT_EQ(found.median[t], knots.median[t]);
  }
}

struct TailsCase {
  Tails tails;
  KnotTails of_knots;
  const char* name;
};
class Toto2Tails : public testing::TestWithParam<TailsCase> {};
INSTANTIATE_TEST_SUITE_P(, Toto2Tails,
                         testing::Values(TailsCase{Tails::exponential, KnotTails::exponential,
                                                   "exponential"},
                                         TailsCase{Tails::normal, KnotTails::normal, "normal"}),
                         [](const auto& one) { return std::string(one.param.name); });

TEST_P(Toto2Tails, AreOfTheQuantiles) {
  const Model model = golden_model("toto2-tiny-uni");
  const std::vector<OwnedSeries> series = {wave(0, 60)};
  const Forecast knots = run(model, series, steps(20)).front();
  ForecastOptions options = steps(20);
  options.levels = {0.001, 0.05, 0.1, 0.25, 0.9, 0.99};
  const Forecast clamped = run(model, series, options).front();
  options.tails = GetParam().tails;
  const KnotTails tails = GetParam().of_knots;
  std::vector<std::string> warnings;
  ForecasterOptions how;
  how.log = test::warnings_into(warnings);
  const Forecast found = run(model, series, options, how).front();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0],
              testing::HasSubstr(GetParam().name + std::string(" tails, an assumption")));
  for (std::size_t t = 0; t < 20; ++t) {
    std::vector<double> at;
    for (std::size_t q = 0; q < 9; ++q) at.push_back(knots.quantiles[q * 20 + t]);
    const auto near = [](double x) { return 1e-6 * (1 + std::abs(x)); };
    for (std::size_t i = 0; i < options.levels.size(); ++i) {
      const double e = knot_quantile(at, options.levels[i], tails);
      EXPECT_NEAR(found.quantiles[i * 20 + t], e, near(e));
    }
    for (std::size_t i = 1; i < options.levels.size(); ++i) {
      EXPECT_GE(found.quantiles[i * 20 + t], found.quantiles[(i - 1) * 20 + t]);
    }
    for (const std::size_t inner : {2, 3, 4}) {  // and what the model does say, not a bit
      EXPECT_EQ(found.quantiles[inner * 20 + t], clamped.quantiles[inner * 20 + t]);
    }
    EXPECT_EQ(found.median[t], clamped.median[t]);
    EXPECT_LT(found.quantiles[t], clamped.quantiles[t]);
    EXPECT_NEAR(found.mean[t], knot_mean(at, tails), near(knot_mean(at, tails)));
    EXPECT_NEAR(found.std[t], std::sqrt(knot_variance(at, tails)), near(found.std[t]));
    EXPECT_GT(found.std[t], clamped.std[t]);
  }
  options.mean_only = true;
  EXPECT_EQ(run(model, series, options).front().mean, found.mean);
}

// A draw between the outermost quantiles is the same with either; the others go on beyond them.
TEST_P(Toto2Tails, AreThoseOfTrajectories) {
  const Model model = golden_model("toto2-tiny-uni");
  const std::vector<OwnedSeries> series = {wave(0, 60)};
  constexpr std::size_t kSamples = 20'000, kSteps = 6;
  ForecastOptions options = steps(kSteps);
  options.levels = {0.02, 0.1, 0.5, 0.9, 0.98};
  options.keep_samples = true;
  options.num_samples = kSamples;
  options.guards.clamp = 0;
  const Forecast clamped = run(model, series, options).front();
  options.tails = GetParam().tails;
  const Forecast exact = run(model, series, options).front();
  options.quantiles_from = QuantilesFrom::samples;
  const Forecast drawn = run(model, series, options).front();
  EXPECT_EQ(drawn.samples, exact.samples);
  std::size_t beyond = 0;
  for (std::size_t i = 0; i < kSamples * kSteps; ++i) {
    const std::size_t t = i % kSteps;
    const float low = exact.quantiles[kSteps + t], high = exact.quantiles[3 * kSteps + t];
    const float x = exact.samples[i];
    if (x > low && x < high) {
      EXPECT_EQ(x, clamped.samples[i]);
    } else {
      ++beyond;
      EXPECT_EQ(clamped.samples[i], x <= low ? low : high);
    }
  }
  EXPECT_NEAR(static_cast<double>(beyond), 0.2 * kSamples * kSteps, 0.01 * kSamples * kSteps);
  for (std::size_t t = 0; t < kSteps; ++t) {
    const double spread = exact.quantiles[4 * kSteps + t] - exact.quantiles[t];
    for (std::size_t q = 0; q < 5; ++q) {
      EXPECT_NEAR(drawn.quantiles[q * kSteps + t], exact.quantiles[q * kSteps + t], 0.05 * spread);
    }
    EXPECT_NEAR(drawn.mean[t], exact.mean[t], 0.02 * spread);
    EXPECT_NEAR(drawn.std[t], exact.std[t], 0.03 * spread);
  }
}

TEST(Toto2Forecaster, TrajectoriesHaveTheDistributionOfTheQuantiles) {
  const Model model = golden_model("toto2-tiny-uni");
  const std::vector<OwnedSeries> series = {wave(0, 60)};
  const Forecast exact = run(model, series, steps(12)).front();
  ForecastOptions options = steps(12);
  options.quantiles_from = QuantilesFrom::samples;
  options.num_samples = 20'000;
  const Forecast drawn = run(model, series, options).front();
  EXPECT_EQ(drawn.exact_steps, 0U);
  for (std::size_t t = 0; t < 12; ++t) {
    const double spread = exact.quantiles[8 * 12 + t] - exact.quantiles[t];
    for (std::size_t q = 1; q < 8; ++q) {
      EXPECT_NEAR(drawn.quantiles[q * 12 + t], exact.quantiles[q * 12 + t], 0.05 * spread);
    }
    EXPECT_NEAR(drawn.mean[t], exact.mean[t], 0.02 * spread);
    EXPECT_NEAR(drawn.std[t], exact.std[t], 0.02 * spread);
  }
}

TEST(Toto2Forecaster, DrawsAreAddressed) {
  const Model model = golden_model("toto2-tiny-multi");
  ForecastOptions few = steps(20);
  few.keep_samples = true;
  few.num_samples = 5;
  few.seed = 3;
  ForecastOptions many = few;
  many.num_samples = 50;
  const std::vector<OwnedSeries> series = {wave(0, 60, 2)};
  const Forecast a = run(model, series, few).front();
  const Forecast b = run(model, series, many).front();
  EXPECT_TRUE(std::equal(a.samples.begin(), a.samples.end(), b.samples.begin()));
  few.seed = 4;
  EXPECT_NE(run(model, series, few).front().samples, a.samples);
}

TEST(Toto2Forecaster, ASeriesDoesNotFeelItsNeighbours) {
  const Model model = golden_model("toto2-tiny-multi");
  std::vector<OwnedSeries> all;
  for (std::size_t i = 0; i < 7; ++i) all.push_back(wave(i, 5 + 13 * i, 1 + i % 3));
  ForecastOptions options = steps(30);
  options.keep_samples = true;
  options.num_samples = 4;
  for (const std::size_t block : {0, 16}) {
    options.decoding.decode_block_size = block;
    options.tails = block == 0 ? Tails::clamp : Tails::exponential;
    const auto together = run(model, all, options);
    for (std::size_t i = 0; i < all.size(); ++i) {
      expect_same(run(model, {all[i]}, options).front(), together[i]);
    }
    ForecasterOptions tight;  // batches are split
    tight.memory_limit = 400'000;
    const auto split = run(model, all, options, tight);
    for (std::size_t i = 0; i < all.size(); ++i) expect_same(split[i], together[i]);
  }
}

TEST(Toto2Forecaster, TheMeanAloneIsTheMean) {
  const Model model = golden_model("toto2-tiny-uni");
  const std::vector<OwnedSeries> series = {wave(0, 60)};
  ForecastOptions mean = steps(20);
  mean.mean_only = true;
  EXPECT_EQ(run(model, series, mean).front().mean, run(model, series, steps(20)).front().mean);
}

TEST(Toto2Forecaster, KnownCovariatesGoInAtTheirTime) {
  const Model model = golden_model("toto2-tiny-cov");
  OwnedSeries owned = wave(0, 40, 2);
  Series s = owned.view();
  s.exogenous = 1;
  std::vector<float> future(16, 2.5F);
  s.future_exogenous = future;
  const Forecast found = Forecaster(model).forecast(std::span(&s, 1), steps(16)).front();

  // The same as one request of the model's own.
  std::vector<float> known(s.values.begin() + 40, s.values.end());
  known.insert(known.end(), future.begin(), future.end());
  std::vector<std::uint8_t> seen(known.size(), 1);
  std::vector<std::uint8_t> mask(40, 1);
  const std::vector<std::int32_t> group = {0};
  toto2::Request r;
  r.steps = 40;
  r.values = s.values.first(40);
  r.mask = mask;
  r.groups = r.known_groups = group;
  r.covariates = 1;
  r.known_steps = 56;
  r.known = known;
  r.known_mask = seen;
  r.horizon = 16;
  struct Collect final : toto2::Sink {
    void block(const toto2::Block& b) override { q.assign(b.quantiles.begin(), b.quantiles.end()); }
    std::vector<double> q;
  } sink;
  toto2::generate(dynamic_cast<const Toto2&>(*model.impl().net), std::span(&r, 1), sink);
  for (std::size_t t = 0; t < 16; ++t) {
    const double median = sink.q[(t / 8 * 9 + 4) * 8 + t % 8];
    EXPECT_EQ(found.median[t], static_cast<float>(median));
    EXPECT_EQ(found.median[16 + t], 2.5F);  // the covariate is what it is
  }
  future[0] = 30;
  EXPECT_NE(Forecaster(model).forecast(std::span(&s, 1), steps(16)).front().median, found.median);
}

// A gap is another thing than a value. The model's own forecast of the covariate stands in it.
TEST(Toto2Forecaster, TheFutureOfACovariateMayHaveGaps) {
  Forecaster forecaster(golden_model("toto2-tiny-cov"));
  OwnedSeries owned = wave(0, 40, 2);
  owned.exogenous = 1;
  owned.future.assign(16, 2.5F);
  const auto run = [&] {
    const Series s = owned.view();
    return forecaster.forecast(std::span(&s, 1), steps(16)).front();
  };
  const Forecast whole = run();
  owned.future_mask.assign(16, 1);
  EXPECT_EQ(run().median, whole.median);
  for (std::size_t t = 3; t < 16; t += 2) owned.future_mask[t] = 0;
  const Forecast gaps = run();
  EXPECT_NE(gaps.median, whole.median);
  EXPECT_EQ(gaps.median[16 + 2], 2.5F);
  EXPECT_NE(gaps.median[16 + 3], 2.5F);
}

TEST(Toto2Forecaster, WarmedUpItAllocatesNoWorkingMemory) {
  Forecaster forecaster(golden_model("toto2-tiny-uni"));
  const std::vector<WarmupShape> shapes = {{64, 24, 2, 3}};
  forecaster.warm_up(shapes, steps(24));
  const std::uint64_t before = forecaster.counters().allocations;
  std::vector<OwnedSeries> owned = {wave(0, 60, 2), wave(1, 33), wave(2, 64, 2)};
  std::vector<Series> series;
  for (const OwnedSeries& s : owned) series.push_back(s.view());
  (void)forecaster.forecast(series, steps(24));
  EXPECT_EQ(forecaster.counters().allocations, before);
  EXPECT_GT(forecaster.counters().operations, 0);
}

// Before any memory is planned: a plan for the longest of them would be of gigabytes.
TEST(Toto2Forecaster, RefusedBeforeAnythingIsPlanned) {
  const Model model = golden_model("toto2-tiny-uni");
  Forecaster forecaster(model);
  Service service(model);
  const OwnedSeries owned = wave(0, 60);
  const Series series = owned.view();
  const auto refused = [&](const ForecastOptions& options) {
    const std::string code = test::error_of([&] {
                               (void)forecaster.forecast({&series, 1}, options);
                             }).code();
    Request request;
    request.series = series;
    request.options = options;
    EXPECT_EQ(test::error_of([&] { (void)service.estimate(request); }).code(), code);
    EXPECT_EQ(test::error_of([&] { (void)service.forecast(request); }).code(), code);
    return code;
  };
  ForecastOptions options = steps(20);
  options.decoding.decode_block_size = 12;
  EXPECT_EQ(refused(options), "invalid_block");
  options.decoding.decode_block_size = (std::size_t{1} << 32) + 12;
  EXPECT_EQ(refused(options), "invalid_block");
  EXPECT_EQ(refused(steps(70'000)), "context_too_long");
  EXPECT_EQ(forecaster.counters().plan_builds, 0U);
  EXPECT_EQ(forecaster.counters().allocations, 0U);
}

TEST(Toto2Forecaster, ABlockBeyondTheHorizonIsOnePass) {
  Forecaster forecaster(golden_model("toto2-tiny-uni"));
  const OwnedSeries owned = wave(0, 60);
  const Series series = owned.view();
  const auto quantiles = [&](std::size_t block) {
    ForecastOptions options = steps(40);
    options.decoding.decode_block_size = block;
    return forecaster.forecast({&series, 1}, options).front().quantiles;
  };
  EXPECT_EQ(quantiles(48), quantiles(0));
  EXPECT_EQ(quantiles((std::size_t{1} << 32) + 8), quantiles(0));
  EXPECT_NE(quantiles(8), quantiles(0));
}

}  // namespace
}  // namespace toto
