// SPDX-License-Identifier: Apache-2.0
// A model that fits no tile, and requests of many series.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "support/small_model.h"

namespace toto::test {

/// A model whose matrices are not multiples of any vector width.
inline Toto1Config odd_config() {
  Toto1Config c = spec_config();
  c.embed_dim = 84;
  c.num_heads = 6;
  c.mlp_hidden_dim = 116;
  c.spacewise_every_n_layers = 2;
  c.components = 5;
  return c;
}

inline std::shared_ptr<Model::Impl> odd_model_on(std::shared_ptr<Backend> backend) {
  return impl_on(std::move(backend), odd_config(), false, {}, 5);
}

/// Six trajectories, which are kept.
inline ForecastOptions six_samples(std::size_t horizon = 20) {
  ForecastOptions o;
  o.horizon = horizon;
  o.num_samples = 6;
  o.keep_samples = true;
  return o;
}

inline std::vector<OwnedSeries> many(std::size_t count = 40) {
  std::vector<OwnedSeries> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(wave(i, 1 + (i * 37) % 120, 1 + i % 4));
  return all;
}

inline std::vector<Series> views(const std::vector<OwnedSeries>& owned) {
  std::vector<Series> series;
  for (const OwnedSeries& s : owned) series.push_back(s.view());
  return series;
}

/// Deviations that are not known are NaN, which is equal to nothing.
inline std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float v : values) bits.push_back(std::bit_cast<std::uint32_t>(v));
  return bits;
}

inline void expect_same(const Forecast& a, const Forecast& b) {
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(bits_of(a.std), bits_of(b.std));
  EXPECT_EQ(a.quantiles, b.quantiles);
  EXPECT_EQ(a.samples, b.samples);
  EXPECT_EQ(a.parameters.loc, b.parameters.loc);
  EXPECT_EQ(a.parameters.df, b.parameters.df);
  EXPECT_EQ(a.parameters.probability, b.parameters.probability);
}

/// Covariates of which nothing is known ahead are variates like any other, alone and beside a
/// series whose covariates are known.
inline void expect_unknown_covariates_are_forecast(const Model& model, ForecastOptions options) {
  options.horizon = 20;
  OwnedSeries plain = wave(3, 100, 3);
  OwnedSeries unknown = plain;
  unknown.exogenous = 1;
  OwnedSeries known = unknown;
  known.id = "known";
  known.future.assign(options.horizon, 777.0F);
  for (const bool mean_only : {false, true}) {
    options.mean_only = mean_only;
    options.keep_samples = !mean_only;
    Forecaster forecaster(model);
    const auto together = forecaster.forecast(views({known, unknown}), options);
    const Forecast expected = Forecaster(model).forecast(views({plain}), options).front();
    expect_same(together[1], expected);
    expect_same(forecaster.forecast(views({unknown}), options).front(), expected);
    EXPECT_EQ(together[0].mean.back(), 777.0F);
  }
}

}  // namespace toto::test
