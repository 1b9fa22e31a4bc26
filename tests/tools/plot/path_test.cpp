// SPDX-License-Identifier: Apache-2.0
// Path data: exact, small, and faithful to spikes and gaps.
#include "tools/plot/path.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "support/path_points.h"

namespace toto::plot {
namespace {

using test::path_points;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Path, WritesShortNumbers) {
  EXPECT_EQ(coordinate(12.0), "12");
  EXPECT_EQ(coordinate(12.34), "12.3");
  EXPECT_EQ(coordinate(-0.04), "0");
  EXPECT_EQ(coordinate(-0.3), "-.3");
  EXPECT_EQ(coordinate(0.5), ".5");
  const std::vector<Point> points = {{0, 10}, {5, 9.5}, {10, 20.25}};
  EXPECT_EQ(line_path(points).line, "M0 10l5-.5 5 10.8");
}

TEST(Path, RoundingDoesNotAddUp) {
  std::vector<Point> points;
  for (int i = 0; i < 900; ++i) points.push_back({i * 1.04, 50 + 0.04 * i});
  const auto drawn = path_points(line_path(points).line);
  ASSERT_EQ(drawn.size(), points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_NEAR(drawn[i].x, points[i].x, 0.0501);
    EXPECT_NEAR(drawn[i].y, points[i].y, 0.0501);
  }
}

TEST(Path, GapsPartALineAndLonePointsAreDots) {
  const std::vector<Point> points = {{0, 1},     {10, 2},    {20, kNaN}, {30, 3},
                                     {40, kNaN}, {50, kNaN}, {60, 4},    {70, 5}};
  const LinePath path = line_path(points);
  EXPECT_EQ(path.line, "M0 1l10 1M60 4l10 1");
  EXPECT_EQ(path.dots, "M30 3h0");
  EXPECT_EQ(line_path(std::vector<Point>{}).line, "");
  EXPECT_EQ(line_path(std::vector<Point>(3, {1, kNaN})).line, "");
}

TEST(Path, ThinningKeepsEverySpike) {
  std::mt19937 random(1);
  std::normal_distribution<double> noise;
  std::vector<Point> points;
  for (int i = 0; i < 100'000; ++i) points.push_back({i * 0.003, 50 + noise(random)});
  for (std::size_t i = 1000; i < points.size(); i += 5000) {
    points[i].y = 5;
    points[i + 20].y = 95;  // in the same column
    points[i + 2500].y = 95;
    points[i + 2520].y = 5;
  }
  const std::string path = line_path(points).line;
  EXPECT_LT(path.size(), 6000U);
  const auto drawn = path_points(path);
  EXPECT_LE(drawn.size(), 602U);
  std::size_t high = 0;
  std::size_t low = 0;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    high += drawn[i].y < 5.1 ? 1 : 0;
    low += drawn[i].y > 94.9 ? 1 : 0;
    if (i > 0) {
      EXPECT_GE(drawn[i].x, drawn[i - 1].x);
    }
  }
  EXPECT_EQ(high, 40U);
  EXPECT_EQ(low, 40U);
}

TEST(Path, AnAreaRunsForthAlongTheTopAndBackAlongTheBottom) {
  const std::vector<Point> upper = {{0, 10}, {10, 8}, {20, 6}};
  const std::vector<Point> lower = {{0, 10}, {10, 12}, {20, 14}};
  EXPECT_EQ(area_path(upper, lower), "M0 10l10-2 10-2 0 8-10-2-10-2z");
}

TEST(Path, AnAreaHasGapsAndLoneSteps) {
  const std::vector<Point> upper = {{0, 1}, {10, 1}, {20, kNaN}, {30, 1}, {40, 1}};
  const std::vector<Point> lower = {{0, 2}, {10, 2}, {20, 2}, {30, 2}, {40, kNaN}};
  EXPECT_EQ(area_path(upper, lower), "M0 1l10 0 0 1-10 0zM27 1l6 0 0 1-6 0z");
}

TEST(Path, AThinnedAreaEnclosesTheBand) {
  std::vector<Point> upper;
  std::vector<Point> lower;
  for (int i = 0; i <= 10'000; ++i) {
    upper.push_back({i * 0.01, 40.0 - (i % 10)});
    lower.push_back({i * 0.01, 60.0 + (i % 7)});
  }
  const auto outline = path_points(area_path(upper, lower));
  EXPECT_LE(outline.size(), 204U);
  EXPECT_EQ(outline.front().x, 0);
  double right = 0;
  for (std::size_t i = 0; i < outline.size(); ++i) {
    right = std::max(right, outline[i].x);
    if (i > 0 && i + 2 < outline.size() / 2) {
      EXPECT_EQ(outline[i].y, 31);
    }
  }
  EXPECT_EQ(right, 100);
}

}  // namespace
}  // namespace toto::plot
