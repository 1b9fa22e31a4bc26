// SPDX-License-Identifier: Apache-2.0
// Exact statistics of mixtures against numerical integration, against draws, and at the limits.
#include "statistics/mixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "core/draw.h"
#include "support/mixture_cases.h"
#include "support/mixture_oracle.h"
#include "support/sample_count.h"

namespace toto {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
const std::vector<double> kLevels = {1e-6, 1e-4, 0.01, 0.1, 0.25, 0.3,      0.4,     0.5,
                                     0.6,  0.7,  0.75, 0.9, 0.99, 1 - 1e-4, 1 - 1e-6};

double ulp(double x) { return std::nextafter(std::fabs(x), kInf) - std::fabs(x); }

Mixture make(const MixtureParameters& p) {
  Mixture mixture(p.size());
  p.assign_to(mixture);
  return mixture;
}

std::vector<double> quantiles(const Mixture& mixture, const std::vector<double>& levels) {
  std::vector<double> out(levels.size());
  mixture.quantiles(levels, out);
  return out;
}

// --- against integration ---

TEST(MixtureOracle, AgreesWithClosedForms) {
  for (const double x : {0.0, 0.1, 1.0, 5.0, 100.0, 1e6}) {
    const double s = std::sqrt(2 + x * x);
    const OracleValue two = MixtureOracle({{2}, {0}, {1}, {1}}).at(x);
    EXPECT_NEAR(static_cast<double>(two.upper) * s * (s + x), 1, 1e-14) << x;
    const OracleValue normal = MixtureOracle({{1e20}, {0}, {1}, {1}}).at(std::min(x, 10.0));
    EXPECT_NEAR(static_cast<double>(normal.upper) /
                    (0.5 * std::erfc(std::min(x, 10.0) / std::numbers::sqrt2)),
                1, 1e-13)
        << x;
  }
}

TEST(Mixture, CdfAndDensityAgreeWithIntegration) {
  for (const auto& [name, p] : mixture_cases()) {
    const Mixture mixture = make(p);
    const MixtureOracle oracle(p);
    for (const double q : kLevels) {
      const double x = mixture.quantile(q);
      const OracleValue exact = oracle.at(x);
      // A last digit of x is worth this much of the cdf.
      const double slack = static_cast<double>(exact.pdf) * ulp(x);
      EXPECT_NEAR(mixture.cdf(x), static_cast<double>(exact.lower),
                  1e-13 * static_cast<double>(exact.lower) + slack)
          << name << " " << q;
      EXPECT_NEAR(mixture.upper(x), static_cast<double>(exact.upper),
                  1e-13 * static_cast<double>(exact.upper) + slack)
          << name << " " << q;
      EXPECT_NEAR(mixture.pdf(x) / static_cast<double>(exact.pdf), 1, 1e-6) << name << " " << q;
    }
  }
}

/// Whether the exact quantile lies within `reach` of x; in a flat gap, whether x is the quantile of
/// a level that differs by rounding.
testing::AssertionResult encloses(const MixtureOracle& oracle, double q, double x, double reach) {
  constexpr double kEps = std::numeric_limits<double>::epsilon();
  const OracleValue left = oracle.at(static_cast<long double>(x) - reach);
  const OracleValue right = oracle.at(static_cast<long double>(x) + reach);
  const double level = std::min(q, 1 - q);
  const double low = level * (1 - 4 * kEps);
  const double high = level * (1 + 4 * kEps);
  const bool good =
      q < 0.5 ? left.lower <= high && low <= right.lower : right.upper <= high && low <= left.upper;
  if (good) return testing::AssertionSuccess();
  return testing::AssertionFailure() << x << " misses the quantile by more than " << reach;
}

// The unit of accuracy is the width w = F (1 - F) / f that the mixture has at the quantile: the
// scale of a lone component, wider in its tails and in gaps, narrower in spikes.
TEST(Mixture, QuantilesAgreeWithIntegration) {
  double worst = 0;
  for (const auto& [name, p] : mixture_cases()) {
    const Mixture mixture = make(p);
    const MixtureOracle oracle(p);
    const std::vector<double> found = quantiles(mixture, kLevels);
    for (std::size_t i = 0; i < kLevels.size(); ++i) {
      const double q = kLevels[i];
      const double x = found[i];
      const OracleValue exact = oracle.at(x);
      const auto width = static_cast<double>(exact.lower * exact.upper / exact.pdf);
      const double rounding = 4 * ulp(x) + 1e-14 * width;
      EXPECT_TRUE(encloses(oracle, q, x, 1e-11 * width + rounding)) << name << ", level " << q;
      const long double miss = q < 0.5 ? exact.lower - q : (1 - q) - exact.upper;
      const double error = std::fabs(static_cast<double>(miss / exact.pdf));
      worst = std::max(worst, (error - rounding) / width);
    }
  }
  RecordProperty("largest_error_in_widths", std::to_string(worst * 1e12) + "e-12");
}

// The acceptance figure, in the plainest unit: 10^-6 of the smallest scale.
TEST(Mixture, QuantilesOfOrdinaryMixturesAreGoodToAMillionthOfTheSmallestScale) {
  for (std::uint64_t seed = 10; seed < 20; ++seed) {
    const MixtureParameters p = network_mixture(seed, 24);
    const MixtureOracle oracle(p);
    const double scale = *std::min_element(p.scale.begin(), p.scale.end());
    for (const double q : {0.01, 0.1, 0.5, 0.8, 0.975}) {
      EXPECT_TRUE(encloses(oracle, q, make(p).quantile(q), 1e-6 * scale)) << seed << " " << q;
    }
  }
}

// --- against draws ---

TEST(Mixture, QuantilesAgreeWithDraws) {
  for (const auto& [name, p] : mixture_cases()) {
    const Mixture mixture = make(p);
    const std::vector<double> found = quantiles(mixture, kLevels);
    const int count = static_cast<int>(p.size());
    const double total = total_probability(p.probability.data(), 1, count);
    std::vector<double> below(kLevels.size());
    for (std::uint32_t i = 0; i < kDraws; ++i) {
      const double x = draw_mixture(p.df.data(), p.loc.data(), p.scale.data(), p.probability.data(),
                                    1, count, total, draw_words(4, {.sample = i}));
      const auto at = std::lower_bound(found.begin(), found.end(), x) - found.begin();
      if (at < static_cast<std::ptrdiff_t>(below.size())) below[static_cast<std::size_t>(at)] += 1;
    }
    double so_far = 0;
    for (std::size_t i = 0; i < kLevels.size(); ++i) {
      so_far += below[i];  // draws at or below the quantile: binomial
      const double n = kDraws;
      const double error = std::sqrt(n * kLevels[i] * (1 - kLevels[i]));
      EXPECT_NEAR(so_far, n * kLevels[i], 4 * error + 1) << name << ", level " << kLevels[i];
    }
  }
}

// --- moments ---

TEST(Mixture, MeanIsTheSumOfProbabilityTimesLocation) {
  EXPECT_EQ(make({{3, 5}, {2, -4}, {1, 9}, {0.25, 0.75}}).mean(), -2.5);
  EXPECT_EQ(make({{3, 5}, {2, -4}, {1, 9}, {1, 3}}).mean(), -10);  // as given: not divided
  EXPECT_EQ(make({{2}, {7}, {1}, {1}}).mean(), 7);
}

TEST(Mixture, VarianceAddsSpreadWithinAndBetween) {
  EXPECT_DOUBLE_EQ(make({{6}, {5}, {2}, {1}}).variance(), 6);
  EXPECT_DOUBLE_EQ(make({{6, 4}, {-1, 3}, {2, 1}, {0.5, 0.5}}).variance(), 0.5 * 6 + 0.5 * 2 + 4);
  EXPECT_DOUBLE_EQ(make({{6, 4}, {-1, 3}, {2, 1}, {2, 2}}).variance(), 0.5 * 6 + 0.5 * 2 + 4);
  EXPECT_DOUBLE_EQ(make({{6, 6}, {1e9, 1e9 + 2}, {2, 2}, {0.5, 0.5}}).variance(), 7);
  EXPECT_EQ(make({{kInf}, {5}, {2}, {1}}).variance(), 4);
  EXPECT_EQ(make({{2, 9}, {0, 0}, {1, 1}, {1e-9, 1}}).variance(), kInf);
  EXPECT_EQ(make({{2, 9}, {0, 0}, {1, 1}, {0, 1}}).variance(), 9.0 / 7);
}

/// Where there is a standard deviation it fits the band between the quantiles 0.1 and 0.9; next to
/// df 2 there is none.
TEST(Mixture, StandardDeviationAgreesWithTheBandOrIsAbsent) {
  constexpr double kNormal = 2.5631031310892007;  // between the same quantiles of the normal
  for (const double df : {2.0, 2.0001, 2.01, 2.05, 2.1, 2.5, 3.0, 5.0, 30.0}) {
    const Mixture mixture = make({{df}, {5}, {2}, {1}});
    const double std = mixture.standard_deviation();
    if (df < 2.07) {
      EXPECT_TRUE(std::isnan(std)) << df;
      continue;
    }
    EXPECT_EQ(std, std::sqrt(mixture.variance())) << df;
    EXPECT_LT(std / ((mixture.quantile(0.9) - mixture.quantile(0.1)) / kNormal), 4) << df;
  }
  // A rare component that is wide, but has a variance, is no reason to say nothing.
  const Mixture spikes = make({{30, 30}, {0, 0}, {1, 100}, {0.95, 0.05}});
  EXPECT_EQ(spikes.standard_deviation(), std::sqrt(spikes.variance()));
  // One near df 2 that hardly counts is none either.
  const Mixture mostly = make({{2.01, 9}, {0, 0}, {1, 1}, {1e-3, 1}});
  EXPECT_EQ(mostly.standard_deviation(), std::sqrt(mostly.variance()));
  EXPECT_TRUE(std::isnan(make({{2, 9}, {0, 0}, {1, 1}, {1e-9, 1}}).standard_deviation()));
}

// --- to and from the standard normal ---

TEST(Mixture, NormalScoresAreThoseOfTheDistribution) {
  const Mixture normal = make({{kInf}, {3}, {2}, {1}});
  for (const double z : {-8.0, -3.0, -0.1, 0.0, 1e-9, 0.7, 2.0, 6.0}) {
    EXPECT_NEAR(normal.normal_score(3 + 2 * z), z, 1e-9) << z;
    EXPECT_NEAR(normal.at_normal_score(z), 3 + 2 * z, 1e-4) << z;
  }
  EXPECT_EQ(normal.normal_score(1e30), 8.3);
  EXPECT_EQ(normal.normal_score(-1e30), -8.3);
  EXPECT_TRUE(std::isnan(normal.normal_score(kNaN)));
  EXPECT_TRUE(std::isnan(make({{3}, {0}, {1}, {0}}).at_normal_score(0)));
}

// --- quantiles at the limits ---

TEST(Mixture, QuantilesOfOneComponentAreStudents) {
  // Of the double 0.975, by mpmath at 40 digits; df 2 in closed form.
  EXPECT_NEAR(make({{3}, {0}, {1}, {1}}).quantile(0.975), 3.1824463052837084, 1e-13);
  EXPECT_NEAR(make({{10}, {0}, {1}, {1}}).quantile(0.975), 2.2281388519862742, 1e-13);
  EXPECT_NEAR(make({{30}, {0}, {1}, {1}}).quantile(0.975), 2.0422724563012379, 1e-13);
  EXPECT_NEAR(make({{kInf}, {0}, {1}, {1}}).quantile(0.975), 1.9599639845400539, 1e-13);
  for (const double q : kLevels) {
    const double exact = (2 * q - 1) / std::sqrt(2 * q * (1 - q));
    EXPECT_NEAR(make({{2}, {0}, {1}, {1}}).quantile(q), exact, 1e-12 * std::fabs(exact)) << q;
    EXPECT_NEAR(make({{2}, {3}, {1e-20}, {1}}).quantile(q), 3, 1e-15) << q;
  }
  EXPECT_EQ(make({{5}, {17}, {2}, {1}}).quantile(0.5), 17);
}

TEST(Mixture, SymmetricMixturesHaveTheirCentreAsMedian) {
  EXPECT_NEAR(make({{3, 3}, {-4, 4}, {1, 1}, {0.5, 0.5}}).quantile(0.5), 0, 1e-13);
  EXPECT_NEAR(make({{3, 3, 9}, {-1e6, 1e6, 0}, {1, 1, 5}, {1, 1, 1e-9}}).quantile(0.5), 0, 1e-5);
}

// Where the cdf is flat to the last bit, anything in the gap is a median.
TEST(Mixture, FlatGapsAreAnsweredInsideTheGap) {
  const Mixture mixture = make({{1e8, 1e8}, {-1e6, 1e6}, {1, 1}, {0.5, 0.5}});
  const double median = mixture.quantile(0.5);
  EXPECT_GT(median, -1e6 + 5);
  EXPECT_LT(median, 1e6 - 5);
  EXPECT_NEAR(mixture.quantile(0.25), -1e6, 1e-9);
  EXPECT_NEAR(mixture.quantile(0.75), 1e6, 1e-9);
}

TEST(Mixture, EachLevelIsAnsweredOnItsOwn) {
  for (const auto& [name, p] : mixture_cases()) {
    const Mixture mixture = make(p);
    const std::vector<double> together = quantiles(mixture, kLevels);
    for (std::size_t i = 0; i < kLevels.size(); ++i) {
      EXPECT_EQ(mixture.quantile(kLevels[i]), together[i]) << name << ", level " << kLevels[i];
    }
  }
}

TEST(Mixture, QuantilesAscend) {
  std::vector<double> levels;
  for (int i = 1; i < 4000; ++i) levels.push_back(i / 4000.0);
  for (const auto& [name, p] : mixture_cases()) {
    const std::vector<double> found = quantiles(make(p), levels);
    EXPECT_TRUE(std::is_sorted(found.begin(), found.end())) << name;
  }
  const Mixture mixture = make(network_mixture(1, 24));
  const std::vector<double> close = {0.3, std::nextafter(0.3, 1), 0.3 + 1e-15, 0.3 + 1e-12};
  const std::vector<double> found = quantiles(mixture, close);
  EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
  EXPECT_LT(found.front(), found.back());
}

TEST(Mixture, LevelsOutsideTheOpenIntervalAreInfinite) {
  const Mixture mixture = make({{3}, {0}, {1}, {1}});
  EXPECT_EQ(mixture.quantile(0), -kInf);
  EXPECT_EQ(mixture.quantile(1), kInf);
  EXPECT_TRUE(std::isnan(mixture.quantile(kNaN)));
  EXPECT_EQ(mixture.cdf(-kInf), 0);
  EXPECT_EQ(mixture.cdf(kInf), 1);
  EXPECT_EQ(mixture.upper(kInf), 0);
  EXPECT_TRUE(std::isnan(mixture.cdf(kNaN)));
}

TEST(Mixture, InvalidParametersGiveNaN) {
  const MixtureParameters bad[] = {
      {{kNaN}, {0}, {1}, {1}}, {{1.9}, {0}, {1}, {1}},
      {{3}, {kNaN}, {1}, {1}}, {{3}, {kInf}, {1}, {1}},
      {{3}, {0}, {0}, {1}},    {{3}, {0}, {-1}, {1}},
      {{3}, {0}, {kInf}, {1}}, {{3}, {0}, {kNaN}, {1}},
      {{3}, {0}, {1}, {kNaN}}, {{3}, {0}, {1}, {-1}},
      {{3}, {0}, {1}, {0}},    {{}, {}, {}, {}},
      {{3}, {0}, {1}, {kInf}}, {{3, 3}, {0, 0}, {1, 1}, {1, kNaN}},
  };
  for (const MixtureParameters& p : bad) {
    const Mixture mixture = make(p);
    EXPECT_TRUE(std::isnan(mixture.mean()));
    EXPECT_TRUE(std::isnan(mixture.variance()));
    EXPECT_TRUE(std::isnan(mixture.cdf(0)));
    EXPECT_TRUE(std::isnan(mixture.pdf(0)));
    EXPECT_TRUE(std::isnan(mixture.quantile(0.5)));
    EXPECT_TRUE(std::isnan(mixture.quantile(0)));
  }
}

// One Mixture serves many steps: nothing of the last one is left behind.
TEST(Mixture, ReassigningLeavesNothingBehind) {
  Mixture reused(24);
  for (const auto& [name, p] : mixture_cases()) {
    p.assign_to(reused);
    const Mixture fresh = make(p);
    EXPECT_EQ(quantiles(reused, kLevels), quantiles(fresh, kLevels)) << name;
    EXPECT_EQ(reused.mean(), fresh.mean()) << name;
    EXPECT_EQ(reused.variance(), fresh.variance()) << name;
  }
}

// Order of the components does not matter but for the last bits of sums.
TEST(Mixture, ManyComponentsInAnyOrder) {
  MixtureParameters p = network_mixture(8, 1024, 3);
  const std::vector<double> found = quantiles(make(p), kLevels);
  for (std::vector<double>* part : {&p.df, &p.loc, &p.scale, &p.probability}) {
    std::reverse(part->begin(), part->end());
  }
  const std::vector<double> reversed = quantiles(make(p), kLevels);
  for (std::size_t i = 0; i < kLevels.size(); ++i) {
    EXPECT_NEAR(found[i], reversed[i], 1e-11 * (1 + std::fabs(found[i]))) << kLevels[i];
  }
}

// Thousands of mixtures with parameters over tens of orders of magnitude: always an answer, in
// order, and the cdf passes the level within a few last digits of it.
TEST(Mixture, WildMixturesAreAnswered) {
  const std::uint32_t rounds = kDraws / 500;
  for (std::uint32_t r = 0; r < rounds; ++r) {
    MixtureParameters p;
    const PhiloxWords shape = draw_words(6, {.sample = r});
    const int count = 1 + static_cast<int>(shape.x[0] % 32);
    const double orders = shape.x[1] % 30;  // of magnitude, about 68 % within
    for (int k = 0; k < count; ++k) {
      const auto normal = [&](std::uint32_t i) {
        return draw_student_t(
            1e30,
            draw_words(6, {.variate = static_cast<std::uint32_t>(k), .sample = r, .step = 1 + i}));
      };
      p.df.push_back(2 + std::pow(10, 2 * normal(0)));
      p.loc.push_back(10 * normal(1));
      p.scale.push_back(std::pow(10, orders / 2 * normal(2)));
      p.probability.push_back(std::pow(10, orders / 4 * normal(3)));
    }
    const Mixture mixture = make(p);
    const std::vector<double> found = quantiles(mixture, kLevels);
    ASSERT_TRUE(std::is_sorted(found.begin(), found.end())) << r;
    for (std::size_t i = 0; i < kLevels.size(); ++i) {
      const double q = kLevels[i];
      const double x = found[i];
      ASSERT_TRUE(std::isfinite(x)) << r << " " << q;
      const double width = mixture.cdf(x) * mixture.upper(x) / mixture.pdf(x);
      const double reach = (width < 1e30 ? 1e-10 * width : 0) + 4 * ulp(x);
      const double slack = 1e-14;  // of the cdf
      if (q < 0.5) {
        ASSERT_LE(mixture.cdf(x - reach), q * (1 + slack)) << r << " " << q;
        ASSERT_GE(mixture.cdf(x + reach), q * (1 - slack)) << r << " " << q;
      } else {
        ASSERT_GE(mixture.upper(x - reach), (1 - q) * (1 - slack)) << r << " " << q;
        ASSERT_LE(mixture.upper(x + reach), (1 - q) * (1 + slack)) << r << " " << q;
      }
    }
  }
}

}  // namespace
}  // namespace toto
