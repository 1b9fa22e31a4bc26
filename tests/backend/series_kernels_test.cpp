// SPDX-License-Identifier: Apache-2.0
// Values and results of one series on the host: every instruction set gives the bits of plain
// loops.
#include "backend/cpu/series_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace toto::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

class SeriesKernelsTest : public testing::TestWithParam<Isa> {
 protected:
  std::vector<float> draw(std::size_t count, float size = 1) {
    std::normal_distribution<float> normal(3, 1);
    std::vector<float> values(count);
    for (float& x : values) x = size * normal(random_);
    return values;
  }
  std::vector<std::uint8_t> draw_mask(std::size_t count) {
    std::vector<std::uint8_t> mask(count);
    for (auto& m : mask) m = static_cast<std::uint8_t>(random_() % 3 == 0 ? random_() : 0);
    return mask;
  }
  const SeriesKernels& kernels_ = series_kernels(GetParam());
  std::mt19937 random_{7};
};

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> out;
  for (const float x : values) out.push_back(std::bit_cast<std::uint32_t>(x));
  return out;
}

/// Value t in sum t % 8.
Spread plain_spread(const std::vector<float>& values, const std::vector<std::uint8_t>& mask) {
  Spread out;
  double sums[8] = {}, squares[8] = {};
  const auto seen = [&](std::size_t t) { return mask.empty() || mask[t] != 0; };
  out.lowest = double{kInfinity};
  out.highest = -double{kInfinity};
  for (std::size_t t = 0; t < values.size(); ++t) {
    if (!seen(t)) continue;
    sums[t % 8] += double{values[t]};
    out.lowest = std::min(out.lowest, double{values[t]});
    out.highest = std::max(out.highest, double{values[t]});
    ++out.count;
  }
  if (out.count == 0) return {};
  double sum = 0, all = 0;
  for (const double part : sums) sum += part;
  out.mean = sum / static_cast<double>(out.count);
  for (std::size_t t = 0; t < values.size(); ++t) {
    if (!seen(t)) continue;
    const double off = double{values[t]} - out.mean;
    const double square = off * off;
    squares[t % 8] += square;
  }
  for (const double part : squares) all += part;
  out.deviation = std::sqrt(all / static_cast<double>(out.count));
  return out;
}

void expect_same(const Spread& a, const Spread& b) {
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(a.mean), std::bit_cast<std::uint64_t>(b.mean));
  EXPECT_EQ(std::bit_cast<std::uint64_t>(a.deviation), std::bit_cast<std::uint64_t>(b.deviation));
  EXPECT_EQ(a.lowest, b.lowest);
  EXPECT_EQ(a.highest, b.highest);
}

TEST_P(SeriesKernelsTest, SpreadIsThatOfEightSums) {
  for (std::size_t count = 0; count < 70; ++count) {
    SCOPED_TRACE(count);
    const std::vector<float> values = draw(count, 1e3F);
    const std::vector<std::uint8_t> mask = draw_mask(count);
    expect_same(kernels_.spread(values.data(), nullptr, count), plain_spread(values, {}));
    expect_same(kernels_.spread(values.data(), mask.data(), count), plain_spread(values, mask));
    const std::vector<std::uint8_t> nothing(count);
    EXPECT_EQ(kernels_.spread(values.data(), nothing.data(), count).count, 0U);
  }
}

TEST_P(SeriesKernelsTest, WhatIsHiddenIsNotLookedAt) {
  std::vector<float> values = draw(45);
  std::vector<std::uint8_t> mask(values.size(), 1);
  for (const std::size_t t : {0U, 7U, 20U, 43U}) {
    values[t] = t % 2 == 0 ? kInfinity : kNaN;
    mask[t] = 0;
  }
  const Spread found = kernels_.spread(values.data(), mask.data(), values.size());
  expect_same(found, plain_spread(values, mask));
  EXPECT_TRUE(std::isfinite(found.deviation));
}

TEST_P(SeriesKernelsTest, ScaledValuesStayInRange) {
  constexpr float kMost = std::numeric_limits<float>::max();
  std::vector<float> values = draw(37, 1e30F);
  values[3] = kInfinity;
  values[20] = -kInfinity;
  values[35] = kMost;
  values[36] = -kMost;
  for (const float factor : {0.125F, 1.0F, 64.0F, 0x1p40F}) {
    for (std::size_t count = 0; count <= values.size(); ++count) {
      std::vector<float> found(values.size(), -1), expected(values.size(), -1);
      for (std::size_t t = 0; t < count; ++t) {
        const float x = values[t];
        expected[t] = std::isinf(x) ? x : std::clamp(x * factor, -kMost, kMost);
      }
      kernels_.scale(values.data(), count, factor, found.data());
      EXPECT_EQ(bits(found), bits(expected)) << factor << ", " << count;
    }
  }
  float bad = kNaN;
  kernels_.scale(&bad, 1, 2, &bad);
  EXPECT_TRUE(std::isnan(bad));
}

TEST_P(SeriesKernelsTest, WhatIsNotFiniteIsFoundAnywhere) {
  for (std::size_t count = 0; count < 40; ++count) {
    const std::vector<float> values = draw(count);
    EXPECT_TRUE(kernels_.all_finite(values.data(), count));
    for (std::size_t t = 0; t < count; ++t) {
      for (const float bad : {kInfinity, -kInfinity, kNaN}) {
        std::vector<float> row = values;
        row[t] = bad;
        EXPECT_FALSE(kernels_.all_finite(row.data(), count));
        EXPECT_TRUE(kernels_.all_finite(row.data(), t));
        EXPECT_FALSE(kernels_.multiply(row.data(), count, 0.5F));
      }
      std::vector<float> row = values;
      row[t] = 3e38F;
      EXPECT_FALSE(kernels_.multiply(row.data(), count, 2));
    }
  }
}

TEST_P(SeriesKernelsTest, MultipliesARowAndNothingBehindIt) {
  for (std::size_t count = 0; count < 40; ++count) {
    std::vector<float> row = draw(count + 3), expected = row;
    for (std::size_t t = 0; t < count; ++t) expected[t] *= 0.25F;
    EXPECT_TRUE(kernels_.multiply(row.data(), count, 0.25F));
    EXPECT_EQ(bits(row), bits(expected));
  }
}

/// Any number of levels; mean, deviation, a level apart: there or not.
TEST_P(SeriesKernelsTest, RecordsBecomeRows) {
  for (std::size_t levels = 0; levels < 15; ++levels) {
    for (const std::size_t spare : {0U, 1U, 3U, 6U}) {
      for (const std::size_t count : {0U, 1U, 3U, 4U, 9U, 16U}) {
        for (const unsigned kind : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U}) {
          const bool mean = (kind & 1U) != 0, apart = (kind & 2U) != 0 && levels > 0;
          const bool ascending = (kind & 4U) != 0;
          const std::size_t n = 2 + levels, stride = n + spare;
          const std::size_t apart_at = levels / 2;
          const std::vector<float> from = draw(count * stride);
          constexpr std::size_t kGap = 2;  // behind every row
          const std::size_t distance = count + kGap;
          std::vector<float> found((n + 1) * distance, -7);
          std::vector<float> expected = found;
          // Rows: mean, deviation, levels without the one apart, and this one.
          const auto fill = [&](std::vector<float>& to) {
            RecordRows rows;
            rows.mean = mean ? to.data() : nullptr;
            rows.deviation = mean ? nullptr : to.data() + distance;
            rows.levels = to.data() + 2 * distance;
            rows.distance = distance;
            if (apart) {
              rows.apart_at = apart_at;
              rows.apart = to.data() + n * distance;
            }
            return rows;
          };
          std::size_t next = 2;
          std::vector<float> before(count, -kInfinity);
          for (std::size_t i = 0; i < n; ++i) {
            std::size_t row = i;
            if (i >= 2) row = apart && i - 2 == apart_at ? n : next++;
            if ((i == 0 && !mean) || (i == 1 && mean)) continue;
            for (std::size_t t = 0; t < count; ++t) {
              float x = from[t * stride + i];
              if (i >= 2 && ascending) before[t] = x = std::max(x, before[t]);
              expected[row * distance + t] = x;
            }
          }
          kernels_.take_records(from.data(), stride, count, fill(found), n, ascending);
          ASSERT_EQ(bits(found), bits(expected))
              << levels << " levels, " << spare << " spare, " << count << " records, " << kind;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SeriesKernelsTest, testing::ValuesIn(available_isas()),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace toto::cpu
