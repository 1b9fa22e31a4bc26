// SPDX-License-Identifier: Apache-2.0
// int8 weights as they lie in memory: panels, scales, padding, and numbers that are odd.
#include "backend/cpu/packed_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "backend/cpu/cpu_backend.h"

namespace toto::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

float int8_scale(std::span<const float> row) {
  Int8Scale scale;
  for (const float& w : row) scale.see({&w, 1});
  return scale.scale();
}

TEST(Int8Weights, LargestOfARowIs127) {
  const std::vector<float> row = {0.5F, -2.54F, 1.27F, 0.0F};
  const float scale = int8_scale(row);
  EXPECT_EQ(scale, static_cast<float>(static_cast<double>(2.54F) / 127));
  EXPECT_EQ(to_int8(-2.54F, scale), -127);
  EXPECT_EQ(to_int8(2.54F, scale), 127);
  EXPECT_EQ(to_int8(0.5F, scale), 25);
  EXPECT_EQ(to_int8(0.0F, scale), 0);
}

TEST(Int8Weights, NoneIsFartherThanHalfAScale) {
  const float scale = int8_scale(std::vector<float>{3.7F});
  for (float w = -3.7F; w <= 3.7F; w += 0.00713F) {
    EXPECT_LE(std::abs(w - static_cast<double>(to_int8(w, scale)) * scale), 0.5000001 * scale) << w;
  }
}

TEST(Int8Weights, OddRows) {
  EXPECT_EQ(int8_scale(std::vector<float>{0.0F, -0.0F}), 0.0F);
  EXPECT_EQ(to_int8(0.0F, 0.0F), 0);
  const float least = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(int8_scale(std::vector<float>{least}), 0.0F);  // less than float32 holds
  EXPECT_EQ(to_int8(least, 0.0F), 0);
  const float coarse = int8_scale(std::vector<float>{180 * least});  // rounded to one step
  EXPECT_EQ(coarse, least);
  EXPECT_EQ(to_int8(180 * least, coarse), 127);
  EXPECT_EQ(to_int8(-180 * least, coarse), -127);
  const float most = std::numeric_limits<float>::max();
  EXPECT_EQ(to_int8(most, int8_scale(std::vector<float>{most, 1.0F})), 127);
  for (const float odd : {kInfinity, -kInfinity, kNan}) {
    EXPECT_TRUE(std::isnan(int8_scale(std::vector<float>{1.0F, odd, 2.0F})));
    EXPECT_EQ(to_int8(odd, kNan), 0);
  }
}

// 5 outputs of 3 inputs in panels of `columns`: the whole numbers, zeros, then the scales.
TEST(Int8Weights, LieInPanelsWithTheirScales) {
  const std::vector<float> weights = {1.0F,  -1.0F, 0.5F, 0.0F, 0.0F,  0.0F, 2.0F, 4.0F,
                                      -3.0F, 0.1F,  0.2F, 0.3F, -7.0F, 7.0F, 0.0F};
  const std::vector<std::int8_t> whole = {127, -127, 64, 0,   0,    0,   64, 127,
                                          -95, 42,   85, 127, -127, 127, 0};
  const std::vector<float> largest = {1.0F, 0.0F, 4.0F, 0.3F, 7.0F};
  for (const Isa isa : available_isas()) {
    const ProductKernels& kernels = product_kernels(isa);
    Arena arena;
    ThreadTeam team(2);
    const PackedMatrix m =
        pack_matrix(weights.data(), 5, 3, {}, false, kernels.int8, kernels.columns, arena, team);
    const auto lanes = static_cast<std::size_t>(kernels.columns / kTileVectors);
    const std::size_t columns = (5 + lanes - 1) / lanes * lanes;  // of its only panel
    ASSERT_EQ(m.units, 1);
    ASSERT_EQ(m.steps, 3U);
    EXPECT_EQ(static_cast<std::size_t>(m.last_vectors) * lanes, columns);
    EXPECT_EQ(m.last_bytes % 64, 0U);
    EXPECT_LE(m.last_bytes, scales_at(3, columns) + columns * sizeof(float) + 63);
    const auto* found = reinterpret_cast<const std::int8_t*>(m.panels);
    const auto* scales = reinterpret_cast<const float*>(m.panels + scales_at(3, columns));
    for (std::size_t c = 0; c < columns; ++c) {
      for (std::size_t k = 0; k < 3; ++k) {
        EXPECT_EQ(found[k * columns + c], c < 5 ? whole[c * 3 + k] : 0) << c << ", " << k;
      }
      EXPECT_EQ(scales[c],
                c < 5 ? static_cast<float>(static_cast<double>(largest[c]) / 127) : 0.0F);
    }
  }
}

TEST(Int8Weights, TakeAQuarterOfTheMemory) {
  EXPECT_EQ(make_cpu_backend({1, CpuWeights::int8, ""})->weight_size(), 1);
  const ProductKernels& kernels = product_kernels(available_isas().front());
  const std::vector<float> weights(std::size_t{96} * 512, 1.0F);
  Arena arena;
  ThreadTeam team(1);
  const auto bytes = [&](const TileFormat& format) {
    const PackedMatrix m =
        pack_matrix(weights.data(), 96, 512, {}, false, format, kernels.columns, arena, team);
    return static_cast<double>(m.units) * static_cast<double>(m.panel_bytes);
  };
  EXPECT_LT(bytes(kernels.int8) / bytes(kernels.f32), 0.26);
}

// A weight that is not finite spoils its own output and no other, and is not hidden.
TEST(Int8Weights, WhatIsNotFiniteIsNotHidden) {
  for (const Isa isa : available_isas()) {
    const auto be = make_cpu_backend({1, CpuWeights::int8, std::string(isa_name(isa))});
    auto weights = std::make_unique<float[]>(6);
    for (int i = 0; i < 6; ++i) weights[static_cast<std::size_t>(i)] = 1.0F;
    weights[3] = kInfinity;
    const Matrix m = be->upload_matrix(std::move(weights), 3, 2, {}, Epilogue::store);
    const std::vector<float> x = {1.0F, 2.0F};
    std::vector<float> y(3);
    be->linear(m, view_of(x.data(), 1, 2), view_of(y.data(), 1, 3), Epilogue::store);
    EXPECT_NEAR(y[0], 3.0F, 1e-6);
    EXPECT_TRUE(std::isnan(y[1]));
    EXPECT_NEAR(y[2], 3.0F, 1e-6);
  }
}

// The way in and the way out of a network keep float32.
TEST(Int8Weights, ExactMatricesStayFloat32) {
  const auto be = make_cpu_backend({1, CpuWeights::int8, ""});
  const auto result = [&](bool exact) {
    auto weights = std::make_unique<float[]>(2);
    weights[0] = 1.0F;
    weights[1] = 0.001F;  // less than half of 1/127
    const auto upload = exact ? &Backend::upload_exact_matrix : &Backend::upload_matrix;
    const Matrix m = ((*be).*upload)(std::move(weights), 1, 2, {}, Epilogue::store);
    const std::vector<float> x = {0.0F, 1000.0F};
    float y = 0;
    be->linear(m, view_of(x.data(), 1, 2), view_of(&y, 1, 1), Epilogue::store);
    return y;
  };
  EXPECT_FLOAT_EQ(result(true), 1.0F);
  EXPECT_EQ(result(false), 0.0F);
}

}  // namespace
}  // namespace toto::cpu
