// SPDX-License-Identifier: Apache-2.0
// Coherent paths: the steps of a patch are drawn together, and nothing else changes.
#include "support/paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "statistics/mixture.h"
#include "support/needs_device.h"
#include "support/requests.h"
#include "support/wandering.h"
#include "toto/forecast.hpp"

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

Model nano(const LoadOptions& load = {}) {
  return Model::load({.model = test::source_path("models/toto-nano")}, load);
}

TEST(CoherentPaths, StepsGoTogetherWhereTheContextSaysSo) {
  Forecaster forecaster(nano());
  ForecastOptions options = drawn(kPatch, 1024);
  EXPECT_GT(mean_neighbours(one(forecaster, walk(1), options), 0, kPatch - 1), 0.8);
  EXPECT_LT(mean_neighbours(one(forecaster, noise(1), options), 0, kPatch - 1), 0.25);
  options.paths = Paths::independent;
  EXPECT_LT(std::abs(mean_neighbours(one(forecaster, walk(1), options), 0, kPatch - 1)), 0.05);
}

/// Largest distance of the distribution of the samples at step t from the mixture's, times sqrt(n).
double kolmogorov(const Forecast& f, std::size_t t) {
  const std::size_t k = f.parameters.components;
  const auto cut = [&](const std::vector<double>& all) { return std::span(all).subspan(t * k, k); };
  Mixture mixture(k);
  const Parameters& p = f.parameters;
  mixture.assign(cut(p.df), cut(p.loc), cut(p.scale), cut(p.probability));
  std::vector<double> found;
  for (std::size_t n = 0; n < f.num_samples; ++n) {
    found.push_back((f.samples[n * f.horizon + t] - p.affine_loc[t]) / p.affine_scale[t]);
  }
  std::ranges::sort(found);
  double distance = 0;
  const auto n = static_cast<double>(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double at = mixture.cdf(found[i]);
    distance = std::max({distance, std::abs(at - static_cast<double>(i) / n),
                         std::abs(at - static_cast<double>(i + 1) / n)});
  }
  return distance * std::sqrt(n);
}

TEST(CoherentPaths, TheFirstPatchKeepsItsDistribution) {
  Forecaster forecaster(nano());
  const std::vector<OwnedSeries> series = {walk(1), noise(2)};
  for (const OwnedSeries& own : series) {
    ForecastOptions options = drawn(kPatch, 8192);
    options.guards.clamp = 0;
    options.quantiles_from = QuantilesFrom::samples;
    const Forecast found = one(forecaster, own, options);
    double largest = 0;
    for (std::size_t t = 0; t < kPatch; ++t) largest = std::max(largest, kolmogorov(found, t));
    RecordProperty("kolmogorov_" + own.id, std::to_string(largest));
    EXPECT_LT(largest, 2.1) << own.id;  // of 32 steps at the 1 % level
    EXPECT_GT(largest, 0.5) << "nothing was measured";
  }
}

TEST(CoherentPaths, ExactStepsAreThoseOfIndependentPaths) {
  Forecaster forecaster(nano());
  const Forecast a = one(forecaster, walk(3), drawn(96, 16));
  const Forecast b = one(forecaster, walk(3), drawn(96, 16, Paths::independent));
  ASSERT_EQ(a.exact_steps, kPatch);
  for (std::size_t level = 0; level < a.levels.size(); ++level) {
    for (std::size_t t = 0; t < kPatch; ++t) {
      EXPECT_EQ(a.quantiles[level * 96 + t], b.quantiles[level * 96 + t]);
    }
  }
  EXPECT_NE(a.samples, b.samples);
}

TEST(CoherentPaths, BatchThreadsMemoryAndOrderChangeNoBit) {
  std::vector<OwnedSeries> series;
  for (std::size_t i = 0; i < 5; ++i) series.push_back(walk(i, 100 + 61 * i, 1 + i % 2));
  series[2].mask.assign(series[2].values.size(), 1);
  for (std::size_t t = 40; t < 90; ++t) series[2].mask[t] = 0;
  const ForecastOptions options = drawn(70, 40);
  Forecaster forecaster(nano());
  const std::vector<Forecast> together = whatever_the_batch(forecaster, series, options);

  Forecaster single(nano({.threads = 1}));
  expect_same(all(single, series, options), together);
  Forecaster small(nano(), {.memory_limit = std::uint64_t{12} << 20});
  expect_same(all(small, series, options), together);
}

TEST(CoherentPaths, MoreSamplesChangeNoneOfTheFewer) {
  Forecaster forecaster(nano());
  const Forecast few = one(forecaster, walk(7), drawn(80, 24));
  const Forecast many = one(forecaster, walk(7), drawn(80, 100));
  for (std::size_t i = 0; i < few.samples.size(); ++i) EXPECT_EQ(few.samples[i], many.samples[i]);
}

TEST(CoherentPaths, TheReferenceAgrees) {
  Forecaster fast(nano());
  Forecaster oracle(nano({.precision = Precision::float64}));
  ForecastOptions options = drawn(64, 8);
  const OwnedSeries series = walk(5, 300);
  const Forecast a = one(fast, series, options), b = one(oracle, series, options);
  for (std::size_t i = 0; i < a.samples.size(); ++i) {
    EXPECT_NEAR(a.samples[i], b.samples[i], 0.02) << i;  // walks move by 1 a step
  }
}

// --- on a GPU ---

LoadOptions on_cuda(Mode mode = Mode::reduce_overhead, Precision precision = Precision::float32) {
  LoadOptions load;
  load.backend = "cuda";
  load.mode = mode;
  load.precision = precision;
  return load;
}

TEST(CudaCoherentPaths, AgreeWithTheReference) {
  TOTO_NEEDS_DEVICE();
  Forecaster device(nano(on_cuda()));
  Forecaster oracle(nano({.precision = Precision::float64}));
  OwnedSeries gaps = walk(8, 320, 2);
  gaps.mask.assign(640, 1);
  std::fill(gaps.mask.begin() + 200, gaps.mask.begin() + 210, std::uint8_t{0});
  std::fill(gaps.mask.begin() + 400, gaps.mask.begin() + 450, std::uint8_t{0});
  const std::vector<OwnedSeries> series = {walk(5, 300), gaps, noise(3), walk(4, 5), walk(6, 900)};
  const ForecastOptions options = drawn(64, 8);
  const std::vector<Forecast> a = all(device, series, options);
  const std::vector<Forecast> b = all(oracle, series, options);
  for (std::size_t i = 0; i < series.size(); ++i) {
    for (std::size_t k = 0; k < a[i].samples.size(); ++k) {
      ASSERT_NEAR(a[i].samples[k], b[i].samples[k], 0.02) << i << ", " << k;
    }
  }
  EXPECT_GT(device.counters().graph_replays, 0U);
  EXPECT_EQ(device.counters().graph_fallbacks, 0U);
}

TEST(CudaCoherentPaths, TheFirstPatchKeepsItsDistribution) {
  TOTO_NEEDS_DEVICE();
  Forecaster forecaster(nano(on_cuda()));
  for (const OwnedSeries& own : {walk(1), noise(2)}) {
    ForecastOptions options = drawn(kPatch, 8192);
    options.guards.clamp = 0;
    options.quantiles_from = QuantilesFrom::samples;
    const Forecast found = one(forecaster, own, options);
    double largest = 0;
    for (std::size_t t = 0; t < kPatch; ++t) largest = std::max(largest, kolmogorov(found, t));
    EXPECT_LT(largest, 2.1) << own.id;  // of 32 steps at the 1 % level
    EXPECT_GT(largest, 0.5) << "nothing was measured";
  }
  const ForecastOptions options = drawn(kPatch, 1024);
  EXPECT_GT(mean_neighbours(one(forecaster, walk(1), options), 0, kPatch - 1), 0.8);
  EXPECT_LT(mean_neighbours(one(forecaster, noise(1), options), 0, kPatch - 1), 0.25);
}

TEST(CudaCoherentPaths, ExactStepsAreThoseOfIndependentPaths) {
  TOTO_NEEDS_DEVICE();
  for (const Precision precision : {Precision::float32, Precision::tf32, Precision::bfloat16}) {
    Forecaster forecaster(nano(on_cuda(Mode::reduce_overhead, precision)));
    const Forecast a = one(forecaster, walk(3), drawn(96, 16));
    const Forecast b = one(forecaster, walk(3), drawn(96, 16, Paths::independent));
    for (std::size_t level = 0; level < a.levels.size(); ++level) {
      for (std::size_t t = 0; t < kPatch; ++t) {
        EXPECT_EQ(a.quantiles[level * 96 + t], b.quantiles[level * 96 + t]);
      }
    }
    EXPECT_NE(a.samples, b.samples);
  }
}

TEST(CudaCoherentPaths, BatchOrderModeAndGraphChangeNoBit) {
  TOTO_NEEDS_DEVICE();
  std::vector<OwnedSeries> series;
  for (std::size_t i = 0; i < 7; ++i) series.push_back(walk(i, 100 + 61 * i, 1 + i % 2));
  series[2].mask.assign(series[2].values.size(), 1);
  for (std::size_t t = 40; t < 90; ++t) series[2].mask[t] = 0;
  for (const Precision precision : {Precision::float32, Precision::tf32, Precision::bfloat16}) {
    const ForecastOptions options = drawn(70, 40);
    Forecaster forecaster(nano(on_cuda(Mode::reduce_overhead, precision)));
    const std::vector<Forecast> together = whatever_the_batch(forecaster, series, options);
    // In several passes over the trajectories, or series.
    Forecaster small(nano(on_cuda(Mode::reduce_overhead, precision)),
                     {.memory_limit = std::uint64_t{12} << 20});
    expect_same(all(small, series, options), together);
    for (const Mode mode : {Mode::planned, Mode::max_autotune}) {
      Forecaster other(nano(on_cuda(mode, precision)));
      expect_same(all(other, series, options), together);
    }
    EXPECT_EQ(forecaster.counters().graph_fallbacks, 0U);
  }
}

TEST(CudaCoherentPaths, MoreSamplesChangeNoneOfTheFewer) {
  TOTO_NEEDS_DEVICE();
  Forecaster forecaster(nano(on_cuda()));
  const Forecast few = one(forecaster, walk(7), drawn(80, 24));
  const Forecast many = one(forecaster, walk(7), drawn(80, 100));
  for (std::size_t i = 0; i < few.samples.size(); ++i) EXPECT_EQ(few.samples[i], many.samples[i]);
}

}  // namespace
}  // namespace toto
