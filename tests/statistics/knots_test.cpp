// SPDX-License-Identifier: Apache-2.0
#include "statistics/knots.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace toto {
namespace {

const std::vector<double> kKnots = {-4, -1, 0, 1, 2, 3, 5, 9, 20};

TEST(Knots, TheirOwnLevelsGiveThem) {
  for (std::size_t i = 0; i < kKnots.size(); ++i) {
    EXPECT_EQ(knot_quantile(kKnots, knot_level(i, kKnots.size())), kKnots[i]);
    EXPECT_EQ(knot_quantile(kKnots, 0.1 * static_cast<double>(i + 1)), kKnots[i]);
  }
}

TEST(Knots, LinearBetween) {
  EXPECT_DOUBLE_EQ(knot_quantile(kKnots, 0.15), -2.5);
  EXPECT_DOUBLE_EQ(knot_quantile(kKnots, 0.875), 9 + 0.75 * 11);
  EXPECT_DOUBLE_EQ(knot_quantile(kKnots, 0.25), -0.5);
}

TEST(Knots, ConstantBeyond) {
  for (const double level : {0.0, 0.01, 0.0999}) {
    EXPECT_EQ(knot_quantile(kKnots, level), -4);
    EXPECT_FALSE(within_knots(level, 9));
  }
  for (const double level : {0.9001, 0.99, 1.0}) {
    EXPECT_EQ(knot_quantile(kKnots, level), 20);
    EXPECT_FALSE(within_knots(level, 9));
  }
  for (const double level : {0.1, 0.5, 0.9}) EXPECT_TRUE(within_knots(level, 9));
}

// The mean is the integral of the quantile function.
TEST(Knots, MeanAndVarianceAreIntegrals) {
  constexpr int kSteps = 100000;
  double sum = 0;
  for (int i = 0; i < kSteps; ++i) sum += knot_quantile(kKnots, (i + 0.5) / kSteps);
  EXPECT_NEAR(knot_mean(kKnots), sum / kSteps, 1e-6);
  double squares = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double d = knot_quantile(kKnots, (i + 0.5) / kSteps) - sum / kSteps;
    squares += d * d;
  }
  EXPECT_NEAR(knot_variance(kKnots), squares / kSteps, 1e-4);
  EXPECT_EQ(knot_variance(std::vector<double>(9, 7.0)), 0.0);
  EXPECT_DOUBLE_EQ(knot_mean(std::vector<double>(9, 7.0)), 7.0);
}

TEST(Knots, InfiniteKnotsAtTheirLevels) {
  std::vector<double> knots = kKnots;
  knots.back() = std::numeric_limits<double>::infinity();
  EXPECT_EQ(knot_quantile(knots, 0.8), 9);
  EXPECT_TRUE(std::isinf(knot_quantile(knots, 0.85)));
}

}  // namespace
}  // namespace toto
