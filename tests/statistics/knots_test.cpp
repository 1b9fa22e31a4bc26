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

// QuantileForecast.quantile of GluonTS 0.17.0, which moves levels by 1e-8.
TEST(Knots, ExponentialTailsAreThoseOfGluonTS) {
  struct Known {
    double level, quantile;
  };
  for (const Known& known : {Known{1e-3, -23.931518337761457}, Known{0.01, -13.96578014912219},
                             Known{0.05, -6.9999995671915345}, Known{0.0999, -4.004330142168111},
                             Known{0.95, 30.999999087495485}, Known{0.99, 56.54119706197548}}) {
    EXPECT_NEAR(knot_quantile(kKnots, known.level, true), known.quantile, 2e-4) << known.level;
  }
  EXPECT_DOUBLE_EQ(knot_quantile(kKnots, 0.05, true), -7);  // half of 0.1: one step of 3 further
  EXPECT_DOUBLE_EQ(knot_quantile(kKnots, 0.975, true), 20 + 2 * 11);
}

TEST(Knots, TailsLeaveWhatLiesBetweenTheKnotsAlone) {
  for (int i = 100; i <= 900; ++i) {
    const double level = i / 1000.0;
    EXPECT_EQ(knot_quantile(kKnots, level, true), knot_quantile(kKnots, level)) << level;
  }
}

TEST(Knots, TailsAreMonotone) {
  for (const auto& knots :
       {kKnots, std::vector<double>{1, 1, 2, 3, 4, 5, 6, 7, 7}, std::vector<double>(9, 2.5)}) {
    double before = -std::numeric_limits<double>::infinity();
    for (int i = 1; i < 20000; ++i) {
      const double found = knot_quantile(knots, i / 20000.0, true);
      EXPECT_GE(found, before) << i;
      before = found;
    }
    // Right beside a knot as well.
    for (const double by : {0.0, 1e-16, 1e-9, 2e-8, 1e-6}) {
      EXPECT_LE(knot_quantile(knots, 0.1 - by, true), knots.front());
      EXPECT_GE(knot_quantile(knots, 0.9 + by, true), knots.back());
    }
  }
}

TEST(Knots, QuantilesThatCoincideHaveNoTail) {
  const std::vector<double> knots = {1, 1, 2, 3, 4, 5, 6, 7, 7};
  EXPECT_EQ(knot_quantile(knots, 1e-9, true), 1);
  EXPECT_EQ(knot_quantile(knots, 1 - 1e-9, true), 7);
  EXPECT_EQ(knot_mean(knots, true), knot_mean(knots));
  EXPECT_EQ(knot_variance(knots, true), knot_variance(knots));
}

TEST(Knots, MeanAndVarianceWithTailsAreIntegrals) {
  // Over the logarithm of the probability beyond, in which a tail is straight.
  constexpr int kSteps = 200000;
  constexpr double kDepth = 45;  // e^-45 is beyond double
  double sum = 0, squares = 0, inner = 0, inner_squares = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double beyond = 0.1 * std::exp(-kDepth * (i + 0.5) / kSteps);
    const double low = knot_quantile(kKnots, beyond, true);
    const double high = 20 - 11 * std::log2(beyond / 0.1);  // 1 - beyond has too few digits
    sum += (low + high) * beyond;
    squares += (low * low + high * high) * beyond;
    const double between = knot_quantile(kKnots, 0.1 + 0.8 * (i + 0.5) / kSteps, true);
    inner += between;
    inner_squares += between * between;
  }
  const double mean = sum * kDepth / kSteps + 0.8 * inner / kSteps;
  const double second = squares * kDepth / kSteps + 0.8 * inner_squares / kSteps;
  EXPECT_NEAR(knot_mean(kKnots, true), mean, 1e-5);
  EXPECT_NEAR(knot_variance(kKnots, true), second - mean * mean, 1e-3);
  EXPECT_GT(knot_variance(kKnots, true), knot_variance(kKnots));
}

TEST(Knots, TailsOfKnotsThatAreNoNumbers) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> knots = kKnots;
  knots.back() = kInfinity;
  EXPECT_EQ(knot_quantile(knots, 0.99, true), kInfinity);
  knots[7] = kInfinity;
  EXPECT_EQ(knot_quantile(knots, 0.99, true), kInfinity);
  knots = kKnots;
  knots.back() = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(knot_quantile(knots, 0.99, true)));
  knots = {-3e38, 0, 1, 2, 3, 4, 5, 6, 3e38};  // stays a float
  EXPECT_EQ(knot_quantile(knots, 0.001, true), -double{std::numeric_limits<float>::max()});
  EXPECT_EQ(knot_quantile(knots, 0.999, true), double{std::numeric_limits<float>::max()});
}

TEST(Knots, InfiniteKnotsAtTheirLevels) {
  std::vector<double> knots = kKnots;
  knots.back() = std::numeric_limits<double>::infinity();
  EXPECT_EQ(knot_quantile(knots, 0.8), 9);
  EXPECT_TRUE(std::isinf(knot_quantile(knots, 0.85)));
}

}  // namespace
}  // namespace toto
