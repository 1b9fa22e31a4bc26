// SPDX-License-Identifier: Apache-2.0
// Coherent paths of Toto 2.0: the draws of a forecast go together as the context says, their
// quantiles are those of every step, and nothing else changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "support/needs_device.h"
#include "support/paths.h"
#include "support/requests.h"
#include "support/wandering.h"
#include "toto/forecast.hpp"
#include "toto/service.hpp"

namespace toto {
namespace {

using test::all;
using test::drawn;
using test::expect_same;
using test::mean_neighbours;
using test::noise;
using test::one;
using test::OwnedSeries;
using test::walk;
using test::whatever_the_batch;

constexpr std::size_t kPatch = 32;

Model nano2(const LoadOptions& load = {}) {
  return Model::load({.model = test::source_path("models/toto-nano-2")}, load);
}

Model golden(const std::string& name, const LoadOptions& load = {}) {
  return Model::load({.model = test::source_path("tests/data/golden/" + name)}, load);
}

TEST(Toto2Paths, StepsGoTogetherWhereTheContextSaysSo) {
  Forecaster forecaster(nano2());
  ForecastOptions options = drawn(96, 1024);
  const Forecast wanders = one(forecaster, walk(1), options);
  EXPECT_GT(mean_neighbours(wanders, 0, kPatch - 1), 0.8);
  EXPECT_GT(mean_neighbours(wanders, kPatch - 1, kPatch), 0.9);  // from patch to patch
  EXPECT_GT(mean_neighbours(wanders, kPatch, 95), 0.9);
  EXPECT_LT(mean_neighbours(one(forecaster, noise(1), options), 0, 95), 0.3);
  options.paths = Paths::independent;
  EXPECT_LT(std::abs(mean_neighbours(one(forecaster, walk(1), options), 0, 95)), 0.05);
}

TEST(Toto2Paths, AModelNamesWhatOptionsLeaveOpen) {
  Forecaster forecaster(nano2());
  const auto with = [&](Paths paths, Tails tails) {
    ForecastOptions options = drawn(40, 32, paths);
    options.tails = tails;
    return one(forecaster, walk(1), options);
  };
  const ForecastOptions left_open;
  EXPECT_EQ(left_open.paths, Paths::automatic);
  EXPECT_EQ(left_open.tails, Tails::automatic);
  const Forecast open = with(left_open.paths, left_open.tails);
  expect_same(open, with(Paths::coherent, Tails::normal));
  EXPECT_NE(open.samples, with(Paths::independent, Tails::normal).samples);
  EXPECT_NE(open.mean, with(Paths::coherent, Tails::clamp).mean);

  ForecastOptions completed;
  complete(completed, forecaster.model().info());
  EXPECT_EQ(completed.paths, Paths::coherent);
  EXPECT_EQ(completed.tails, Tails::normal);
  ForecastOptions reference;
  as_reference(reference);
  EXPECT_EQ(reference.paths, Paths::independent);
  EXPECT_EQ(reference.tails, Tails::clamp);
  EXPECT_EQ(golden("toto2-tiny-uni").info().defaults, ModelDefaults{});
}

// Who draws nothing pays nothing for how draws go together.
TEST(Toto2Paths, AreInTheEstimateWhereSomethingIsDrawn) {
  const Service service(nano2());
  const OwnedSeries series = walk(1);
  const auto bytes = [&](Paths paths, bool samples) {
    ForecastOptions options = drawn(40, 32, paths);
    options.keep_samples = samples;
    options.quantiles_from = QuantilesFrom::automatic;
    return service.estimate({series.view(), options}).request.bytes;
  };
  EXPECT_EQ(bytes(Paths::coherent, false), bytes(Paths::independent, false));
  EXPECT_GT(bytes(Paths::coherent, true), bytes(Paths::independent, true));
}

TEST(Toto2Paths, SumsVaryAsMuchAsTheSeriesWanders) {
  Forecaster forecaster(nano2());
  const auto deviation = [&](Paths paths) {
    const Forecast f = one(forecaster, walk(2), drawn(96, 512, paths));
    double sum = 0, squares = 0;
    for (std::size_t n = 0; n < f.num_samples; ++n) {
      double total = 0;
      for (std::size_t t = 0; t < 96; ++t) total += f.samples[n * 96 + t] - f.median[t];
      sum += total;
      squares += total * total;
    }
    return std::sqrt((squares - sum * sum / 512) / 511);
  };
  // That of a random walk's sum is sqrt(96^3 / 3) = 543; with independent steps it would be 68.
  EXPECT_GT(deviation(Paths::coherent), 300);
  EXPECT_LT(deviation(Paths::independent), 110);
}

/// Largest distance of the distribution of the draws at a step from that of its quantiles, times
/// sqrt(n): with exponential or normal tails, which leave no steps in it.
double kolmogorov(const Forecast& f, std::size_t t, Tails tails = Tails::exponential) {
  double k[9];
  for (std::size_t q = 0; q < 9; ++q) k[q] = f.quantiles[q * f.horizon + t];
  const auto level = [&k, tails](double x) {
    if (tails == Tails::normal && (x < k[0] || x >= k[8])) {
      constexpr double kScore = 1.2815515655446004;  // of 0.9
      const double z = kScore * (x - k[4]) / (x < k[4] ? k[4] - k[0] : k[8] - k[4]);
      return 0.5 * std::erfc(-z / std::sqrt(2.0));
    }
    if (x < k[0]) return 0.1 * std::pow(2.0, (x - k[0]) / (k[1] - k[0]));
    if (x >= k[8]) return 1 - 0.1 * std::pow(2.0, (k[8] - x) / (k[8] - k[7]));
    int i = 0;
    while (i < 7 && x >= k[i + 1]) ++i;
    return 0.1 * (i + 1 + (x - k[i]) / (k[i + 1] - k[i]));
  };
  std::vector<double> found;
  for (std::size_t n = 0; n < f.num_samples; ++n) found.push_back(f.samples[n * f.horizon + t]);
  std::ranges::sort(found);
  double distance = 0;
  const auto n = static_cast<double>(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double at = level(found[i]);
    distance = std::max({distance, std::abs(at - static_cast<double>(i) / n),
                         std::abs(at - static_cast<double>(i + 1) / n)});
  }
  return distance * std::sqrt(n);
}

TEST(Toto2Paths, EveryStepKeepsItsDistribution) {
  Forecaster forecaster(nano2());
  for (const Tails tails : {Tails::exponential, Tails::normal}) {
    for (const OwnedSeries& own : {walk(1), noise(2)}) {
      ForecastOptions options = drawn(96, 8192);
      options.tails = tails;
      options.guards.clamp = 0;
      const Forecast found = one(forecaster, own, options);
      double largest = 0;
      for (std::size_t t = 0; t < 96; ++t) largest = std::max(largest, kolmogorov(found, t, tails));
      EXPECT_LT(largest, 2.2) << own.id;  // of 96 steps at the 1 % level
      EXPECT_GT(largest, 0.5) << "nothing was measured";
    }
  }
}

TEST(Toto2Paths, NothingButTheJoiningChanges) {
  Forecaster forecaster(nano2());
  for (const Tails tails : {Tails::clamp, Tails::exponential, Tails::normal}) {
    ForecastOptions options = drawn(70, 64);
    options.tails = tails;
    options.guards.clamp = 0;
    const Forecast joined = one(forecaster, walk(3), options);
    options.paths = Paths::independent;
    const Forecast plain = one(forecaster, walk(3), options);
    EXPECT_EQ(joined.quantiles, plain.quantiles);
    EXPECT_EQ(joined.mean, plain.mean);
    EXPECT_EQ(joined.median, plain.median);
    EXPECT_EQ(test::bits_of(joined.std), test::bits_of(plain.std));
    EXPECT_EQ(joined.parameters.affine_loc, plain.parameters.affine_loc);
    EXPECT_EQ(joined.exact_steps, 70U);
    // The first step is joined to none, so it has the draws of independent paths.
    double apart = 0;
    for (std::size_t n = 0; n < 64; ++n) {
      EXPECT_NEAR(joined.samples[n * 70], plain.samples[n * 70], 2e-3) << n;
      apart =
          std::max<double>(apart, std::abs(joined.samples[n * 70 + 9] - plain.samples[n * 70 + 9]));
    }
    EXPECT_GT(apart, 1);
  }
}

TEST(Toto2Paths, AContextThatShowsNothingJoinsNothing) {
  Forecaster forecaster(nano2());
  // One patch, of which nobody has forecast anything; many of which the last is all that was seen.
  OwnedSeries late = walk(5, 256);
  late.mask.assign(256, 0);
  std::fill(late.mask.begin() + 224, late.mask.end(), std::uint8_t{1});
  for (const OwnedSeries& own : {walk(4, kPatch), walk(1, 5), late}) {
    const Forecast joined = one(forecaster, own, drawn(70, 64));
    const Forecast plain = one(forecaster, own, drawn(70, 64, Paths::independent));
    for (std::size_t i = 0; i < joined.samples.size(); ++i) {
      ASSERT_NEAR(joined.samples[i], plain.samples[i], 2e-3) << i;
    }
  }
  OwnedSeries constant = walk(6, 200);
  std::ranges::fill(constant.values, 7.0F);
  for (const float x : one(forecaster, constant, drawn(70, 16)).samples) {
    ASSERT_TRUE(std::isfinite(x));
  }
}

// A last patch with gaps is taken as observed by the network; what stands in the gaps is nobody's
// forecast error.
TEST(Toto2Paths, WhatStandsInAGapDoesNotCount) {
  Forecaster forecaster(nano2());
  OwnedSeries a = walk(8, 320);
  a.mask.assign(320, 1);
  std::fill(a.mask.begin() + 300, a.mask.begin() + 310, std::uint8_t{0});
  std::fill(a.mask.begin() + 100, a.mask.begin() + 110, std::uint8_t{0});
  OwnedSeries b = a;
  for (std::size_t t = 100; t < 110; ++t) b.values[t] += 500;
  const ForecastOptions options = drawn(70, 32);
  EXPECT_EQ(one(forecaster, a, options).samples, one(forecaster, b, options).samples);
  EXPECT_GT(mean_neighbours(one(forecaster, a, drawn(70, 512)), 0, 69), 0.8);
}

TEST(Toto2Paths, BlocksAreJoinedToEachOther) {
  Forecaster forecaster(nano2());
  ForecastOptions options = drawn(96, 512);
  options.decoding.decode_block_size = kPatch;
  const Forecast blocks = one(forecaster, walk(1), options);
  EXPECT_GT(mean_neighbours(blocks, kPatch - 1, kPatch), 0.9);
  EXPECT_GT(mean_neighbours(blocks, 2 * kPatch - 1, 2 * kPatch), 0.9);
  options.paths = Paths::independent;
  EXPECT_EQ(one(forecaster, walk(1), options).quantiles, blocks.quantiles);
}

TEST(Toto2Paths, BatchThreadsMemoryAndOrderChangeNoBit) {
  std::vector<OwnedSeries> series;
  for (std::size_t i = 0; i < 9; ++i) series.push_back(walk(i, 100 + 61 * i, 1 + i % 2));
  series[2].mask.assign(series[2].values.size(), 1);
  for (std::size_t t = 40; t < 90; ++t) series[2].mask[t] = 0;
  for (const std::size_t block : {0U, 64U}) {
    ForecastOptions options = drawn(100, 150);
    options.decoding.decode_block_size = block;
    Forecaster forecaster(nano2({.threads = 2}));
    const std::vector<Forecast> together = whatever_the_batch(forecaster, series, options);

    Forecaster single(nano2({.threads = 1}));
    expect_same(all(single, series, options), together);
    Forecaster three(nano2({.threads = 3}));
    expect_same(all(three, series, options), together);
    Forecaster small(nano2(), {.memory_limit = forecaster.counters().working_bytes / 3});
    expect_same(all(small, series, options), together);
    EXPECT_GT(small.counters().splits, 0U);
    // Beside requests of other horizons, in a plan that is larger than needed.
    options.horizon = 300;
    (void)all(forecaster, series, options);
    options.horizon = 100;
    expect_same(all(forecaster, series, options), together);
  }
}

TEST(Toto2Paths, ModesDifferByRoundingOnly) {
  const std::vector<OwnedSeries> series = {walk(1, 300), walk(2, 77, 2)};
  const ForecastOptions options = drawn(70, 20);
  Forecaster eager(nano2({.mode = Mode::eager}));
  const std::vector<Forecast> expected = all(eager, series, options);
  Forecaster planned(nano2({.mode = Mode::planned}));
  const std::vector<Forecast> first = all(planned, series, options);
  for (const Mode mode : {Mode::reduce_overhead, Mode::max_autotune}) {
    Forecaster other(nano2({.mode = mode}));
    expect_same(all(other, series, options), first);
  }
  for (std::size_t i = 0; i < series.size(); ++i) {
    for (std::size_t k = 0; k < first[i].samples.size(); ++k) {
      ASSERT_NEAR(first[i].samples[k], expected[i].samples[k], 0.02) << i << ", " << k;
    }
  }
}

TEST(Toto2Paths, MoreSamplesChangeNoneOfTheFewer) {
  Forecaster forecaster(nano2());
  const Forecast few = one(forecaster, walk(7), drawn(80, 24));
  const Forecast many = one(forecaster, walk(7), drawn(80, 100));
  for (std::size_t i = 0; i < few.samples.size(); ++i) EXPECT_EQ(few.samples[i], many.samples[i]);
}

TEST(Toto2Paths, TheReferenceAgrees) {
  Forecaster fast(nano2());
  Forecaster oracle(nano2({.precision = Precision::float64}));
  for (const Tails tails : {Tails::clamp, Tails::exponential, Tails::normal}) {
    ForecastOptions options = drawn(70, 16);
    options.tails = tails;
    const OwnedSeries series = walk(5, 300);
    const Forecast a = one(fast, series, options), b = one(oracle, series, options);
    for (std::size_t i = 0; i < a.samples.size(); ++i) {
      EXPECT_NEAR(a.samples[i], b.samples[i], 0.02) << i;  // walks move by 1 a step
    }
  }
}

// Patches of 8 steps, variates of several groups, covariates, every backend on the host.
TEST(Toto2Paths, OtherModelsOnEveryHostBackend) {
  std::vector<OwnedSeries> series = {walk(1, 200, 2), walk(2, 90, 3)};
  series[1].exogenous = 1;
  series[1].future.assign(30, 1000.0F);
  for (const char* name : {"toto2-tiny-multi", "toto2-tiny-switches", "toto2-tiny-onepatch"}) {
    LoadOptions reference;
    reference.backend = "reference";
    Forecaster fast(golden(name)), oracle(golden(name, reference));
    const ForecastOptions options = drawn(30, 12);
    const std::vector<Forecast> a = all(fast, series, options), b = all(oracle, series, options);
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t k = 0; k < a[i].samples.size(); ++k) {
        ASSERT_NEAR(a[i].samples[k], b[i].samples[k], 2e-3 * (20 + std::abs(b[i].std[0]))) << name;
      }
    }
  }
}

TEST(Toto2Paths, WarmedUpNothingIsAllocated) {
  Forecaster forecaster(nano2());
  (void)all(forecaster, {walk(1), walk(2)}, drawn(96, 32));
  const std::uint64_t before = forecaster.counters().allocations;
  (void)all(forecaster, {walk(3), walk(4)}, drawn(96, 32));
  EXPECT_EQ(forecaster.counters().allocations, before);
}

// --- on a GPU ---

LoadOptions on_cuda(Mode mode = Mode::reduce_overhead, Precision precision = Precision::float32) {
  LoadOptions load;
  load.backend = "cuda";
  load.mode = mode;
  load.precision = precision;
  return load;
}

TEST(CudaToto2Paths, AgreeWithTheReference) {
  TOTO_NEEDS_DEVICE();
  Forecaster device(nano2(on_cuda()));
  Forecaster oracle(nano2({.precision = Precision::float64}));
  OwnedSeries gaps = walk(8, 320, 2);
  gaps.mask.assign(640, 1);
  std::fill(gaps.mask.begin() + 300, gaps.mask.begin() + 310, std::uint8_t{0});
  std::fill(gaps.mask.begin() + 400, gaps.mask.begin() + 450, std::uint8_t{0});
  // A walk of five values is 27 zeros and a step to 1,000: some of its draws are beyond 3,000, and
  // float32 is off there by more than the bound, on a CPU too. So the five values are of noise.
  const std::vector<OwnedSeries> series = {walk(5, 300), gaps,        noise(3),
                                           noise(5, 5),  walk(4, 40), walk(6, 900)};
  for (const std::size_t block : {std::size_t{0}, kPatch}) {
    for (const Tails tails : {Tails::clamp, Tails::exponential, Tails::normal}) {
      ForecastOptions options = drawn(70, 16);
      options.tails = tails;
      options.decoding.decode_block_size = block;
      const std::vector<Forecast> a = all(device, series, options);
      const std::vector<Forecast> b = all(oracle, series, options);
      for (std::size_t i = 0; i < series.size(); ++i) {
        for (std::size_t k = 0; k < a[i].samples.size(); ++k) {
          ASSERT_NEAR(a[i].samples[k], b[i].samples[k], 0.02) << i << ", " << k;
        }
      }
    }
  }
  EXPECT_GT(device.counters().graph_replays, 0U);
  EXPECT_EQ(device.counters().graph_fallbacks, 0U);
}

TEST(CudaToto2Paths, EveryStepKeepsItsDistribution) {
  TOTO_NEEDS_DEVICE();
  Forecaster forecaster(nano2(on_cuda()));
  ForecastOptions options = drawn(96, 8192);
  options.tails = Tails::exponential;
  options.guards.clamp = 0;
  const Forecast found = one(forecaster, walk(1), options);
  double largest = 0;
  for (std::size_t t = 0; t < 96; ++t) largest = std::max(largest, kolmogorov(found, t));
  EXPECT_LT(largest, 2.2);
  EXPECT_GT(largest, 0.5) << "nothing was measured";
  EXPECT_GT(mean_neighbours(found, 0, 95), 0.8);
}

// The context's tokens that coherent paths look at are computed beside those that forecast, which
// must not change a bit of them. Sixteen patches and twenty more: tokens of one tile of the
// attention see different parts of the others.
TEST(CudaToto2Paths, QuantilesAreThoseOfIndependentPaths) {
  TOTO_NEEDS_DEVICE();
  for (const Precision precision : {Precision::float32, Precision::tf32, Precision::bfloat16}) {
    Forecaster forecaster(
        Model::synthesise("toto-2.0-4m", 1, on_cuda(Mode::reduce_overhead, precision)));
    for (const std::size_t context : {std::size_t{512}, std::size_t{300}, std::size_t{1024}}) {
      for (const std::size_t horizon : {std::size_t{96}, 20 * kPatch}) {
        const OwnedSeries series = walk(7, context);
        const Forecast a = one(forecaster, series, drawn(horizon, 8, Paths::coherent));
        const Forecast b = one(forecaster, series, drawn(horizon, 8, Paths::independent));
        ASSERT_EQ(a.quantiles, b.quantiles) << context << ", " << horizon;
        ASSERT_NE(a.samples, b.samples) << context << ", " << horizon;
      }
    }
  }
}

// One series alone has all steps of its paths in one kernel, nine together in three: so both are
// tried, with one round of steps and with several.
TEST(CudaToto2Paths, BatchOrderModeAndGraphChangeNoBit) {
  TOTO_NEEDS_DEVICE();
  std::vector<OwnedSeries> series;
  for (std::size_t i = 0; i < 9; ++i) series.push_back(walk(i, 100 + 61 * i, 1 + i % 2));
  for (const Precision precision : {Precision::float32, Precision::tf32, Precision::bfloat16}) {
    for (const std::size_t horizon : {std::size_t{100}, std::size_t{300}}) {
      const ForecastOptions options = drawn(horizon, 150);
      Forecaster forecaster(nano2(on_cuda(Mode::reduce_overhead, precision)));
      const std::vector<Forecast> together = whatever_the_batch(forecaster, series, options);
      for (const Mode mode : {Mode::planned, Mode::max_autotune}) {
        Forecaster other(nano2(on_cuda(mode, precision)));
        expect_same(all(other, series, options), together);
      }
    }
  }
}

}  // namespace
}  // namespace toto
