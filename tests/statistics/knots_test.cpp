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
    EXPECT_NEAR(knot_quantile(kKnots, known.level, KnotTails::exponential), known.quantile, 2e-4)
        << known.level;
  }
  EXPECT_DOUBLE_EQ(knot_quantile(kKnots, 0.05, KnotTails::exponential),
                   -7);  // half of 0.1: one step of 3 further
  EXPECT_DOUBLE_EQ(knot_quantile(kKnots, 0.975, KnotTails::exponential), 20 + 2 * 11);
}

// scipy.stats.norm(3, 2).ppf, and (the upper half three times as wide) norm(3, 6).ppf
TEST(Knots, NormalTailsAreThoseOfANormalDistribution) {
  const std::vector<double> scores = {-1.2815515655446004, -0.8416212335729143, -0.5244005127080409,
                                      -0.2533471031357997, 0};
  std::vector<double> knots(9);
  for (std::size_t i = 0; i < 5; ++i) {
    knots[i] = 3 + 2 * scores[i];
    knots[8 - i] = 3 - 6 * scores[i];
  }
  struct Known {
    double level, quantile;
  };
  for (const Known& known : {Known{1e-6, -6.506848617645203}, Known{0.001, -3.180464612335626},
                             Known{0.05, -0.2897072539029440}, Known{0.0999, 0.43575684058245034},
                             Known{0.95, 12.869121761708834}, Known{0.999, 21.541393837006858}}) {
    EXPECT_NEAR(knot_quantile(knots, known.level, KnotTails::normal), known.quantile, 1e-9)
        << known.level;
  }
  // Of any number of knots: an even one has its median between two.
  const std::vector<double> quarters = {1, 2, 4, 8};
  const double score = 0.8416212335729143, outer = 2.3263478740408408;  // of 0.8, 0.99
  EXPECT_NEAR(knot_quantile(quarters, 0.99, KnotTails::normal), 8 + 5 * (outer / score - 1), 1e-9);
  EXPECT_NEAR(knot_quantile(quarters, 0.01, KnotTails::normal), 1 - 2 * (outer / score - 1), 1e-9);
}

class KnotTailsTest : public testing::TestWithParam<KnotTails> {};
INSTANTIATE_TEST_SUITE_P(Both, KnotTailsTest,
                         testing::Values(KnotTails::exponential, KnotTails::normal));

TEST_P(KnotTailsTest, LeaveWhatLiesBetweenTheKnotsAlone) {
  for (int i = 100; i <= 900; ++i) {
    const double level = i / 1000.0;
    EXPECT_EQ(knot_quantile(kKnots, level, GetParam()), knot_quantile(kKnots, level)) << level;
  }
}

TEST_P(KnotTailsTest, AreMonotone) {
  for (const auto& knots :
       {kKnots, std::vector<double>{1, 1, 2, 3, 4, 5, 6, 7, 7}, std::vector<double>(9, 2.5)}) {
    double before = -std::numeric_limits<double>::infinity();
    for (int i = 1; i < 20000; ++i) {
      const double found = knot_quantile(knots, i / 20000.0, GetParam());
      EXPECT_GE(found, before) << i;
      before = found;
    }
    // Right beside a knot as well.
    for (const double by : {0.0, 1e-16, 1e-9, 2e-8, 1e-6}) {
      EXPECT_LE(knot_quantile(knots, 0.1 - by, GetParam()), knots.front());
      EXPECT_GE(knot_quantile(knots, 0.9 + by, GetParam()), knots.back());
    }
  }
}

TEST(Knots, QuantilesThatCoincideHaveNoTail) {
  const std::vector<double> half = {1, 1, 1, 1, 1, 2, 3, 4, 5};  // the lower half is a point
  EXPECT_EQ(knot_quantile(half, 1e-9, KnotTails::normal), 1);
  EXPECT_GT(knot_quantile(half, 1 - 1e-9, KnotTails::normal), 15);
  const std::vector<double> point(9, 7.0);
  EXPECT_EQ(knot_mean(point, KnotTails::normal), 7);
  EXPECT_EQ(knot_variance(point, KnotTails::normal), 0);
  const std::vector<double> knots = {1, 1, 2, 3, 4, 5, 6, 7, 7};
  EXPECT_EQ(knot_quantile(knots, 1e-9, KnotTails::exponential), 1);
  EXPECT_EQ(knot_quantile(knots, 1 - 1e-9, KnotTails::exponential), 7);
  EXPECT_EQ(knot_mean(knots, KnotTails::exponential), knot_mean(knots));
  EXPECT_EQ(knot_variance(knots, KnotTails::exponential), knot_variance(knots));
}

TEST_P(KnotTailsTest, MeanAndVarianceAreIntegrals) {
  // Over the logarithm of the probability beyond, so that far quantiles count. 1 - beyond has too
  // few digits: the upper tail is the lower one of the mirrored knots.
  std::vector<double> mirrored;
  for (std::size_t i = kKnots.size(); i-- > 0;) mirrored.push_back(-kKnots[i]);
  constexpr int kSteps = 200000;
  constexpr double kDepth = 28;  // 7e-14 of the probability lies beyond
  double sum = 0, squares = 0, inner = 0, inner_squares = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double beyond = 0.1 * std::exp(-kDepth * (i + 0.5) / kSteps);
    const double low = knot_quantile(kKnots, beyond, GetParam());
    const double high = -knot_quantile(mirrored, beyond, GetParam());
    sum += (low + high) * beyond;
    squares += (low * low + high * high) * beyond;
    const double between = knot_quantile(kKnots, 0.1 + 0.8 * (i + 0.5) / kSteps, GetParam());
    inner += between;
    inner_squares += between * between;
  }
  const double mean = sum * kDepth / kSteps + 0.8 * inner / kSteps;
  const double second = squares * kDepth / kSteps + 0.8 * inner_squares / kSteps;
  EXPECT_NEAR(knot_mean(kKnots, GetParam()), mean, 1e-5);
  EXPECT_NEAR(knot_variance(kKnots, GetParam()), second - mean * mean, 1e-3);
  EXPECT_GT(knot_variance(kKnots, GetParam()), knot_variance(kKnots));
}

TEST(Knots, TailsOfKnotsThatAreNoNumbers) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> knots = kKnots;
  knots.back() = kInfinity;
  EXPECT_EQ(knot_quantile(knots, 0.99, KnotTails::exponential), kInfinity);
  knots[7] = kInfinity;
  EXPECT_EQ(knot_quantile(knots, 0.99, KnotTails::exponential), kInfinity);
  knots = kKnots;
  knots.back() = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(knot_quantile(knots, 0.99, KnotTails::exponential)));
  EXPECT_TRUE(std::isnan(knot_quantile(knots, 0.99, KnotTails::normal)));
  knots = {-3e38, 0, 1, 2, 3, 4, 5, 6, 3e38};  // stays a float
  for (const KnotTails tails : {KnotTails::exponential, KnotTails::normal}) {
    EXPECT_EQ(knot_quantile(knots, 0.001, tails), -double{std::numeric_limits<float>::max()});
    EXPECT_EQ(knot_quantile(knots, 0.999, tails), double{std::numeric_limits<float>::max()});
  }
}

TEST(Knots, InfiniteKnotsAtTheirLevels) {
  std::vector<double> knots = kKnots;
  knots.back() = std::numeric_limits<double>::infinity();
  EXPECT_EQ(knot_quantile(knots, 0.8), 9);
  EXPECT_TRUE(std::isinf(knot_quantile(knots, 0.85)));
}

}  // namespace
}  // namespace toto
