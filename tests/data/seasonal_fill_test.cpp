// SPDX-License-Identifier: Apache-2.0
// Gaps filled by what was observed a season before and after them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>

#include "read.h"

namespace toto::data {
namespace {

constexpr std::size_t kSeason = 8;

/// A cycle of steep steps on a slope.
float value_at(std::size_t t) {
  constexpr float kCycle[kSeason] = {0, 9, 1, 7, 3, -4, 2, 5};
  return kCycle[t % kSeason] + 0.5F * static_cast<float>(t);
}

struct Made {
  std::vector<float> values;
  std::vector<std::uint8_t> mask;

  explicit Made(std::size_t steps) : mask(steps, 1) {
    for (std::size_t t = 0; t < steps; ++t) values.push_back(value_at(t));
  }
  void lose(std::size_t begin, std::size_t end, float with) {
    for (std::size_t t = begin; t < end; ++t) {
      values[t] = with;
      mask[t] = 0;
    }
  }
};

TEST(SeasonalFill, LongGapsFollowTheCycleAndTheSlope) {
  Made made(64);
  made.lose(20, 28, -99);
  made.lose(37, 40, -99);
  fill_seasonal(made.values, made.mask, kSeason);
  for (std::size_t t = 0; t < 64; ++t) EXPECT_NEAR(made.values[t], value_at(t), 1e-5) << t;
}

TEST(SeasonalFill, AGapOfMoreThanASeasonRepeatsIt) {
  Made made(80);
  made.lose(24, 45, -99);
  fill_seasonal(made.values, made.mask, kSeason);
  for (std::size_t t = 24; t < 45; ++t) EXPECT_NEAR(made.values[t], value_at(t), 1e-4) << t;
}

TEST(SeasonalFill, WhatIsNotObservedAfterAGapDoesNotCount) {
  Made made(64);
  made.lose(20, 26, -99);
  made.lose(28, 34, -99);
  fill_seasonal(made.values, made.mask, kSeason);
  for (std::size_t t = 20; t < 34; ++t) EXPECT_NEAR(made.values[t], value_at(t), 1e-4) << t;
}

TEST(SeasonalFill, ShortGapsAndSeriesWithoutASeasonStay) {
  Made made(40);
  made.lose(20, 21, -99);
  fill_seasonal(made.values, made.mask, kSeason);
  EXPECT_EQ(made.values[20], -99);
  made.lose(24, 32, -99);
  fill_seasonal(made.values, made.mask, 1);
  EXPECT_EQ(made.values[24], -99);
  Made first(20);  // neither before nor after
  first.lose(5, 14, -99);
  fill_seasonal(first.values, first.mask, kSeason);
  EXPECT_EQ(first.values[9], -99);
}

TEST(SeasonalFill, EndsRepeatASeason) {
  Made made(40);
  made.lose(0, 3, -99);
  made.lose(27, 40, -99);
  fill_seasonal(made.values, made.mask, kSeason);
  for (std::size_t t = 0; t < 3; ++t) EXPECT_EQ(made.values[t], value_at(t + kSeason));
  for (std::size_t t = 27; t < 35; ++t) EXPECT_EQ(made.values[t], value_at(t - kSeason));
  for (std::size_t t = 35; t < 40; ++t) EXPECT_EQ(made.values[t], value_at(t - 2 * kSeason));
}

TEST(SeasonalFill, TheSeasonIsThatOfTheInterval) {
  const auto of = [](Interval::Unit unit, std::int64_t count, bool regular = true) {
    Interval interval;
    interval.unit = unit;
    interval.count = count;
    interval.regular = regular;
    return seasonal_steps(interval);
  };
  using Unit = Interval::Unit;
  EXPECT_EQ(of(Unit::milliseconds, 3'600'000), 24U);
  EXPECT_EQ(of(Unit::milliseconds, 10'000), 8640U);
  EXPECT_EQ(of(Unit::milliseconds, 86'400'000), 7U);
  EXPECT_EQ(of(Unit::milliseconds, 7 * 86'400'000LL), 52U);
  EXPECT_EQ(of(Unit::milliseconds, 7'000'000), 1U);
  EXPECT_EQ(of(Unit::milliseconds, 3'600'000, false), 1U);
  EXPECT_EQ(of(Unit::business_day, 1), 5U);
  EXPECT_EQ(of(Unit::month, 1), 12U);
  EXPECT_EQ(of(Unit::month, 3), 4U);
  EXPECT_EQ(of(Unit::index, 1), 1U);
}

/// From a table: hours with a day's shape, and half a day lost.
TEST(SeasonalFill, OfATable) {
  std::string text = "ds,y\n";
  for (int t = 0; t < 96; ++t) {
    const double y = 10 + std::round(100 * std::sin(t * 0.2617993877991494)) / 10;
    const std::string value = t >= 50 && t < 62 ? "" : fmt::format("{}", y);
    text += fmt::format("2024-01-{:02} {:02}:00,{}\n", 1 + t / 24, t % 24, value);
  }
  CsvOptions options;
  options.missing = Missing::seasonal;
  const TimeSeries series = only(text, options);
  for (std::size_t t = 50; t < 62; ++t) {
    EXPECT_NEAR(series.values[t], series.values[t - 24], 1e-5);
    EXPECT_EQ(series.mask[t], 0);
  }
  options.season = 1;
  CsvOptions linear;
  linear.missing = Missing::linear;
  EXPECT_EQ(only(text, options).values, only(text, linear).values);
  options.missing = Missing::model;
  EXPECT_EQ(only(text, options).values, only(text, linear).values);
}

}  // namespace
}  // namespace toto::data
