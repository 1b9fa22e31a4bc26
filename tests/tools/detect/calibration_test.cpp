// SPDX-License-Identifier: Apache-2.0
// What a score means for one series.
#include "tools/detect/calibration.h"

#include <gtest/gtest.h>

#include <cmath>

namespace toto::detect {
namespace {

/// Scores of a model whose probabilities are `factor` times too extreme in bits; 1: a right one.
std::vector<double> scores(std::size_t count, double factor) {
  std::vector<double> all;
  // Evenly spread probabilities in a scrambled order: golden-ratio steps.
  double u = 0.5;
  for (std::size_t i = 0; i < count; ++i) {
    u = std::fmod(u + 0.6180339887498949, 1.0);
    all.push_back(-factor * std::log2(std::max(u, 1e-9)));
  }
  return all;
}

Calibration filled(std::size_t count, double factor, std::size_t limit = 100'000) {
  Calibration calibration(limit);
  for (const double score : scores(count, factor)) calibration.add(score);
  return calibration;
}

TEST(DetectCalibration, BeginsWithTheModelsWord) {
  const Calibration calibration(100);
  for (const double b : {0.0, 1.0, 3.5, 20.0}) {
    EXPECT_DOUBLE_EQ(calibration.probability(b), std::exp2(-b));
  }
}

TEST(DetectCalibration, KeepsARightModel) {
  const Calibration calibration = filled(20'000, 1);
  for (const double b : {1.0, 3.0, 6.0, 10.0}) {
    EXPECT_NEAR(std::log2(calibration.probability(b)), -b, 0.25) << b;
  }
}

TEST(DetectCalibration, TamesAModelThatIsTooSure) {
  // Its scores are three times too high, so 30 bits are as common as 10 should be.
  const Calibration calibration = filled(20'000, 3);
  EXPECT_NEAR(std::log2(calibration.probability(30)), -10, 0.7);
  EXPECT_NEAR(std::log2(calibration.probability(9)), -3, 0.2);
}

TEST(DetectCalibration, SharpensAModelThatIsNotSureEnough) {
  const Calibration calibration = filled(20'000, 0.5);
  EXPECT_NEAR(std::log2(calibration.probability(5)), -10, 0.7);
}

TEST(DetectCalibration, IsNotHiddenByAnomaliesOfThePast) {
  Calibration calibration = filled(2'000, 1);
  for (int i = 0; i < 60; ++i) calibration.add(40);
  // 3 % of the scores are higher, so a share would say 0.03.
  EXPECT_LT(calibration.probability(20), 3e-4);
  EXPECT_LT(calibration.probability(40), 1e-6);
}

TEST(DetectCalibration, FallsWithTheScore) {
  for (const std::size_t count : {0, 5, 19, 20, 21, 99, 500}) {
    const Calibration calibration = filled(count, 2);
    double last = 1.0;
    for (double b = 0.01; b < 60; b += 0.05) {
      const double p = calibration.probability(b);
      ASSERT_LE(p, last) << count << " scores, " << b;
      ASSERT_GT(p, 0);
      last = p;
    }
  }
}

TEST(DetectCalibration, FindsTheScoreOfAProbability) {
  const Calibration calibration = filled(3'000, 2);
  for (const double p : {0.2, 0.01, 1e-4, 1e-8}) {
    const double b = calibration.score_of(p);
    EXPECT_LE(calibration.probability(b), p);
    EXPECT_GT(calibration.probability(b * (1 - 1e-9)), p * (1 - 1e-6));
  }
}

TEST(DetectCalibration, CountsWhatWasHeldBack) {
  // Nine of ten are held back, so an alarm is a tenth as probable.
  Calibration calibration(100'000);
  for (const double score : scores(4'000, 1)) {
    calibration.add(score);
    for (int i = 0; i < 9; ++i) calibration.add_held();
  }
  EXPECT_NEAR(std::log2(calibration.probability(3)), -3 - std::log2(10), 0.2);
  EXPECT_NEAR(std::log2(calibration.probability(8)), -8 - std::log2(10), 0.4);
}

TEST(DetectCalibration, ForgetsTheOldest) {
  Calibration calibration = filled(5'000, 5, 1'000);
  for (const double score : scores(1'000, 1)) calibration.add(score);
  EXPECT_EQ(calibration.size(), 1'000U);
  EXPECT_NEAR(calibration.probability(3), filled(1'000, 1).probability(3), 1e-12);
}

}  // namespace
}  // namespace toto::detect
