// SPDX-License-Identifier: Apache-2.0
// What trajectories say about the whole horizon: against numbers worked out by hand.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "toto/error.hpp"
#include "toto/tools/horizon.hpp"

namespace toto::data {
namespace {

/// Three trajectories of two variates over two steps.
Forecast made() {
  Forecast f;
  f.variates = 2;
  f.horizon = 2;
  f.num_samples = 3;
  f.mean.resize(4);
  f.samples = {1, 2, 10, 20,   // trajectory 0: variate 0, variate 1
               3, 5, 30, -10,  //
               4, 0, 0,  0};
  return f;
}

TEST(OverHorizon, AggregatesAreThoseOfEachTrajectory) {
  HorizonQuestion ask;
  ask.levels = {0, 0.25, 0.5, 1};
  ask.aggregate = HorizonAggregate::sum;
  HorizonAnswer answer = over_horizon(made(), 0, ask);  // 3, 8, 4
  EXPECT_DOUBLE_EQ(answer.mean, 5);
  EXPECT_EQ(answer.quantiles, (std::vector<double>{3, 3.5, 4, 8}));
  ask.aggregate = HorizonAggregate::mean;
  EXPECT_DOUBLE_EQ(over_horizon(made(), 0, ask).mean, 2.5);
  ask.aggregate = HorizonAggregate::max;  // 20, 30, 0
  EXPECT_DOUBLE_EQ(over_horizon(made(), 1, ask).quantiles[2], 20);
  ask.aggregate = HorizonAggregate::min;  // 10, -10, 0
  EXPECT_DOUBLE_EQ(over_horizon(made(), 1, ask).mean, 0);
}

TEST(OverHorizon, OffsetsCountForEveryStep) {
  HorizonQuestion ask;
  ask.aggregate = HorizonAggregate::sum;
  EXPECT_DOUBLE_EQ(over_horizon(made(), 0, ask, 1e9).mean, 2e9 + 5);
  ask.aggregate = HorizonAggregate::max;
  EXPECT_DOUBLE_EQ(over_horizon(made(), 0, ask, 1e9).mean, 1e9 + 11.0 / 3);
}

TEST(OverHorizon, LevelsAreCrossedAnywhereAndAtEachStep) {
  HorizonQuestion ask;
  ask.above = 2;
  ask.below = 1;
  const HorizonAnswer answer = over_horizon(made(), 0, ask);
  EXPECT_DOUBLE_EQ(answer.above_anywhere, 2.0 / 3);
  EXPECT_EQ(answer.above, (std::vector<double>{2.0 / 3, 1.0 / 3}));  // 2 is not above 2
  EXPECT_DOUBLE_EQ(answer.below_anywhere, 1.0 / 3);
  EXPECT_EQ(answer.below, (std::vector<double>{0, 1.0 / 3}));
  ask.above = 1e9 + 2;
  EXPECT_DOUBLE_EQ(over_horizon(made(), 0, ask, 1e9).above_anywhere, 2.0 / 3);
}

TEST(OverHorizon, WithoutTrajectoriesThereIsNoAnswer) {
  Forecast f = made();
  f.samples.clear();
  HorizonQuestion ask;
  ask.above = 1;
  try {
    (void)over_horizon(f, 0, ask);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "no_samples");
    EXPECT_EQ(error.status(), ExitStatus::usage);
  }
}

}  // namespace
}  // namespace toto::data
