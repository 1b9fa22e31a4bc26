// SPDX-License-Identifier: Apache-2.0
// Draws follow the exact law: Kolmogorov-Smirnov distance and tail counts for 10^6 draws of each
// parameter set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "core/draw.h"
#include "core/student_t.h"
#include "support/sample_count.h"

namespace toto {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Law {
  std::string name;
  std::vector<double> df, loc, scale, probability;
};

void PrintTo(const Law& law, std::ostream* out) { *out << law.name; }

/// A mixture as a network gives it: 24 overlapping components, one step in four of them light.
Law network_like(std::uint64_t seed, int count) {
  Law law{"network_" + std::to_string(seed), {}, {}, {}, {}};
  for (int k = 0; k < count; ++k) {
    const PhiloxWords w = draw_words(seed, {.sample = static_cast<std::uint32_t>(k)});
    law.df.push_back(2 + -2 * std::log(uniform32(w.x[0])));
    law.loc.push_back(3 * uniform32(w.x[1]) - 1.5);
    law.scale.push_back(0.05 + uniform32(w.x[2]));
    law.probability.push_back(w.x[3] % 4 == 0 ? 1e-4 : uniform32(w.x[3]) / 12);
  }
  return law;
}

std::vector<Law> laws() {
  std::vector<Law> all = {
      {"df_2", {2}, {0}, {1}, {1}},
      {"df_just_above_2", {2.0000002}, {0}, {1}, {1}},
      {"df_2_5", {2.5}, {-3}, {2}, {1}},
      {"df_4", {4}, {0}, {1}, {1}},
      {"df_39_5", {39.5}, {0}, {1}, {1}},
      {"df_150", {150}, {0}, {1}, {1}},
      {"df_1e8", {1e8}, {0}, {1}, {1}},
      {"the_normal", {1e30}, {0}, {1}, {1}},
      {"tiny_scale", {3}, {1e-28}, {1e-30}, {1}},
      {"huge_scale", {3}, {-1e30}, {1e30}, {1}},
      {"small_scale_on_a_high_level", {5}, {1e6}, {1e-3}, {1}},
      {"one_dominant_component",
       {3, 5, 2.1, 8},
       {0, 4, -4, 50},
       {1, 0.1, 2, 1},
       {0.9997, 1e-4, 1e-4, 1e-4}},
      {"components_of_probability_0",
       {kNaN, 3, 7, kNaN, 4, kNaN},
       {kNaN, -2, 0, 1e9, 2, kNaN},
       {kNaN, 1, 0.5, 1, 3, kNaN},
       {0, 0.25, 0.25, 0, 0.5, 0}},
      {"far_apart", {2.5, 6, 30}, {-1e4, 0, 1e5}, {1, 1e-3, 10}, {0.3, 0.3, 0.4}},
      {"scales_40_orders_apart", {4, 4}, {0, 0}, {1e-20, 1e20}, {0.5, 0.5}},
      {"probabilities_that_sum_to_3", {3, 9}, {-1, 1}, {1, 1}, {1, 2}},
      {"probabilities_that_sum_to_less_than_1", {3, 9}, {-1, 1}, {1, 1}, {0.29999, 0.69999}},
      network_like(1, 24),
      network_like(2, 24),
  };
  Law equal = network_like(3, 24);
  equal.name = "equal_weights";
  equal.probability.assign(24, 1.0 / 24);
  all.push_back(equal);
  return all;
}

/// F(x) by the plain sum.
double cdf(const Law& law, const std::vector<std::vector<double>>& prepared, double x) {
  double sum = 0, total = 0;
  for (std::size_t k = 0; k < law.df.size(); ++k) {
    const double p = law.probability[k];
    if (p == 0) continue;
    const double z = (x - law.loc[k]) / law.scale[k];
    const double* c = prepared[k].data();
    const double tail = student_t::evaluate(law.df[k], c[student_t::kTerms], c, std::fabs(z)).upper;
    sum += p * (z < 0 ? tail : 1 - tail);
    total += p;
  }
  return sum / total;
}

/// Ascending F(x_i) of N draws from `law`, by the exact law `against`.
std::vector<double> uniforms(const Law& law, const Law& against, std::uint64_t seed) {
  std::vector<std::vector<double>> prepared;
  for (const double df : against.df) {
    std::vector<double> c(student_t::kTerms + 1);
    c[student_t::kTerms] = student_t::prepare(df, c.data());
    prepared.push_back(c);
  }
  const int count = static_cast<int>(law.df.size());
  const double total = total_probability(law.probability.data(), 1, count);
  std::vector<double> u(kDraws);
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const PhiloxWords words = draw_words(seed, {series_key(law.name), i % 3, i / 64, i % 64});
    const double x = draw_mixture(law.df.data(), law.loc.data(), law.scale.data(),
                                  law.probability.data(), 1, count, total, words);
    u[i] = cdf(against, prepared, x);
  }
  std::sort(u.begin(), u.end());
  return u;
}

/// sqrt(N) times the largest distance between the empirical and the exact cdf.
double kolmogorov(const std::vector<double>& u) {
  const double n = static_cast<double>(u.size());
  double largest = 0;
  for (std::size_t i = 0; i < u.size(); ++i) {
    const double at = static_cast<double>(i);
    largest = std::max({largest, u[i] - at / n, (at + 1) / n - u[i]});
  }
  return largest * std::sqrt(n);
}

// P(sqrt(N) D > 1.628) = 0.01 for the true law. The seed is fixed, so this never flickers.
constexpr double kCritical = 1.628;

class DrawLaw : public testing::TestWithParam<Law> {};

TEST_P(DrawLaw, HoldsInTheBulkAndInTheTails) {
  const std::vector<double> u = uniforms(GetParam(), GetParam(), 1);
  const double distance = kolmogorov(u);
  RecordProperty("kolmogorov", std::to_string(distance));
  EXPECT_LT(distance, kCritical);
  for (const double level : {1e-2, 1e-3, 1e-4, 1e-5}) {
    const double expected = level * kDraws;
    const double slack = 4 * std::sqrt(expected) + 1;
    const auto below = std::lower_bound(u.begin(), u.end(), level) - u.begin();
    const auto above = u.end() - std::upper_bound(u.begin(), u.end(), 1 - level);
    EXPECT_NEAR(static_cast<double>(below), expected, slack) << level;
    EXPECT_NEAR(static_cast<double>(above), expected, slack) << level;
  }
}

INSTANTIATE_TEST_SUITE_P(All, DrawLaw, testing::ValuesIn(laws()),
                         [](const auto& at) { return at.param.name; });

// The measure has teeth: a slightly wrong law is rejected.
TEST(DrawLawCheck, RejectsWrongLaws) {
  const Law right{"right", {5, 5}, {0, 3}, {1, 1}, {0.5, 0.5}};
  Law df = right, loc = right, scale = right, probability = right;
  df.df = {7, 7};
  loc.loc = {0.02, 3};
  scale.scale = {1.03, 1.03};
  probability.probability = {0.51, 0.49};
  for (const Law* wrong : {&df, &loc, &scale, &probability}) {
    const double distance = kolmogorov(uniforms(right, *wrong, 1));
    EXPECT_GT(distance * std::sqrt(1e6 / kDraws), kCritical);
  }
}

}  // namespace
}  // namespace toto
