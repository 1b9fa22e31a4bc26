// SPDX-License-Identifier: Apache-2.0
// The season that is found in values, and the view without it.
#include "engine/season.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <random>

#include "support/paths.h"
#include "support/requests.h"

namespace toto {
namespace {

using test::OwnedSeries;

class Noise {
 public:
  explicit Noise(std::uint32_t seed) : random_(seed) {}
  double next() {
    const double radius = std::sqrt(-2 * std::log((random_() + 0.5) / 4294967296.0));
    return radius * std::cos(2 * std::numbers::pi * (random_() + 0.5) / 4294967296.0);
  }

 private:
  std::mt19937 random_;
};

std::vector<double> table_of(std::size_t period, Noise& noise) {
  std::vector<double> table;
  table.reserve(period);
  for (std::size_t k = 0; k < period; ++k) table.push_back(noise.next());
  return table;
}

std::vector<double> made(std::size_t count, const std::function<double(std::size_t)>& value) {
  std::vector<double> y;
  y.reserve(count);
  for (std::size_t t = 0; t < count; ++t) y.push_back(value(t));
  return y;
}

OwnedSeries owned(const std::vector<std::vector<double>>& rows) {
  OwnedSeries s;
  s.id = "seasonal";
  s.variates = rows.size();
  for (const std::vector<double>& row : rows) {
    for (const double value : row) s.values.push_back(static_cast<float>(value));
  }
  return s;
}

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

// ---- The view ----

constexpr std::size_t kHorizon = 20;

ForecastOptions options_with(const std::string& views) {
  ForecastOptions options;
  options.horizon = kHorizon;
  options.num_samples = 16;
  options.levels = {0.1, 0.5, 0.9};
  options.guards.clamp = 0;
  options.views = parse_views(views);
  return options;
}

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
      for (double& value : y) value += 0.05 * noise.next();
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
