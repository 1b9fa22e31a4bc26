// SPDX-License-Identifier: Apache-2.0
// Statistics of samples against spec A12, worked by hand and by plain long double arithmetic.
#include "statistics/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/philox.h"

namespace toto {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<float> sorted(const std::vector<float>& values) {
  std::vector<float> scratch(values.size());
  sort_samples({values.data(), values.size(), 1}, scratch);
  return scratch;
}

std::vector<float> noise(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const PhiloxWords w = draw_words(seed, {.sample = static_cast<std::uint32_t>(i)});
    values[i] = static_cast<float>(static_cast<std::int32_t>(w.x[0])) * 1e-7F;
  }
  return values;
}

TEST(Statistics, QuantileGivesTheExamplesOfTheSpec) {
  const std::vector<float> ten = sorted({7, 1, 10, 3, 2, 9, 5, 8, 6, 4});
  EXPECT_EQ(interpolated_quantile(ten, 0.5F), 5.5F);
  EXPECT_FLOAT_EQ(interpolated_quantile(ten, 0.1F), 1.9F);  // 2 - (1 - 0.90000004), a tie
  EXPECT_EQ(interpolated_quantile(ten, 0.0F), 1.0F);
  EXPECT_EQ(interpolated_quantile(ten, 1.0F), 10.0F);
  EXPECT_EQ(sample_median(ten), 5.5F);
  EXPECT_EQ(sample_median(sorted({3, 1, 2})), 2.0F);
  EXPECT_EQ(sample_median(sorted({42})), 42.0F);
}

// 0.7 * 9 is 6.3 in real numbers but 6.2999997 in float32: the rank must be formed in float32.
TEST(Statistics, RankIsFormedInFloat32) {
  std::vector<float> steps(10, 0.0F);
  steps[7] = steps[8] = steps[9] = 1.0F;
  const float rank = 0.7F * 9.0F;
  EXPECT_EQ(interpolated_quantile(steps, 0.7F), rank - 6.0F);
  EXPECT_NE(rank - 6.0F, static_cast<float>(0.7F * 9.0 - 6.0));
}

// From weight 1/2 on, torch's lerp works from the upper end; the other form rounds differently.
TEST(Statistics, LerpWorksFromTheNearerEnd) {
  const std::vector<float> pair = {-1.0F, 16777216.0F};
  EXPECT_EQ(interpolated_quantile(pair, 0.99999994F), 16777215.0F);  // a + w (b - a) = 16777214
  EXPECT_EQ(interpolated_quantile(pair, 0.25F), 4194303.0F);
  EXPECT_EQ(interpolated_quantile(pair, 1.0F), 16777216.0F);
  EXPECT_EQ(interpolated_quantile(pair, 0.0F), -1.0F);
}

TEST(Statistics, InfiniteEndsDoNotSpoilExactRanks) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(interpolated_quantile(sorted({inf, 2, -inf}), 0.5F), 2.0F);
}

TEST(Statistics, AnyNaNMakesEveryQuantileNaN) {
  for (std::size_t at = 0; at < 5; ++at) {
    std::vector<float> values = {1, 2, 3, 4, 5};
    values[at] = kNaN;
    const std::vector<float> s = sorted(values);
    for (const float q : {0.0F, 0.3F, 0.5F, 1.0F}) {
      EXPECT_TRUE(std::isnan(interpolated_quantile(s, q)));
      EXPECT_TRUE(std::isnan(nearest_rank_quantile(s, q)));
    }
    EXPECT_TRUE(std::isnan(sample_mean({values.data(), 5, 1})));
    EXPECT_TRUE(std::isnan(sample_std({values.data(), 5, 1})));
  }
}

TEST(Statistics, NearestRankGivesTheExamplesOfTheSpec) {
  std::vector<float> index(256);
  std::iota(index.begin(), index.end(), 0.0F);
  EXPECT_EQ(nearest_rank_quantile(index, 0.1), 26.0F);
  EXPECT_EQ(nearest_rank_quantile(index, 0.5), 128.0F);
  EXPECT_EQ(nearest_rank_quantile(index, 0.9), 230.0F);
  EXPECT_EQ(nearest_rank_quantile(index, 0.0), 0.0F);
  EXPECT_EQ(nearest_rank_quantile(index, 1.0), 255.0F);
  EXPECT_EQ(nearest_rank_quantile(std::span(index).first(2), 0.5), 0.0F);  // 0.5 to even
  EXPECT_EQ(nearest_rank_quantile(std::span(index).first(4), 0.5), 2.0F);  // 1.5 to even
}

TEST(Statistics, MeanAndStdAgreeWithLongDouble) {
  for (const float offset : {0.0F, 1e4F, -3e7F}) {
    std::vector<float> values = noise(4096, 5);
    for (float& v : values) v += offset;
    long double sum = 0;
    for (const float v : values) sum += v;
    const long double mean = sum / 4096;
    long double squares = 0;
    for (const float v : values) squares += (v - mean) * (v - mean);
    EXPECT_EQ(sample_mean({values.data(), values.size(), 1}), static_cast<float>(mean));
    EXPECT_FLOAT_EQ(sample_std({values.data(), values.size(), 1}),
                    static_cast<float>(std::sqrt(squares / 4095)));
  }
}

TEST(Statistics, StdDividesByNMinusOne) {
  const std::vector<float> values = {2, 4, 4, 4, 5, 5, 7, 9};
  EXPECT_FLOAT_EQ(sample_std({values.data(), 8, 1}), std::sqrt(32.0F / 7.0F));
  EXPECT_TRUE(std::isnan(sample_std({values.data(), 1, 1})));
  EXPECT_EQ(sample_mean({values.data(), 8, 1}), 5.0F);
}

TEST(Statistics, HugeSamplesDoNotOverflow) {
  const std::vector<float> values = {3e38F, 3e38F, 3e38F, -3e38F};
  EXPECT_EQ(sample_mean({values.data(), 4, 1}), 1.5e38F);
  EXPECT_FLOAT_EQ(sample_std({values.data(), 4, 1}), 3e38F);
  EXPECT_EQ(sample_median(sorted(values)), 3e38F);
}

TEST(Statistics, StrideReadsOneColumn) {
  const std::size_t rows = 101;
  const std::size_t columns = 7;
  const std::vector<float> table = noise(rows * columns, 9);
  for (std::size_t c = 0; c < columns; ++c) {
    std::vector<float> column(rows);
    for (std::size_t r = 0; r < rows; ++r) column[r] = table[r * columns + c];
    const Samples strided{table.data() + c, rows, columns};
    const Samples dense{column.data(), rows, 1};
    std::vector<float> a(rows), b(rows);
    sort_samples(strided, a);
    sort_samples(dense, b);
    EXPECT_EQ(a, b);
    EXPECT_EQ(sample_mean(strided), sample_mean(dense));
    EXPECT_EQ(sample_std(strided), sample_std(dense));
    std::sort(column.begin(), column.end());
    EXPECT_EQ(a, column);
  }
}

TEST(Statistics, QuantilesAscendWithTheLevelAndStayInRange) {
  const std::vector<float> s = sorted(noise(257, 3));
  float last = s.front();
  for (int i = 0; i <= 1000; ++i) {
    const float value = interpolated_quantile(s, static_cast<float>(i) / 1000.0F);
    EXPECT_GE(value, last);
    EXPECT_LE(value, s.back());
    last = value;
  }
}

}  // namespace
}  // namespace toto
