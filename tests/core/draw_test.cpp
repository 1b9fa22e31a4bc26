// SPDX-License-Identifier: Apache-2.0
// A draw is a function of its address alone, picks components fairly, and follows the exact law.
#include "core/draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "core/student_t.h"
#include "support/sample_count.h"

namespace toto {
namespace {

template <typename T>
struct Parameters {
  std::vector<T> df, loc, scale, probability;
};

template <typename T>
double draw(const Parameters<T>& p, std::uint64_t seed, const DrawAddress& at) {
  return draw_mixture(p.df.data(), p.loc.data(), p.scale.data(), p.probability.data(), 1,
                      static_cast<int>(p.df.size()), draw_words(seed, at));
}

const Parameters<double> kFour{
    {2.0000002, 3.5, 40, 1e8}, {-1, 0.5, 2, 10}, {0.25, 1, 2, 0.5}, {0.125, 0.5, 0.25, 0.125}};

// Philox, the pick and Bailey's formula worked out at 40 digits by a separate program.
TEST(Draw, GivesKnownValues) {
  struct Known {
    std::uint64_t seed;
    DrawAddress at;
    double value;
  };
  const Known known[] = {
      {0U, {0x0U, 0, 0, 0}, 0.45394071712182128},
      {1U, {0x123456789abcU, 3, 17, 63}, 2.1475438713484951},
      {18446744073709551615U, {0xffffffffffffU, 65535, 65535, 99999}, -1.3198052670947049},
      {42U, {0x7U, 0, 1, 2}, 0.058928031523357632},
      {42U, {0x7U, 0, 1, 3}, 2.9121485815655992},
      {42U, {0x7U, 1, 1, 2}, -0.56063606461686373},
      {9U, {0x8U, 7, 6, 5}, -1.0401630886842419},
  };
  for (const Known& k : known) EXPECT_NEAR(draw(kFour, k.seed, k.at), k.value, 1e-14);
}

TEST(Draw, UniformsAreExactAndStrictlyInside) {
  EXPECT_EQ(uniform32(0), 0x1p-33);
  EXPECT_EQ(uniform32(0xFFFFFFFFU), 1 - 0x1p-33);
  EXPECT_EQ(uniform32(0x80000000U), 0.5 + 0x1p-33);
  EXPECT_EQ(uniform52(0, 0), 0x1p-53);
  EXPECT_EQ(uniform52(0xFFFFFFFFU, 0xFFFFFFFFU), 1 - 0x1p-53);
  EXPECT_LT(uniform52(0xFFFFFFFFU, 0xFFFFFFFFU), 1);
  EXPECT_EQ(uniform52(1, 0), 0x1p-32 + 0x1p-53);
  EXPECT_EQ(uniform52(0, 1U << 12), 0x1p-52 + 0x1p-53);
}

int pick(const std::vector<float>& p, std::uint32_t word) {
  const int count = static_cast<int>(p.size());
  return pick_component(p.data(), 1, count, total_probability(p.data(), 1, count),
                        {{word, 0, 0, 0}});
}

TEST(Draw, ComponentChangesExactlyAtTheCumulativeShares) {
  const std::vector<float> p = {0.25F, 0.5F, 0.25F};
  EXPECT_EQ(pick(p, 0), 0);
  EXPECT_EQ(pick(p, 0x3FFFFFFF), 0);
  EXPECT_EQ(pick(p, 0x40000000), 1);
  EXPECT_EQ(pick(p, 0xBFFFFFFF), 1);
  EXPECT_EQ(pick(p, 0xC0000000), 2);
  EXPECT_EQ(pick(p, 0xFFFFFFFF), 2);
}

TEST(Draw, ZeroProbabilityIsNeverPicked) {
  for (const std::uint32_t word : {0U, 1U, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFEU, 0xFFFFFFFFU}) {
    EXPECT_EQ(pick({0, 0, 1, 0, 0}, word), 2);
    EXPECT_EQ(pick({0, 1e-30F, 0}, word), 1);
    const int k = pick({0, 0.5F, 0, 0.5F, 0}, word);
    EXPECT_TRUE(k == 1 || k == 3) << k;
  }
}

// Sums that fall short of 1, or pass it, leave no word without a component.
TEST(Draw, RoundedProbabilitiesReachTheLastComponent) {
  for (const float p : {0.1F, 1.0F / 3, 0.0416666F, 7.0F, 1e-38F}) {
    const std::vector<float> equal(24, p);
    EXPECT_EQ(pick(equal, 0), 0) << p;
    EXPECT_EQ(pick(equal, 0xFFFFFFFF), 23) << p;
  }
}

TEST(Draw, WithoutProbabilityThereIsNoDraw) {
  EXPECT_EQ(pick({0, 0}, 5), -1);
  EXPECT_EQ(pick({0.5F, std::numeric_limits<float>::quiet_NaN()}, 5), -1);
  EXPECT_TRUE(std::isnan(draw<float>({{3}, {0}, {1}, {0}}, 1, {})));
}

TEST(Draw, ExtremeWordsStayFinite) {
  for (const double df : {2.0, 2.0000002, 3.0, 1e8, 1e30, 1e300}) {
    for (const std::uint32_t a : {0U, 0xFFFFFFFFU}) {
      for (const std::uint32_t c : {0U, 0x40000000U, 0x80000000U, 0xFFFFFFFFU}) {
        const double t = draw_student_t(df, {{0, a, c, a}});
        EXPECT_TRUE(std::isfinite(t)) << df << " " << a << " " << c;
        if (a == 0 && c == 0) {
          const double largest = std::sqrt(df * std::expm1(2 * 53 * std::numbers::ln2 / df));
          EXPECT_NEAR(t, largest, largest * 1e-9);
        }
      }
    }
  }
  EXPECT_EQ(draw_student_t(std::numeric_limits<double>::infinity(), {{1, 2, 3, 4}}),
            draw_student_t(1e30, {{1, 2, 3, 4}}));
  const double df = 2, huge = 1e308, one = 1;
  EXPECT_EQ(draw_mixture(&df, &huge, &huge, &one, 1, 1, PhiloxWords{{0, 0, 0, 0}}), HUGE_VAL);
}

TEST(Draw, LargeDfIsTheBoxMullerFormula) {
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const PhiloxWords w = draw_words(3, {.sample = i});
    const double u1 = uniform52(w.x[1], w.x[3]);
    const double normal =
        std::sqrt(-2 * std::log(u1)) * std::cos(2 * std::numbers::pi * uniform32(w.x[2]));
    EXPECT_NEAR(draw_student_t(1e30, w), normal, 1e-14);
  }
}

// --- addresses ---

// Any order, batching, chunking, layout or parameter type gives the same value at the same address.
TEST(Draw, DependsOnItsAddressAlone) {
  std::vector<DrawAddress> all;
  for (const std::uint64_t series : {series_key("a"), series_key("b")}) {
    for (std::uint32_t variate = 0; variate < 3; ++variate) {
      for (std::uint32_t sample = 0; sample < 16; ++sample) {
        for (std::uint32_t step = 0; step < 20; ++step) {
          all.push_back({series, variate, sample, step});
        }
      }
    }
  }
  std::vector<double> in_order;
  in_order.reserve(all.size());
  for (const DrawAddress& at : all) in_order.push_back(draw(kFour, 11, at));

  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = order.size() - 1; i > 0; --i) {
    std::swap(order[i], order[draw_words(1, {.sample = static_cast<std::uint32_t>(i)}).x[0] % i]);
  }
  for (const std::size_t i : order) EXPECT_EQ(draw(kFour, 11, all[i]), in_order[i]);

  const double df = static_cast<double>(2.25F);  // exact in float: [K][4] floats against doubles
  const Parameters<double> wide{{df, 4}, {-1, 1}, {0.5, 2}, {0.25, 0.75}};
  const float packed[] = {2.25F, -1, 0.5F, 0.25F, 4, 1, 2, 0.75F};
  for (const DrawAddress& at : all) {
    const double value = draw_mixture(packed, packed + 1, packed + 2, packed + 3, 4, 2,
                                      total_probability(packed + 3, 4, 2), draw_words(11, at));
    EXPECT_EQ(value, draw(wide, 11, at));
  }
}

double correlation(const std::function<double(std::uint32_t)>& a,
                   const std::function<double(std::uint32_t)>& b, std::uint32_t count) {
  double aa = 0, bb = 0, ab = 0, sa = 0, sb = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const double x = a(i), y = b(i);
    sa += x, sb += y, aa += x * x, bb += y * y, ab += x * y;
  }
  const double n = count;
  return (ab - sa * sb / n) / std::sqrt((aa - sa * sa / n) * (bb - sb * sb / n));
}

// Normal draws (df 1e30) at neighbouring addresses: neither they nor their squares are correlated.
TEST(Draw, NeighboursAreUncorrelated) {
  constexpr std::uint64_t kSeed = 5;
  const std::uint64_t key = series_key("x");
  const auto normal = [](std::uint64_t seed, const DrawAddress& at) {
    return draw_student_t(1e30, draw_words(seed, at));
  };
  const auto base = [&](std::uint32_t i) { return normal(kSeed, {key, 0, i, i % 64}); };
  const std::pair<std::string, std::function<double(std::uint32_t)>> others[] = {
      {"next seed",
       [&](std::uint32_t i) {
         return normal(kSeed + 1, {key, 0, i, i % 64});
       }},
      {"seed, high word",
       [&](std::uint32_t i) {
         return normal(kSeed + (1ULL << 32), {key, 0, i, i % 64});
       }},
      {"next key",
       [&](std::uint32_t i) {
         return normal(kSeed, {key + 1, 0, i, i % 64});
       }},
      {"other id",
       [&](std::uint32_t i) {
         return normal(kSeed, {series_key("y"), 0, i, i % 64});
       }},
      {"next variate",
       [&](std::uint32_t i) {
         return normal(kSeed, {key, 1, i, i % 64});
       }},
      {"next sample",
       [&](std::uint32_t i) {
         return normal(kSeed, {key, 0, i + 1, i % 64});
       }},
      {"next step",
       [&](std::uint32_t i) {
         return normal(kSeed, {key, 0, i, i % 64 + 1});
       }},
      {"a patch on",
       [&](std::uint32_t i) {
         return normal(kSeed, {key, 0, i, i % 64 + 64});
       }},
      {"sample and step swapped",
       [&](std::uint32_t i) {
         return normal(kSeed, {key, 0, i % 64, i + 64});
       }},
  };
  const std::uint32_t count = kDraws / 5;
  const double bound = 4 / std::sqrt(static_cast<double>(count));
  const auto square = [](const std::function<double(std::uint32_t)>& f) {
    return [f](std::uint32_t i) { return f(i) * f(i); };
  };
  for (const auto& [name, other] : others) {
    EXPECT_LT(std::fabs(correlation(base, other, count)), bound) << name;
    EXPECT_LT(std::fabs(correlation(square(base), square(other), count)), bound) << name;
  }
}

// The four words of a block serve for different things: the component says nothing of the draw.
TEST(Draw, ComponentAndDrawAreUncorrelated) {
  const double p[] = {0.25, 0.25, 0.25, 0.25};
  const auto component = [&](std::uint32_t i) {
    return static_cast<double>(pick_component(p, 1, 4, 1.0, draw_words(2, {.sample = i})));
  };
  const auto value = [&](std::uint32_t i) {
    return draw_student_t(5, draw_words(2, {.sample = i}));
  };
  const auto size = [&](std::uint32_t i) { return std::fabs(value(i)); };
  const std::uint32_t count = kDraws / 5;
  const double bound = 4 / std::sqrt(static_cast<double>(count));
  EXPECT_LT(std::fabs(correlation(component, value, count)), bound);
  EXPECT_LT(std::fabs(correlation(component, size, count)), bound);
}

}  // namespace
}  // namespace toto
