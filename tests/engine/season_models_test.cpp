// SPDX-License-Identifier: Apache-2.0
// The view without the season, of the models that ship.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "seasonal_series.h"
#include "support/paths.h"

namespace toto {
namespace {

using test::made;
using test::Noise;
using test::options_with;
using test::owned;
using test::OwnedSeries;
using test::table_of;

TEST(SeasonOfNano, ClampIsOfTheValuesAndNotOfTheRest) {
  Forecaster forecaster(Model::load({.model = test::source_path("models/toto-nano")}, {}));
  Noise noise(11);
  // A step at the end, which the rest goes on with: with the season on top it would be too high.
  const OwnedSeries y = owned({made(239, [&](std::size_t t) {
    return 8 * std::sin(static_cast<double>(t) * std::numbers::pi / 6) + 0.05 * noise.next() +
           (t >= 235 ? 11.0 : 0.0);
  })});
  const float low = std::ranges::min(y.values), high = std::ranges::max(y.values);
  ForecastOptions options = options_with("");
  options.horizon = 128;
  const Series view = y.view();
  const auto beyond = [&](const char* views, double clamp) {
    options.views = parse_views(views);
    options.guards.clamp = clamp;
    const Forecast found = forecaster.forecast({&view, 1}, options).front();
    EXPECT_GT(found.exact_steps, 0U);
    EXPECT_LT(found.exact_steps, 64U);
    const double room = 0.01 * (double{high} - double{low}) + 1e-5;
    std::size_t count = 0;
    for (std::size_t t = found.exact_steps; t < 128; ++t) {
      bool moved = found.mean[t] > high + room || found.mean[t] < low - room;
      for (std::size_t l = 0; l < 3; ++l) {
        const double value = found.quantiles[l * 128 + t];
        moved = moved || value > high + room || value < low - room;
      }
      count += moved ? 1 : 0;
    }
    return std::pair(count, found.applied);
  };
  EXPECT_GT(beyond("season", 0).first, 0U);
  const auto [count, applied] = beyond("season", 0.01);
  EXPECT_EQ(applied.passes, 2U);
  EXPECT_EQ(count, 0U);
  EXPECT_GT(applied.clamped, 0U);
  EXPECT_LT(applied.clamped, 96U);
}

/// What the view is for: a shape that repeats, far longer than the model's own patches.
TEST(SeasonOfNano2, SharpCyclesAreForecastWithLittleMoreThanTheirNoise) {
  Forecaster forecaster(Model::load({.model = test::source_path("models/toto-nano-2")}, {}));
  Noise noise(10);
  const auto logs_of = [&](const std::vector<OwnedSeries>& all,
                           const std::vector<std::vector<double>>& futures,
                           const std::vector<std::vector<double>>& truths, const char* views) {
    ForecastOptions options;
    options.horizon = 96;
    options.views = parse_views(views);
    double logs = 0;
    const std::vector<Forecast> found = forecaster.forecast(test::views(all), options);
    for (std::size_t i = 0; i < all.size(); ++i) {
      double error = 0, least = 0;
      for (std::size_t t = 0; t < 96; ++t) {
        error += std::abs(futures[i][t] - double{found[i].median[t]});
        least += std::abs(futures[i][t] - truths[i][t]);
      }
      logs += std::log(error / least);
    }
    return std::exp(logs / static_cast<double>(all.size()));
  };
  std::vector<OwnedSeries> all;
  std::vector<std::vector<double>> futures, truths;
  for (const std::size_t period : {48U, 60U, 96U, 144U, 168U, 288U, 336U}) {
    for (const std::size_t periods : {4U, 7U, 11U}) {
      const std::vector<double> table = table_of(period, noise);
      const auto of = [&](std::size_t t) { return table[t % period]; };
      const std::vector<double> signal = made(period * periods + 96, of);
      std::vector<double> y = signal;
      for (double& value : y) value += 0.02 * noise.next();
      const auto end = static_cast<std::ptrdiff_t>(period * periods);
      futures.emplace_back(y.begin() + end, y.end());
      truths.emplace_back(signal.begin() + end, signal.end());
      all.push_back(owned({std::vector<double>(y.begin(), y.begin() + end)}));
      all.back().id = std::to_string(all.size());
    }
  }
  const double with = logs_of(all, futures, truths, "season");
  EXPECT_LT(with, 1.3);
  EXPECT_LT(with, 0.8 * logs_of(all, futures, truths, ""));
}

}  // namespace
}  // namespace toto
