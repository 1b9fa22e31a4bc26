// SPDX-License-Identifier: Apache-2.0
// The season that is found in values.
#include "engine/season.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "seasonal_series.h"

namespace toto {
namespace {

using test::made;
using test::Noise;
using test::owned;
using test::OwnedSeries;
using test::table_of;

/// The definition, slowly: docs/statistics.md.
struct Definition {
  std::vector<double> about_level;  // NaN: no running mean there
  std::size_t period;

  Definition(const std::vector<double>& y, std::size_t p) : about_level(y.size(), NAN), period(p) {
    for (std::size_t t = p / 2; t + p / 2 < y.size(); ++t) {
      double level = 0;
      for (std::size_t i = t - p / 2; i <= t + p / 2; ++i) {
        const bool half = p % 2 == 0 && (i == t - p / 2 || i == t + p / 2);
        level += (half ? 0.5 : 1.0) * y[i] / static_cast<double>(p);
      }
      about_level[t] = y[t] - level;
    }
  }
  /// Of the steps before `end`; weights fall with whole periods before `from`.
  [[nodiscard]] std::vector<double> profile(std::size_t end, std::size_t from) const {
    std::vector<double> sums(period), weights(period);
    for (std::size_t t = 0; t < end; ++t) {
      if (std::isnan(about_level[t])) continue;
      const double weight = std::pow(0.8, (from - 1 - t) / period);
      sums[t % period] += weight * about_level[t];
      weights[t % period] += weight;
    }
    double mean = 0;
    for (std::size_t k = 0; k < period; ++k) {
      sums[k] /= weights[k];
      mean += sums[k] / static_cast<double>(period);
    }
    for (double& value : sums) value -= mean;
    return sums;
  }
  [[nodiscard]] std::size_t last() const {  // one past the last step that has a level
    std::size_t end = about_level.size();
    while (std::isnan(about_level[end - 1])) --end;
    return end;
  }
  [[nodiscard]] std::size_t count() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(about_level, [](double x) { return !std::isnan(x); }));
  }
  [[nodiscard]] double strength() const {
    const std::size_t held = std::min((16 + period - 1) / period, count() / period / 2) * period;
    const std::size_t end = last() - held;
    const std::vector<double> before = profile(end, end);
    double left = 0, all = 0;
    for (std::size_t t = end; t < last(); ++t) {
      left += std::pow(about_level[t] - before[t % period], 2);
      all += std::pow(about_level[t], 2);
    }
    return 1 - left / all;
  }
  [[nodiscard]] std::vector<double> shrunk() const {
    std::vector<double> whole = profile(about_level.size(), about_level.size());
    double noise = 0, size = 0;
    for (std::size_t t = 0; t < about_level.size(); ++t) {
      if (std::isnan(about_level[t])) continue;
      noise += std::pow(about_level[t] - whole[t % period], 2);
    }
    for (const double value : whole) size += value * value / static_cast<double>(period);
    noise /= static_cast<double>(count() - period);
    const double periods = static_cast<double>(count()) / static_cast<double>(period);
    for (double& value : whole) value *= std::max(0.0, 1 - noise / periods / size);
    return whole;
  }
};

TEST(SeasonTest, FindsThePeriodAndItsProfile) {
  Noise noise(1);
  for (const std::size_t period : {5U, 7U, 12U, 24U, 48U, 60U, 144U, 168U, 336U}) {
    for (const std::size_t steps : {4 * period + 3, 7 * period, 11 * period + 1}) {
      const std::vector<double> table = table_of(period, noise);
      const std::vector<double> y = made(steps, [&](std::size_t t) {
        return 50 + 0.01 * static_cast<double>(t) + table[t % period] + 0.05 * noise.next();
      });
      const Season found = find_season(y);
      ASSERT_EQ(found.period, period) << steps;
      const Definition definition(y, period);
      EXPECT_NEAR(found.strength, definition.strength(), 1e-9);
      EXPECT_GT(found.strength, 0.9);
      const std::vector<double> expected = definition.shrunk();
      ASSERT_EQ(found.profile.size(), period);
      for (std::size_t k = 0; k < period; ++k) EXPECT_NEAR(found.profile[k], expected[k], 1e-9);
    }
  }
}

TEST(SeasonTest, FindsNoneWhereThereIsNone) {
  Noise noise(2);
  std::size_t of_walks = 0;
  for (std::size_t i = 0; i < 60; ++i) {
    const std::size_t steps = 20 + 9 * i;
    EXPECT_FALSE(find_season(made(steps, [&](std::size_t) { return noise.next(); })).any()) << i;
    double at = 0;
    of_walks += find_season(made(steps, [&](std::size_t) { return at += noise.next(); })).any();
  }
  EXPECT_LE(of_walks, 3U);  // chance
  EXPECT_FALSE(find_season(made(200, [](std::size_t) { return 3.0; })).any());
  EXPECT_FALSE(find_season(made(200, [](std::size_t t) {
                 return double{static_cast<float>(0.1 * static_cast<double>(t))};
               })).any());
  EXPECT_FALSE(find_season(made(8, [](std::size_t t) { return t % 2 == 0 ? 1.0 : 0.0; })).any());
  EXPECT_FALSE(find_season({}).any());
}

/// To the last bit.
TEST(SeasonTest, TheFlippedSeriesHasTheFlippedSeason) {
  Noise noise(11);
  const std::vector<double> table = table_of(14, noise);
  std::vector<double> y =
      made(130, [&](std::size_t t) { return table[t % 14] + noise.next() / 4; });
  const Season one = find_season(y);
  for (double& value : y) value = -value;
  const Season other = find_season(y);
  ASSERT_EQ(one.period, 14U);
  EXPECT_EQ(other.period, 14U);
  EXPECT_EQ(one.strength, other.strength);
  for (std::size_t k = 0; k < 14; ++k) EXPECT_EQ(one.profile[k], -other.profile[k]);
}

TEST(SeasonTest, WeightFollowsStrength) {
  EXPECT_EQ((Season{12, 0.7, {}}.weight()), 1.0);
  EXPECT_EQ((Season{12, 0.98, {}}.weight()), 1.0);
  EXPECT_NEAR((Season{12, 0.995, {}}.weight()), 4.0, 1e-9);
  EXPECT_NEAR((Season{12, 1.0, {}}.weight()), 100.0, 1e-9);
}

TEST(SeasonTest, GrowthIsSeasonalInItsLogarithm) {
  Noise noise(3);
  const std::vector<double> table = table_of(12, noise);
  const OwnedSeries s = owned({made(120, [&](std::size_t t) {
    return 100 * std::exp(0.02 * static_cast<double>(t)) * (1 + 0.2 * table[t % 12]) *
           std::exp(0.01 * noise.next());
  })});
  Seasons found;
  find_seasons(s.view(), 1, true, found);
  EXPECT_TRUE(found.log);
  EXPECT_EQ(found.of[0].period, 12U);
  find_seasons(s.view(), 1, false, found);
  EXPECT_FALSE(found.log);
}

TEST(SeasonTest, LooksAtWhatIsObserved) {
  Noise noise(4);
  const std::vector<double> table = table_of(10, noise);
  const std::vector<double> y = made(113, [&](std::size_t t) { return table[t % 10]; });
  OwnedSeries s = owned({y});
  s.mask.assign(113, 1);
  for (const std::size_t t : {0U, 1U, 2U, 40U, 112U}) {
    s.mask[t] = 0;
    s.values[t] = 1e9F;
  }
  Seasons found;
  find_seasons(s.view(), 1, false, found);
  ASSERT_EQ(found.of[0].period, 10U);
  EXPECT_EQ(found.first[0], 3U);
  double mean = 0;
  for (const double value : table) mean += value / 10;
  for (std::size_t t = 0; t < 140; ++t) EXPECT_NEAR(found.at(0, t), table[t % 10] - mean, 0.2);
  for (std::size_t t = 4; t < 66; ++t) s.mask[t] = 0;  // more than half
  find_seasons(s.view(), 1, false, found);
  EXPECT_FALSE(found.any());
  s.mask.assign(113, 1);
  s.values[7] = std::numeric_limits<float>::infinity();
  find_seasons(s.view(), 1, false, found);
  EXPECT_FALSE(found.any());
}

}  // namespace
}  // namespace toto
