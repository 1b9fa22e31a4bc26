// SPDX-License-Identifier: Apache-2.0
// Coherent paths of quantiles: scores, correlations and draws beside a slow way to the same, which
// shares none of their code, and the CPU's vectors beside the double precision of the reference.
#include "backend/knot_paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/knot_kernels.h"

namespace toto {
namespace {

using Nine = std::array<double, 9>;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double phi(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

/// By bisection.
double inverse_phi(double level) {
  double low = -9, high = 9;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (phi(middle) < level ? low : high) = middle;
  }
  return low;
}

/// The quantile function, from what docs/statistics.md says of it.
double quantile_of(const Nine& k, double p, KnotTails tails) {
  if (p > 0.5) {
    return -quantile_of({-k[8], -k[7], -k[6], -k[5], -k[4], -k[3], -k[2], -k[1], -k[0]}, 1 - p,
                        tails);
  }
  if (p < 0.1) {
    if (tails == KnotTails::clamped) return k[0];
    if (tails == KnotTails::normal) return k[4] + (k[0] - k[4]) * inverse_phi(p) / inverse_phi(0.1);
    return k[0] + (k[1] - k[0]) * std::log(p / 0.1) / std::log(2);
  }
  int i = 0;
  while (i < 7 && p > 0.1 * (i + 2)) ++i;
  const double share = (p - 0.1 * (i + 1)) / 0.1;
  return k[i] + (k[i + 1] - k[i]) * share;
}

std::vector<Nine> shapes() {
  std::mt19937 dice(5);
  std::normal_distribution<double> normal;
  std::vector<Nine> all = {{1, 2, 3, 4, 5, 6, 7, 8, 9},
                           {-1, -0.5, -0.2, -0.1, 0, 0.1, 0.2, 0.5, 1},
                           {1000, 1000.1, 1000.4, 1000.5, 1001, 1003, 1003.5, 1004, 1020}};
  for (int i = 0; i < 20; ++i) {
    Nine k;
    for (double& x : k) x = 50 + 3 * normal(dice);
    std::ranges::sort(k);
    all.push_back(k);
  }
  return all;
}

TEST(KnotPaths, ScoresAreThoseOfTheQuantileFunction) {
  for (const Nine& k : shapes()) {
    for (int i = 1; i < 200; ++i) {
      const double p = i / 200.0;
      const double x = quantile_of(k, p, KnotTails::exponential);
      EXPECT_NEAR(paths::knot_score(k, x), inverse_phi(p), 1e-9) << p;
    }
    for (const double z : {-4.9, -3.0, 3.0, 4.9}) {
      EXPECT_NEAR(paths::knot_score(k, quantile_of(k, phi(z), KnotTails::exponential)), z, 1e-6);
    }
    EXPECT_EQ(paths::knot_score(k, -1e30), -5);
    EXPECT_EQ(paths::knot_score(k, 1e30), 5);
  }
}

TEST(KnotPaths, WhereThereIsNoWidthAnObservationIsTheMiddleOfItsMass) {
  Nine k;
  k.fill(3);
  EXPECT_NEAR(paths::knot_score(k, 3), 0, 1e-12);
  EXPECT_NEAR(paths::knot_score(k, 2), inverse_phi(0.05), 1e-9);
  EXPECT_NEAR(paths::knot_score(k, 4), inverse_phi(0.95), 1e-9);
  k = {1, 2, 3, 5, 5, 5, 7, 8, 9};
  EXPECT_NEAR(paths::knot_score(k, 5), inverse_phi(0.5), 1e-9);
  EXPECT_TRUE(std::isnan(paths::knot_score(k, kNaN)));
  k[8] = kNaN;
  EXPECT_TRUE(std::isnan(paths::knot_score(k, 5)));
}

/// Scores of errors that carry over by a factor from step to step of a patch.
std::vector<double> carried(double factor, int tokens, int patch, std::uint32_t seed) {
  std::mt19937 dice(seed);
  std::normal_distribution<double> normal;
  std::vector<double> scores;
  for (int i = 0; i < tokens; ++i) {
    double error = 0, variance = 0;
    for (int s = 0; s < patch; ++s) {
      error = factor * error + normal(dice);
      variance = factor * factor * variance + 1;
      scores.push_back(error / std::sqrt(variance));
    }
  }
  return scores;
}

/// Correlations of such errors at steps s and s + 1, counted from 0.
double correlation(double factor, int s) {
  double before = 0;
  for (int i = 0; i <= s; ++i) before = factor * factor * before + 1;
  return factor * std::sqrt(before / (factor * factor * before + 1));
}

TEST(KnotPaths, CorrelationsAreThoseOfTheScores) {
  constexpr int kPatch = 32;
  for (const double factor : {0.0, 0.5, 0.9, 1.0}) {
    std::vector<float> rho(kPatch);
    const std::vector<double> scores = carried(factor, 4000, kPatch, 7);
    paths::knot_correlations(scores.data(), 4000, kPatch, rho.data());
    for (int s = 0; s + 1 < kPatch; ++s) {
      EXPECT_NEAR(rho[s], correlation(factor, s), 0.05 * (1 - factor * factor) + 0.03) << s;
    }
    // Goes on as it ends: that of half a patch later.
    EXPECT_NEAR(rho[kPatch - 1], correlation(factor, kPatch + kPatch / 2),
                factor == 0 ? 0.06 : 0.02);
  }
}

TEST(KnotPaths, FewScoresAreDrawnTowardsTheirMean) {
  // Pairs of one patch of three steps: (1, 1) and (1, -1).
  const std::vector<double> scores = {1, 1, -1};
  std::vector<float> rho(3);
  paths::knot_correlations(scores.data(), 1, 3, rho.data());
  const double mean = (1.0 - 1.0) / (2 + 8);
  EXPECT_NEAR(rho[0], (1 + 8 * mean) / (1 + 8), 1e-6);
  EXPECT_EQ(rho[1], 0);  // never below 0
  EXPECT_EQ(rho[2], 0);
  // Two patches, the second without its last step: n = 1.5.
  const std::vector<double> gaps = {1, 2, 1, 2, 1, kNaN};
  paths::knot_correlations(gaps.data(), 2, 3, rho.data());
  const double first = (2.0 + 2.0) / std::sqrt(5.0 * 5.0), second = 1;
  const double m = (2 * first + second) / (3 + 8);
  const double prior = 8 * (1 - m * m) * (1 - m * m);
  EXPECT_NEAR(rho[0], (1.5 * first + prior * m) / (1.5 + prior), 1e-6);
  EXPECT_NEAR(rho[1], (1.5 * second + prior * m) / (1.5 + prior), 1e-6);
  EXPECT_NEAR(rho[2], rho[1], 1e-6);
}

TEST(KnotPaths, NothingSeenIsNothingJoined) {
  std::vector<float> rho(8, 9.0F);
  paths::knot_correlations(nullptr, 0, 8, rho.data());
  for (const float r : rho) EXPECT_EQ(r, 0);
  const std::vector<double> same(4 * 8, 0.0);  // what is known for certain
  paths::knot_correlations(same.data(), 4, 8, rho.data());
  for (const float r : rho) EXPECT_EQ(r, 0);
  const std::vector<double> alike(4 * 8, 1.0);
  paths::knot_correlations(alike.data(), 4, 8, rho.data());
  for (const float r : rho) {
    EXPECT_GT(r, 0.7);
    EXPECT_LE(r, 0.999F);
  }
  paths::knot_correlations(alike.data(), 4, 1, rho.data());
  EXPECT_EQ(rho[0], 0);
}

/// As a device finds them: in float32, the factor to 24 bits.
std::vector<float> rounded_correlations(const std::vector<double>& scores, int tokens, int patch) {
  const std::vector<float> rounded(scores.begin(), scores.end());
  std::vector<float> rho(static_cast<std::size_t>(patch));
  std::vector<paths::Pairs<float>> pairs;
  float all = 0, weights = 0;
  for (int s = 0; s + 1 < patch; ++s) {
    paths::PairSums<float> sums;
    for (int i = 0; i < tokens; ++i) sums.add(rounded[i * patch + s], rounded[i * patch + s + 1]);
    pairs.push_back(sums.pairs());
    all += pairs.back().count * pairs.back().found;
    weights += pairs.back().count;
  }
  const paths::Prior<float> prior(all, weights, patch);
  for (int s = 0; s + 1 < patch; ++s) rho[s] = prior.drawn(pairs[s].found);
  rho[patch - 1] = paths::Prior<float>::bounded(
      paths::rho_afterwards<float>(rho.data(), patch, [](const auto& test) {
        float low = 0, high = 1;
        for (int i = 0; i < 24; ++i) {
          const float middle = (low + high) / 2;
          (test(middle) ? high : low) = middle;
        }
        return low;
      }));
  return rho;
}

TEST(KnotPaths, Float32IsEnoughForCorrelations) {
  for (const int patch : {9, 32, 64}) {
    for (const int tokens : {1, 10, 31}) {
      for (const double factor : {0.0, 0.3, 0.9, 0.99, 1.0}) {
        std::vector<double> scores = carried(factor, tokens, patch, 3);
        scores[scores.size() / 2] = kNaN;
        std::vector<float> exact(static_cast<std::size_t>(patch));
        paths::knot_correlations(scores.data(), tokens, patch, exact.data());
        const std::vector<float> rounded = rounded_correlations(scores, tokens, patch);
        for (int s = 0; s + 1 < patch; ++s) ASSERT_NEAR(rounded[s], exact[s], 2e-6) << s;
        ASSERT_NEAR(rounded[patch - 1], exact[patch - 1], 1e-4)
            << patch << ", " << tokens << ", " << factor;
      }
    }
  }
}

class KnotKernels : public testing::TestWithParam<cpu::Isa> {
 protected:
  const cpu::KnotKernels& kernels_ = cpu::knot_kernels(GetParam());
};

TEST_P(KnotKernels, NormalsAreThoseOfTheLevels) {
  constexpr std::size_t kCount = 100'003;
  std::vector<float> z(kCount);
  CallSlice s;
  s.seed = 0x123456789ABCDEFU;
  s.key = 0xFEDCBA987654U;
  kernels_.chain({s.seed, s.key, 3, 0, 17, 0.0F, 1.0F}, nullptr, kCount, z.data());
  double squares = 0;
  for (std::size_t n = 0; n < kCount; ++n) {
    const double exact = paths::knot_normal(s, 3, static_cast<std::int32_t>(n), 17);
    ASSERT_NEAR(z[n], exact, 1e-6 + 3e-6 * std::abs(exact)) << n;
    squares += exact * exact;
  }
  EXPECT_NEAR(squares / kCount, 1, 0.02);
}

TEST_P(KnotKernels, AChainGoesOnFromTheStepBefore) {
  std::vector<float> before(37), z(37);
  CallSlice s;
  s.seed = 4;
  s.key = 5;
  for (std::size_t n = 0; n < 37; ++n) before[n] = 0.25F * static_cast<float>(n) - 4;
  kernels_.chain({4, 5, 0, 100, 2, 0.8F, 0.6F}, before.data(), 37, z.data());
  for (std::size_t n = 0; n < 37; ++n) {
    const double fresh = paths::knot_normal(s, 0, static_cast<std::int32_t>(100 + n), 2);
    EXPECT_NEAR(z[n], 0.8 * before[n] + 0.6 * fresh, 1e-5) << n;
  }
}

TEST_P(KnotKernels, WhatIsBesideATrajectoryChangesNoBit) {
  std::vector<float> all(64), part(13);
  kernels_.chain({9, 8, 7, 0, 6, 0.0F, 1.0F}, nullptr, 64, all.data());
  kernels_.chain({9, 8, 7, 21, 6, 0.0F, 1.0F}, nullptr, 13, part.data());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + 21));
  const std::vector<float> knots = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  kernels_.at_scores(knots.data(), 1, KnotTails::exponential, 64, all.data());
  kernels_.at_scores(knots.data(), 1, KnotTails::exponential, 13, part.data());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + 21));
}

TEST_P(KnotKernels, ScoresBecomeQuantiles) {
  std::vector<float> scores;
  for (int i = -8000; i <= 8000; ++i) scores.push_back(static_cast<float>(i) / 1000);
  for (const Nine& k : shapes()) {
    std::vector<float> knots(9 * 4, -1.0F);
    Nine rounded;
    for (std::size_t q = 0; q < 9; ++q) rounded[q] = knots[4 * q] = static_cast<float>(k[q]);
    const double spread = rounded[8] - rounded[0];
    const double size = std::max(std::abs(rounded[8]), std::abs(rounded[0]));
    for (const KnotTails tails : {KnotTails::clamped, KnotTails::exponential, KnotTails::normal}) {
      std::vector<float> found = scores;
      kernels_.at_scores(knots.data(), 4, tails, found.size(), found.data());
      for (std::size_t i = 0; i < found.size(); ++i) {
        const double z = scores[i];
        // The smaller probability is exact.
        const double exact =
            z < 0 ? quantile_of(rounded, phi(z), tails)
                  : -quantile_of({-rounded[8], -rounded[7], -rounded[6], -rounded[5], -rounded[4],
                                  -rounded[3], -rounded[2], -rounded[1], -rounded[0]},
                                 phi(-z), tails);
        ASSERT_NEAR(found[i], exact, 1e-5 * spread + 2e-7 * size) << z;
        if (i > 0) {
          ASSERT_GE(found[i], found[i - 1] - 2e-7 * size - 1e-6 * spread) << z;
        }
      }
      if (tails != KnotTails::clamped) continue;
      EXPECT_EQ(found.front(), knots[0]);
      EXPECT_EQ(found.back(), knots[32]);
    }
  }
}

TEST_P(KnotKernels, TailsWithoutWidthAreClampedAndNaNIsNaN) {
  const std::vector<float> knots = {2, 2, 3, 4, 5, 6, 7, 8, 8};
  std::vector<float> z = {-6, -3, 3, 6, 0, std::numeric_limits<float>::quiet_NaN()};
  kernels_.at_scores(knots.data(), 1, KnotTails::exponential, z.size(), z.data());
  EXPECT_EQ(std::vector<float>(z.begin(), z.begin() + 5), (std::vector<float>{2, 2, 8, 8, 5}));
  EXPECT_TRUE(std::isnan(z[5]));
  const float largest = std::numeric_limits<float>::max();
  const std::vector<float> wide = {-largest, -1, 0, 0, 0, 0, 0, 1, largest};
  z = {-8, 8};
  kernels_.at_scores(wide.data(), 1, KnotTails::exponential, 2, z.data());
  EXPECT_EQ(z, (std::vector<float>{-largest, largest}));
}

INSTANTIATE_TEST_SUITE_P(Isas, KnotKernels, testing::ValuesIn(cpu::available_isas()),
                         [](const auto& one) { return std::string(cpu::isa_name(one.param)); });

}  // namespace
}  // namespace toto
