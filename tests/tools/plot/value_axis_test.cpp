// SPDX-License-Identifier: Apache-2.0
// Ranges that one tail cannot flatten, round ticks and their labels.
#include "tools/plot/value_axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace toto::plot {
namespace {

using ::testing::ElementsAre;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> labels(double low, double high, int wanted = 4) {
  return value_ticks({low, high}, wanted).labels;
}

TEST(ValueTicks, AreWrittenForReading) {
  EXPECT_THAT(labels(-0.4, 3.3), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(labels(0.9, 1.32), ElementsAre("0.9", "1.0", "1.1", "1.2", "1.3"));
  EXPECT_THAT(labels(0, 4100), ElementsAre("0", "2,000", "4,000"));
  EXPECT_THAT(labels(10500, 31000), ElementsAre("15,000", "20,000", "25,000", "30,000"));
  EXPECT_THAT(labels(0, 410000), ElementsAre("0", "200k", "400k"));
  EXPECT_THAT(labels(900000, 2600000), ElementsAre("1.0M", "1.5M", "2.0M", "2.5M"));
  EXPECT_THAT(labels(0, 3.1e9), ElementsAre("0", "1G", "2G", "3G"));
  EXPECT_THAT(labels(0, 3.1e12), ElementsAre("0", "1T", "2T", "3T"));
  EXPECT_THAT(labels(-3100, 900), ElementsAre("\u22123,000", "\u22122,000", "\u22121,000", "0"));
  EXPECT_THAT(labels(1e9, 1e9 + 0.5),
              ElementsAre("1,000,000,000.0", "1,000,000,000.2", "1,000,000,000.4"));
  EXPECT_THAT(labels(0, 0.0031), ElementsAre("0", "0.001", "0.002", "0.003"));
}

TEST(ValueTicks, ExtremeNumbersShareAPowerOfTen) {
  const ValueTicks small = value_ticks({0, 3.1e-9}, 4);
  EXPECT_EQ(small.unit, "\u00d7 1e-9");
  EXPECT_THAT(small.labels, ElementsAre("0", "1", "2", "3"));
  const ValueTicks large = value_ticks({0, 3.1e31}, 4);
  EXPECT_EQ(large.unit, "\u00d7 1e30");
  EXPECT_THAT(large.labels, ElementsAre("0", "10", "20", "30"));
  EXPECT_EQ(value_ticks({0, 1000}, 4).unit, "");
}

TEST(ValueTicks, LieInsideIncreaseAndDiffer) {
  for (int exponent = -300; exponent <= 299; exponent += 7) {
    for (const double start : {-1.0, -0.37, 0.0, 0.12, 0.93}) {
      for (const double span : {0.07, 0.4, 1.9}) {
        const double unit = std::pow(10.0, exponent);
        const ValueRange range{start * unit, (start + span) * unit};
        for (const int wanted : {4, 7}) {
          const ValueTicks ticks = value_ticks(range, wanted);
          ASSERT_GE(ticks.values.size(), 3U);
          EXPECT_LE(ticks.values.size(), static_cast<std::size_t>(2 * wanted));
          const double slack = 1e-6 * (range.high - range.low);
          EXPECT_GE(ticks.values.front(), range.low - slack);
          EXPECT_LE(ticks.values.back(), range.high + slack);
          for (std::size_t i = 1; i < ticks.values.size(); ++i) {
            EXPECT_LT(ticks.values[i - 1], ticks.values[i]);
          }
          const std::set<std::string> different(ticks.labels.begin(), ticks.labels.end());
          EXPECT_EQ(different.size(), ticks.labels.size());
          for (const std::string& label : ticks.labels) EXPECT_LE(label.size(), 12U) << label;
        }
      }
    }
  }
}

Panel panel_with(std::vector<double> history) {
  Panel panel;
  panel.history = std::move(history);
  return panel;
}

TEST(ValueRange, HoldsHistoryMedianMeanAndActual) {
  Panel panel = panel_with({100, 110, 105});
  panel.median = {90};
  panel.mean = {80};
  panel.actual = {140};
  const ValueRange range = value_range(panel, 0);
  EXPECT_LT(range.low, 80);
  EXPECT_GT(range.high, 140);
  EXPECT_LT(range.high - range.low, 70);
  EXPECT_FALSE(range.clipped);
}

TEST(ValueRange, SmallMovesFillThePlotAtAnyLevel) {
  for (const double level : {0.0, 1e7, 1e12}) {
    const ValueRange range = value_range(panel_with({level - 1, level + 1, level, level + 1}), 0);
    EXPECT_NEAR(range.low, level - 1, 2);
    EXPECT_NEAR(range.high, level + 1, 2);
  }
}

TEST(ValueRange, IgnoresHistoryThatIsNotShown) {
  const ValueRange range = value_range(panel_with({1e9, 100, 110, 105}), 1);
  EXPECT_LT(range.high, 111);
}

TEST(ValueRange, AFatTailDoesNotFlattenThePlot) {
  Panel panel = panel_with({100, 110, 105});
  panel.median = {105, 105};
  panel.bands = {{0.8, {100, 98}, {112, 114}}, {0.95, {95, -1e6}, {115, 1e30}}};
  ValueRange range = value_range(panel, 0);
  EXPECT_TRUE(range.clipped);
  EXPECT_LT(range.low, 98);
  EXPECT_GT(range.high, 114);
  EXPECT_LT(range.high - range.low, 16 * 2.5);

  panel.bands[0] = {0.8, {-1e9, 98}, {112, 1e9}};  // even the 80 % band has its limits
  range = value_range(panel, 0);
  EXPECT_TRUE(range.clipped);
  EXPECT_LT(range.high - range.low, 10 * 20);
}

TEST(ValueRange, ModestBandsAreShownWhole) {
  Panel panel = panel_with({100, 110, 105});
  panel.bands = {{0.8, {98}, {114}}, {0.95, {95}, {118}}};
  const ValueRange range = value_range(panel, 0);
  EXPECT_FALSE(range.clipped);
  EXPECT_LT(range.low, 95);
  EXPECT_GT(range.high, 118);
}

TEST(ValueRange, AFlatHistoryLeavesTheScaleToTheBands) {
  Panel panel = panel_with({7, 7, 7});
  panel.median = {7, 7};
  panel.bands = {{0.8, {6, 5}, {8, 9}}, {0.95, {5, 4.5}, {9, 9.5}}};
  const ValueRange range = value_range(panel, 0);
  EXPECT_FALSE(range.clipped);
  EXPECT_LT(range.low, 4.5);
  EXPECT_GT(range.high, 9.5);
}

TEST(ValueRange, DegenerateData) {
  for (const std::vector<double>& history : {std::vector<double>{},
                                             {kNaN, kNaN},
                                             {5, 5, 5},
                                             {0, 0},
                                             {-3},
                                             {1e300, -1e300},
                                             {kInf, 1, -kInf},
                                             {1e-320, 0},
                                             {1e9, 1e9 + 1e-7},
                                             {1e308}}) {
    const ValueRange range = value_range(panel_with(history), 0);
    EXPECT_TRUE(std::isfinite(range.low) && std::isfinite(range.high));
    EXPECT_LT(range.low, range.high);
    EXPECT_GE(value_ticks(range, 4).values.size(), 3U);
  }
}

TEST(ValueRange, InfiniteLimitsCountAsClipped) {
  Panel panel = panel_with({1, 2, 3});
  panel.bands = {{0.95, {-kInf}, {kInf}}};
  const ValueRange range = value_range(panel, 0);
  EXPECT_TRUE(range.clipped);
  EXPECT_LT(range.high, 4);
}

TEST(ValueRange, ZeroJoinsTheAxisWhenNear) {
  EXPECT_EQ(value_range(panel_with({2, 50, 20}), 0).low, 0);
  EXPECT_EQ(value_range(panel_with({-2, -50}), 0).high, 0);
  EXPECT_GT(value_range(panel_with({40, 50}), 0).low, 30);
}

}  // namespace
}  // namespace toto::plot
