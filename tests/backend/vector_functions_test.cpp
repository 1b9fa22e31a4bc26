// SPDX-License-Identifier: Apache-2.0
// asinh, sinh and the sorting of quantiles in vectors, on every instruction set, beside the plain
// loops in float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "backend/cpu/ops2_kernels.h"
#include "backend/reference/series2.h"

namespace toto::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class Kernels : public testing::TestWithParam<Isa> {
 protected:
  const Ops2Kernels& kernels_ = ops2_kernels(GetParam());
};

INSTANTIATE_TEST_SUITE_P(All, Kernels, testing::ValuesIn(available_isas()),
                         [](const auto& test) { return std::string(isa_name(test.param)); });

/// From the smallest to the largest, both signs.
std::vector<float> magnitudes() {
  std::vector<float> all = {0.0F, -0.0F, 1.0F, -1.0F};
  for (double x = 1e-44; x < 3e38; x *= 1.0137) {
    all.push_back(static_cast<float>(x));
    all.push_back(static_cast<float>(-x));
  }
  return all;
}

TEST_P(Kernels, AsinhIsCloseEverywhere) {
  const std::vector<float> x = magnitudes();
  const std::vector<std::uint8_t> mask(x.size(), 1);
  std::vector<float> z(2 * x.size());
  kernels_.embed_input(x.data(), mask.data(), 0.0F, 1.0F, x.size(), false, z.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::asinh(static_cast<double>(x[i]));
    EXPECT_LE(std::abs(z[i] - exact), 3e-7 * std::abs(exact) + 1e-45) << x[i];
    EXPECT_EQ(std::signbit(z[i]), std::signbit(x[i])) << x[i];
    EXPECT_EQ(z[x.size() + i], 0.0F);
  }
}

TEST_P(Kernels, WhatIsMissingIsZeroAndFlagged) {
  const std::vector<float> x = {kNan, 2.0F, kInfinity, -kInfinity, kNan, 1.0F, 3.0F};
  const std::vector<std::uint8_t> mask = {0, 1, 1, 1, 1, 0, 1};
  std::vector<float> z(14);
  for (const bool refed : {false, true}) {
    kernels_.embed_input(x.data(), mask.data(), 1.0F, 2.0F, 7, refed, z.data());
    EXPECT_EQ(z[0], 0.0F);
    EXPECT_EQ(z[2], kInfinity);
    EXPECT_EQ(z[3], -kInfinity);
    EXPECT_TRUE(std::isnan(z[4]));
    EXPECT_EQ(z[5], 0.0F);
    EXPECT_NEAR(z[6], std::asinh(1.0F), 1e-7);
    const float flag = refed ? 0.0F : 1.0F;
    const std::vector<float> flags = {flag, 0, 0, 0, 0, flag, 0};
    EXPECT_TRUE(std::equal(flags.begin(), flags.end(), z.begin() + 7));
  }
}

TEST_P(Kernels, SinhIsCloseEverywhere) {
  std::vector<float> x = magnitudes();
  for (double v = 0.5; v < 89.4; v += 0.0131) x.push_back(static_cast<float>(v));
  for (const float odd : {89.0F, 89.4F, 89.5F, 100.0F, 1e30F, kInfinity}) {
    x.push_back(odd);
    x.push_back(-odd);
  }
  x.resize(x.size() / 9 * 9);
  std::vector<float> y(x.size());
  EXPECT_TRUE(kernels_.spread(x.data(), x.size() / 9, 0.0F, 1.0F, y.data()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::sinh(static_cast<double>(x[i]));
    if (std::abs(exact) > static_cast<double>(std::numeric_limits<float>::max())) {
      EXPECT_EQ(y[i], x[i] < 0 ? -kInfinity : kInfinity) << x[i];
    } else {
      EXPECT_LE(std::abs(y[i] - exact), 3e-7 * std::abs(exact) + 1e-45) << x[i];
    }
  }
  const std::vector<float> finite(18, 0.5F);
  EXPECT_FALSE(kernels_.spread(finite.data(), 2, 3.0F, 2.0F, y.data()));
  EXPECT_NEAR(y[0], 3 + 2 * std::sinh(0.5), 1e-6);
  const std::vector<float> odd(9, kNan);
  EXPECT_FALSE(kernels_.spread(odd.data(), 1, 0.0F, 1.0F, y.data()));
  EXPECT_TRUE(std::isnan(y[4]));
}

TEST_P(Kernels, QuantilesAreCappedAndSorted) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> any(-3.0F, 3.0F);
  for (const std::size_t patch : {1U, 7U, 16U, 32U, 45U}) {
    std::vector<float> y(9 * patch);
    for (float& v : y) v = std::round(any(random) * 4) / 4;  // equal ones among them
    std::vector<float> expected = y;
    for (float& v : expected) v = std::clamp(v, -2.0F, 2.5F);
    for (std::size_t i = 0; i < patch; ++i) {
      series2::sort_quantiles(expected.data() + i, static_cast<std::int32_t>(patch));
    }
    EXPECT_FALSE(kernels_.cap_and_sort(y.data(), patch, -2.0F, 2.5F));
    EXPECT_EQ(y, expected) << patch;
  }
}

// Every order of nine that a network may get wrong: zeros and ones are enough.
TEST_P(Kernels, TheNetworkSortsEveryOrder) {
  constexpr std::size_t kOrders = 512;
  std::vector<float> y(9 * kOrders);
  for (std::size_t order = 0; order < kOrders; ++order) {
    for (std::size_t q = 0; q < 9; ++q)
      y[q * kOrders + order] = (order >> q & 1) != 0 ? 1.0F : 0.0F;
  }
  EXPECT_FALSE(kernels_.cap_and_sort(y.data(), kOrders, -kInfinity, kInfinity));
  for (std::size_t q = 1; q < 9; ++q) {
    for (std::size_t i = 0; i < kOrders; ++i) {
      EXPECT_LE(y[(q - 1) * kOrders + i], y[q * kOrders + i]) << i;
    }
  }
}

TEST_P(Kernels, ColumnsWithNanAreLeftToTheCaller) {
  std::vector<float> y(18);
  for (std::size_t i = 0; i < 18; ++i) y[i] = static_cast<float>(18 - i);
  y[7] = kNan;
  EXPECT_TRUE(kernels_.cap_and_sort(y.data(), 2, 3.0F, 12.0F));
  EXPECT_TRUE(std::isnan(y[7]));
  EXPECT_EQ(*std::max_element(y.begin(), y.begin() + 7), 12.0F);
  EXPECT_EQ(*std::min_element(y.begin() + 8, y.end()), 3.0F);
}

}  // namespace
}  // namespace toto::cpu
