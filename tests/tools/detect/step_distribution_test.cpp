// SPDX-License-Identifier: Apache-2.0
// Tails and quantiles of a step, from a mixture and from quantiles.
#include "tools/detect/step_distribution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace toto::detect {
namespace {

TEST(DetectKnots, AreLinearBetweenThem) {
  const std::vector<double> knots = {0, 1, 2, 3, 4, 5, 6, 7, 8};  // levels 0.1 ... 0.9
  EXPECT_DOUBLE_EQ(knot_tails(knots, 4).at_most, 0.5);
  EXPECT_DOUBLE_EQ(knot_tails(knots, 4).at_least, 0.5);
  EXPECT_NEAR(knot_tails(knots, 2.5).at_most, 0.35, 1e-12);
  EXPECT_NEAR(knot_tails(knots, 2.5).at_least, 0.65, 1e-12);
}

TEST(DetectKnots, HalveWithEachStepBeyondTheOutermost) {
  const std::vector<double> knots = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  for (int steps = 0; steps < 12; ++steps) {
    EXPECT_NEAR(knot_tails(knots, 8.0 + steps).at_least, 0.1 * std::exp2(-steps), 1e-12) << steps;
    EXPECT_NEAR(knot_tails(knots, 0.0 - steps).at_most, 0.1 * std::exp2(-steps), 1e-12) << steps;
  }
}

TEST(DetectKnots, GiveAValueThatIsCertainItsProbability) {
  const std::vector<double> knots = {0, 0, 0, 0, 0, 0, 1, 2, 3};
  EXPECT_NEAR(knot_tails(knots, 0).at_most, 0.6, 1e-12);
  EXPECT_NEAR(knot_tails(knots, 0).at_least, 0.9, 1e-12);
  const std::vector<double> certain(9, 5.0);
  EXPECT_GT(knot_tails(certain, 5).at_least, 0.8);
  EXPECT_LT(knot_tails(certain, 5.001).at_least, 1e-10);
  EXPECT_LT(knot_tails(certain, 4.999).at_most, 1e-10);
}

TEST(DetectKnots, QuantilesAreTheirInverse) {
  const std::vector<double> knots = {-3, -1, 0, 0.5, 1, 1.5, 3, 8, 20};
  for (const double level : {1e-6, 0.003, 0.1, 0.35, 0.5, 0.77, 0.9, 0.999, 1 - 1e-6}) {
    EXPECT_NEAR(knot_tails(knots, knot_tail_quantile(knots, level)).at_most, level, 1e-9) << level;
  }
}

/// Two steps of a mixture: a normal of deviation 2 about 10, one about -5.
Forecast normals() {
  const double inf = std::numeric_limits<double>::infinity();
  Forecast forecast;
  forecast.variates = 1;
  forecast.horizon = 2;
  forecast.parameters = {1, {inf, inf}, {0, 0}, {1, 1}, {1, 1}, {10, -5}, {2, 2}};
  return forecast;
}

TEST(DetectMixture, IsInTheUsersUnits) {
  const Forecast forecast = normals();
  StepReader reader(forecast);
  reader.select(0, 0);
  EXPECT_NEAR(reader.tails(10).at_most, 0.5, 1e-12);
  EXPECT_NEAR(reader.tails(16).at_least, 0.0013498980316301, 1e-12);  // three deviations
  EXPECT_NEAR(reader.tails(26).at_least, 6.22096057427178e-16, 1e-26);
  EXPECT_NEAR(reader.quantile(0.975), 10 + 2 * 1.959963984540054, 1e-9);
  reader.select(0, 1);
  EXPECT_NEAR(reader.quantile(0.5), -5, 1e-9);
}

TEST(DetectMixture, ReadsQuantilesWhereThereIsNoMixture) {
  Forecast forecast;
  forecast.variates = 2;
  forecast.horizon = 1;
  forecast.levels = knot_levels(3);
  EXPECT_EQ(forecast.levels, (std::vector<double>{0.25, 0.5, 0.75}));
  forecast.quantiles = {1, 10, 2, 20, 3, 30};  // [levels][V][H]
  StepReader reader(forecast);
  reader.select(1, 0);
  EXPECT_NEAR(reader.quantile(0.5), 20, 1e-12);
  EXPECT_NEAR(reader.tails(30).at_least, 0.25, 1e-12);
}

}  // namespace
}  // namespace toto::detect
