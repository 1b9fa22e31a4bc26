// SPDX-License-Identifier: Apache-2.0
// Luck is told from skill: among many candidates without skill the best one is rarely taken for
// better, and one with skill is found among them.
#include "tools/backtest/reality_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace toto::backtest {
namespace {

/// `candidates` that share half of their noise, as the same windows make them do.
std::vector<std::vector<double>> leads(std::mt19937& random, std::size_t candidates,
                                       std::size_t origins) {
  std::normal_distribution<double> noise;
  std::vector<double> shared(origins);
  for (double& x : shared) x = noise(random);
  std::vector<std::vector<double>> all(candidates, shared);
  for (auto& one : all) {
    for (double& x : one) x += noise(random);
  }
  return all;
}

TEST(RealityCheck, TheBestOfManyWithoutSkillIsRarelyTakenForBetter) {
  std::mt19937 random(1);
  constexpr int kTrials = 100;
  int taken = 0;
  int taken_alone = 0;
  for (int i = 0; i < kTrials; ++i) {
    const auto all = leads(random, 40, 60);
    taken += reality_check(all, 0) <= 0.05 ? 1 : 0;
    for (const auto& one : all) {
      if (reality_check({one}, 0) > 0.05) continue;
      ++taken_alone;  // each by itself: some candidate nearly always looks good
      break;
    }
  }
  EXPECT_LE(taken, 13);  // 5 expected; the resampled maximum of 60 origins is a little too small
  EXPECT_GE(taken_alone, 30);
}

TEST(RealityCheck, SkillIsFoundAmongMany) {
  std::mt19937 random(2);
  int found = 0;
  for (int i = 0; i < 20; ++i) {
    auto all = leads(random, 40, 60);
    for (double& x : all[7]) x += 1;
    found += reality_check(all, 0) <= 0.05 ? 1 : 0;
  }
  EXPECT_GE(found, 18);
}

TEST(RealityCheck, OverlapMakesItCautious) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise;
  int plain = 0;
  int blocks = 0;
  for (int i = 0; i < 100; ++i) {
    std::vector<double> steps(64);
    for (double& x : steps) x = noise(random);
    std::vector<double> lead;  // each is a sum of four
    for (std::size_t w = 0; w + 4 <= steps.size(); ++w) {
      lead.push_back(steps[w] + steps[w + 1] + steps[w + 2] + steps[w + 3]);
    }
    plain += reality_check({lead}, 0) <= 0.05 ? 1 : 0;
    blocks += reality_check({lead}, 3) <= 0.05 ? 1 : 0;
  }
  EXPECT_GT(plain, blocks);
}

TEST(RealityCheck, SaysNothingByFew) {
  EXPECT_TRUE(std::isnan(reality_check({std::vector<double>(9, 1.0)}, 0)));
  EXPECT_FALSE(std::isnan(reality_check({std::vector<double>(10, 1.0)}, 0)));
  EXPECT_TRUE(std::isnan(reality_check({std::vector<double>(14, 1.0)}, 4)));
  EXPECT_EQ(reality_check({std::vector<double>(20, 0.0)}, 0), 1);
  EXPECT_EQ(reality_check({std::vector<double>(20, -1.0)}, 0), 1);
  EXPECT_EQ(reality_check({}, 0), 1);
}

TEST(RealityCheck, TheSameAgain) {
  std::mt19937 random(4);
  const auto all = leads(random, 5, 30);
  EXPECT_EQ(reality_check(all, 1), reality_check(all, 1));
}

}  // namespace
}  // namespace toto::backtest
