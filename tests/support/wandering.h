// SPDX-License-Identifier: Apache-2.0
// Series that wander and series that do not, and what tests of coherent paths do with them.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "support/requests.h"
#include "support/seasonal_series.h"
#include "support/small_model.h"
#include "toto/forecast.hpp"

namespace toto::test {

inline OwnedSeries walk(std::size_t which, std::size_t steps = 512, std::size_t variates = 1) {
  OwnedSeries s;
  s.id = "walk-" + std::to_string(which);
  s.variates = variates;
  for (std::size_t v = 0; v < variates; ++v) {
    MadeNoise source(1000 * which + v);
    double level = 1000;
    for (std::size_t t = 0; t < steps; ++t) {
      level += source.normal();
      s.values.push_back(static_cast<float>(level));
    }
  }
  return s;
}

inline OwnedSeries noise(std::size_t which, std::size_t steps = 512) {
  OwnedSeries s;
  s.id = "noise-" + std::to_string(which);
  MadeNoise source(which);
  for (std::size_t t = 0; t < steps; ++t) s.values.push_back(static_cast<float>(source.normal()));
  return s;
}

/// Coherent paths, kept with the parameters.
inline ForecastOptions drawn(std::size_t horizon, std::size_t samples,
                             Paths paths = Paths::coherent) {
  ForecastOptions options;
  options.horizon = horizon;
  options.num_samples = samples;
  options.paths = paths;
  options.keep_samples = true;
  options.keep_parameters = true;
  return options;
}

inline std::vector<Forecast> all(Forecaster& forecaster, const std::vector<OwnedSeries>& owned,
                                 const ForecastOptions& options) {
  std::vector<Series> series;
  for (const OwnedSeries& one : owned) series.push_back(one.view());
  return forecaster.forecast(series, options);
}

inline Forecast one(Forecaster& forecaster, const OwnedSeries& owned,
                    const ForecastOptions& options) {
  return all(forecaster, {owned}, options).front();
}

/// The samples and quantiles of each are the same bits.
inline void expect_same(const std::vector<Forecast>& found, const std::vector<Forecast>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(bits_of(found[i].samples), bits_of(expected[i].samples)) << i;
    EXPECT_EQ(bits_of(found[i].quantiles), bits_of(expected[i].quantiles)) << i;
  }
}

/// Forecasts of all series in one batch, which each has alone and in the other order too.
inline std::vector<Forecast> whatever_the_batch(Forecaster& forecaster,
                                                const std::vector<OwnedSeries>& series,
                                                const ForecastOptions& options) {
  const std::vector<Forecast> together = all(forecaster, series, options);
  std::vector<Forecast> alone;
  for (const OwnedSeries& own : series) alone.push_back(one(forecaster, own, options));
  expect_same(alone, together);
  const std::vector<OwnedSeries> turned(series.rbegin(), series.rend());
  std::vector<Forecast> back = all(forecaster, turned, options);
  std::ranges::reverse(back);
  expect_same(back, together);
  return together;
}

/// Correlation of steps t and t + 1 over the trajectories.
inline double neighbours(const Forecast& f, std::size_t t) {
  double sum[2] = {}, squares[2] = {}, both = 0;
  for (std::size_t n = 0; n < f.num_samples; ++n) {
    const double a = f.samples[n * f.horizon + t], b = f.samples[n * f.horizon + t + 1];
    sum[0] += a;
    sum[1] += b;
    squares[0] += a * a;
    squares[1] += b * b;
    both += a * b;
  }
  const auto n = static_cast<double>(f.num_samples);
  const auto spread = [&](int i) { return squares[i] / n - sum[i] / n * (sum[i] / n); };
  return (both / n - sum[0] / n * (sum[1] / n)) / std::sqrt(spread(0) * spread(1));
}

/// Of steps first .. end.
inline double mean_neighbours(const Forecast& f, std::size_t first, std::size_t end) {
  double sum = 0;
  for (std::size_t t = first; t < end; ++t) sum += neighbours(f, t);
  return sum / static_cast<double>(end - first);
}

}  // namespace toto::test
