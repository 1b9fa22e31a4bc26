// SPDX-License-Identifier: Apache-2.0
// The view without the season, of a small model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/season.h"
#include "seasonal_series.h"

namespace toto {
namespace {

using test::kHorizon;
using test::made;
using test::Noise;
using test::options_with;
using test::owned;
using test::OwnedSeries;
using test::table_of;

/// A season and a walk, both with some noise. Whole patches, so that nothing is padded.
OwnedSeries two_rows(double level, std::uint32_t seed) {
  Noise noise(seed);
  const std::vector<double> table = table_of(9, noise);
  double at = 0;
  const auto season = [&](std::size_t t) { return level + table[t % 9] + 0.3 * noise.next(); };
  return owned({made(96, season), made(96, [&](std::size_t) {
                  at += noise.next();
                  return level + 0.2 * at;
                })});
}

/// Growth with a season in logarithms, and a walk in logarithms.
OwnedSeries two_growing_rows(std::uint32_t seed) {
  Noise noise(seed);
  const std::vector<double> table = table_of(9, noise);
  double at = 0;
  const auto season = [&](std::size_t t) {
    return std::exp(0.03 * static_cast<double>(t) + 0.4 * table[t % 9] + 0.03 * noise.next());
  };
  return owned({made(96, season), made(96, [&](std::size_t) {
                  at += 0.05 * noise.next();
                  return std::exp(at);
                })});
}

class SeasonViewTest : public testing::Test {
 protected:
  Forecast forecast(const OwnedSeries& series, const ForecastOptions& options) {
    const Series view = series.view();
    return forecaster_.forecast({&view, 1}, options).front();
  }
  Forecaster forecaster_{test::make_model(test::spec_config())};
};

TEST_F(SeasonViewTest, IsAForecastOfTheRestAndTheSeasonOnTop) {
  for (const bool log : {false, true}) {
    const OwnedSeries y = log ? two_growing_rows(5) : two_rows(0, 5);
    Seasons seasons;
    find_seasons(y.view(), 2, log, seasons);
    ASSERT_EQ(seasons.log, log);
    ASSERT_EQ(seasons.of[0].period, 9U);
    ASSERT_FALSE(seasons.of[1].any());
    OwnedSeries rest = y;
    for (std::size_t i = 0; i < rest.values.size(); ++i) {
      const double value = log ? std::log(double{rest.values[i]}) : double{rest.values[i]};
      rest.values[i] = static_cast<float>(value);
      if (i < 96) rest.values[i] = static_cast<float>(value - seasons.at(0, i));
    }
    const Forecast plain = forecast(y, options_with(""));
    const Forecast of_rest = forecast(rest, options_with(""));
    const Forecast found = forecast(y, options_with("season"));
    EXPECT_EQ(found.applied.passes, 2U);
    EXPECT_EQ(found.applied.views_left_out, "");
    EXPECT_EQ(found.applied.season_period, (std::vector<std::size_t>{9, 0}));
    EXPECT_TRUE(plain.applied.season_period.empty());
    const double weight = seasons.of[0].weight();
    for (std::size_t t = 0; t < kHorizon; ++t) {
      const auto both = [&](float own, float other) {
        const double whole = double{other} + seasons.at(0, 96 + t);
        return (own + weight * (log ? std::exp(whole) : whole)) / (1 + weight);
      };
      const double near = 1e-5 * (1 + std::abs(found.quantiles[4 * kHorizon + t]));
      EXPECT_NEAR(found.median[t], both(plain.median[t], of_rest.median[t]), near);
      for (std::size_t l = 0; l < 3; ++l) {
        const std::size_t cell = l * 2 * kHorizon + t;
        EXPECT_NEAR(found.quantiles[cell], both(plain.quantiles[cell], of_rest.quantiles[cell]),
                    near);
      }
      if (!log) {
        EXPECT_NEAR(found.mean[t], both(plain.mean[t], of_rest.mean[t]), near);
      }
      // A variate without a season is what it is without the view.
      EXPECT_EQ(found.median[kHorizon + t], plain.median[kHorizon + t]);
      EXPECT_EQ(found.mean[kHorizon + t], plain.mean[kHorizon + t]);
    }
  }
}

TEST_F(SeasonViewTest, GrowthGoesThroughTheLogarithm) {
  Noise noise(6);
  const std::vector<double> table = table_of(12, noise);
  const OwnedSeries y = owned({made(120, [&](std::size_t t) {
    return 100 *
           std::exp(0.02 * static_cast<double>(t) + 0.2 * table[t % 12] + 0.01 * noise.next());
  })});
  Seasons seasons;
  find_seasons(y.view(), 1, true, seasons);
  ASSERT_TRUE(seasons.log);
  OwnedSeries rest = y;
  for (std::size_t t = 0; t < 120; ++t) {
    rest.values[t] = static_cast<float>(double{static_cast<float>(std::log(double{y.values[t]}))} -
                                        seasons.at(0, t));
  }
  const Forecast plain = forecast(y, options_with(""));
  ForecastOptions options = options_with("");
  for (std::size_t i = 0; i < 10; ++i) {
    options.levels.push_back((static_cast<double>(i) + 0.5) / 10.0);
  }
  const Forecast of_rest = forecast(rest, options);
  const Forecast found = forecast(y, options_with("season"));
  const double weight = seasons.of[0].weight();
  for (std::size_t t = 0; t < kHorizon; ++t) {
    const double factor = std::exp(seasons.at(0, 120 + t));
    const auto both = [&](double own, double other) {
      return (own + weight * other) / (1 + weight);
    };
    const double median = both(plain.median[t], std::exp(double{of_rest.median[t]}) * factor);
    EXPECT_NEAR(found.median[t], median, 1e-5 * median);
    std::vector<double> parts;
    for (std::size_t l = 0; l < of_rest.levels.size(); ++l) {
      const double tenth = of_rest.levels[l] * 10;
      if (std::abs(tenth - std::floor(tenth) - 0.5) < 1e-9 && of_rest.levels[l] != 0.5) {
        parts.push_back(std::exp(double{of_rest.quantiles[l * kHorizon + t]}) * factor);
      }
    }
    ASSERT_EQ(parts.size(), 10U);
    double mean = 0, squares = 0;
    for (const double part : parts) mean += part / 10;
    for (const double part : parts) squares += (part - mean) * (part - mean) / 10;
    EXPECT_NEAR(found.mean[t], both(plain.mean[t], mean), 1e-4 * std::abs(mean));
    EXPECT_EQ(std::isnan(found.std[t]), std::isnan(plain.std[t]));
    if (!std::isnan(plain.std[t])) {
      EXPECT_NEAR(found.std[t], both(plain.std[t], std::sqrt(squares)), 1e-4 * mean);
    }
  }
}

TEST_F(SeasonViewTest, BitsDoNotDependOnTheBatch) {
  const char* const kinds[] = {"season", "", "flip,log,season", "season,context/2"};
  std::vector<OwnedSeries> all;
  std::vector<ForecastOptions> options;
  for (std::size_t i = 0; i < 44; ++i) {
    all.push_back(i % 3 == 0 ? test::wave(i, 20 + 7 * i, 1 + i % 2)
                             : two_rows(i % 3 == 1 ? 0 : 30, static_cast<std::uint32_t>(i)));
    all.back().id = std::to_string(i);
    options.push_back(options_with(kinds[i % 4]));
    options.back().horizon = 5 + i % 16;
  }
  const std::vector<Series> series = test::views(all);
  std::vector<Forecast> together(series.size());
  forecaster_.forecast(series, options, together);
  std::size_t seasonal = 0;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Forecast alone = forecast(all[i], options[i]);
    test::expect_same(alone, together[i]);
    EXPECT_EQ(alone.median, together[i].median);
    EXPECT_EQ(alone.applied, together[i].applied);
    seasonal +=
        options[i].views.season && alone.applied.views_left_out.find("season") == std::string::npos;
  }
  EXPECT_GE(seasonal, 15U);
}

TEST_F(SeasonViewTest, CovariatesThatAreKnownStayWhatTheyAre) {
  OwnedSeries y = two_rows(0, 12);
  std::swap_ranges(y.values.begin(), y.values.begin() + 96, y.values.begin() + 96);
  y.exogenous = 1;  // the one with the season
  y.future.assign(kHorizon, 0.5F);
  EXPECT_EQ(forecast(y, options_with("season")).applied.views_left_out, "season");
  std::swap_ranges(y.values.begin(), y.values.begin() + 96, y.values.begin() + 96);
  const Forecast found = forecast(y, options_with("season"));
  EXPECT_EQ(found.applied.passes, 2U);
  EXPECT_EQ(found.applied.season_period, (std::vector<std::size_t>{9, 0}));
  for (std::size_t t = 0; t < kHorizon; ++t) EXPECT_EQ(found.median[kHorizon + t], 0.5F);
}

TEST_F(SeasonViewTest, IsLeftOutWhereNoneIsFound) {
  const OwnedSeries y =
      owned({made(96, [](std::size_t t) { return std::sqrt(static_cast<double>(t)); })});
  const Forecast found = forecast(y, options_with("season,log"));
  EXPECT_EQ(found.applied.passes, 1U);
  EXPECT_EQ(found.applied.views_left_out, "log,season");
  EXPECT_TRUE(found.applied.season_period.empty());
  test::expect_same(found, forecast(y, options_with("")));
}

TEST_F(SeasonViewTest, GoesOnAcrossAMissingEnd) {
  Noise noise(8);
  const std::vector<double> table = table_of(9, noise);
  const std::vector<double> y = made(99, [&](std::size_t t) { return 5 * table[t % 9]; });
  OwnedSeries s = owned({y});
  s.mask.assign(99, 1);
  for (std::size_t t = 94; t < 99; ++t) s.mask[t] = 0;
  const Forecast found = forecast(s, options_with("season"));
  EXPECT_EQ(found.applied.missing_end, 5U);
  EXPECT_EQ(found.applied.passes, 2U);
  const OwnedSeries until = owned({std::vector<double>(y.begin(), y.begin() + 94)});
  ForecastOptions longer = options_with("season");
  longer.horizon = kHorizon + 5;
  const Forecast whole = forecast(until, longer);
  for (std::size_t t = 0; t < kHorizon; ++t)
    EXPECT_NEAR(found.median[t], whole.median[t + 5], 1e-3);
}

TEST_F(SeasonViewTest, ValueOffsetsAreOfTheWholeValue) {
  const OwnedSeries y = two_growing_rows(9);
  Seasons seasons;
  find_seasons(y.view(), 2, true, seasons);
  ASSERT_TRUE(seasons.log);
  OwnedSeries moved = y;
  for (float& value : moved.values) value -= 32;
  const double offsets[] = {32, 32};
  Series series = moved.view();
  series.value_offsets = offsets;
  const Forecast found = forecaster_.forecast({&series, 1}, options_with("season")).front();
  const Forecast whole = forecast(y, options_with("season"));
  EXPECT_EQ(found.applied.passes, 2U);
  for (std::size_t t = 0; t < kHorizon; ++t) {
    EXPECT_NEAR(32 + double{found.median[t]}, whole.median[t], 1e-3);
  }
}

}  // namespace
}  // namespace toto
