// SPDX-License-Identifier: Apache-2.0
// The worked examples of spec A4 on the reference backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/backend.h"
#include "support/host_views.h"

namespace toto {
namespace {

struct Scaled {
  std::vector<double> x, loc, scale;
};

/// Scales one variate of `tokens` patches of four; the first `context` of them are the context.
Scaled run(Backend& be, ScalerSpec spec, std::vector<float> values, std::vector<std::uint8_t> mask,
           std::int32_t context) {
  const auto tokens = static_cast<std::int32_t>(values.size() / 4);
  spec.patch = 4;
  Block block;
  block.tokens = tokens;
  block.context = context;
  const Batch batch{&block, nullptr, 1, tokens, 1};
  const std::size_t bytes = values.size() * be.element_size();
  View memory[6];
  for (View& m : memory) m = {be.allocate(bytes), be.element_type(), 4, tokens};
  ScalerState state;
  be.upload(std::span<const float>(values), memory[0]);
  be.scale(batch, spec, memory[0], mask.data(), &state,
           {memory[1], memory[2], memory[3], memory[4], memory[5]});
  Scaled s{std::vector<double>(values.size()), std::vector<double>(values.size()),
           std::vector<double>(values.size())};
  be.download(memory[1], s.x);
  be.download(memory[2], s.loc);
  be.download(memory[3], s.scale);
  std::vector<double> last_loc(4), last_scale(4);
  be.download(memory[4], last_loc);
  be.download(memory[5], last_scale);
  EXPECT_TRUE(std::equal(last_loc.begin(), last_loc.end(), s.loc.end() - 4));
  EXPECT_TRUE(std::equal(last_scale.begin(), last_scale.end(), s.scale.end() - 4));
  for (const View& m : memory) be.release(m.data);
  return s;
}

const std::vector<std::uint8_t> kAll(8, 1);

TEST(Scaler, StatisticsUpToTheEndOfEachPatch) {
  const auto be = make_reference_backend_f32();
  const Scaled s = run(*be, {}, {2, 4, 4, 6, 10, 10, 12, 20}, kAll, 2);
  EXPECT_FLOAT_EQ(static_cast<float>(s.loc[0]), 4.0F);
  EXPECT_FLOAT_EQ(static_cast<float>(s.loc[7]), 8.5F);
  EXPECT_FLOAT_EQ(static_cast<float>(s.scale[3]), static_cast<float>(std::sqrt(8.0 / 3 + 0.1)));
  EXPECT_FLOAT_EQ(static_cast<float>(s.scale[4]), static_cast<float>(std::sqrt(238.0 / 7 + 0.1)));
  const std::vector<double> expected = {-1.20241, 0,       0,       1.20241,
                                        0.25687,  0.25687, 0.59936, 1.96934};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(s.x[i], expected[i], 1e-5) << i;
}

TEST(Scaler, PaddingIsScaledLikeData) {
  const auto be = make_reference_backend_f32();
  const Scaled s = run(*be, {}, {0, 0, 5, 7, 9, 9, 9, 9}, {0, 0, 1, 1, 1, 1, 1, 1}, 2);
  EXPECT_NEAR(s.loc[0], 6, 1e-6);
  EXPECT_NEAR(s.loc[4], 8, 1e-6);
  EXPECT_NEAR(s.scale[0], 1.44914, 1e-5);
  EXPECT_NEAR(s.scale[4], 1.70294, 1e-5);
  const std::vector<double> expected = {-4.14039, -4.14039, -0.69007, 0.69007,
                                        0.58722,  0.58722,  0.58722,  0.58722};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(s.x[i], expected[i], 1e-5) << i;
}

TEST(Scaler, NothingObserved) {
  const auto be = make_reference_backend_f32();
  const Scaled s = run(*be, {}, {0, 0, 0, 0}, {0, 0, 0, 0}, 1);
  EXPECT_EQ(s.loc[0], 0);
  EXPECT_FLOAT_EQ(static_cast<float>(s.scale[0]), 0.31622777F);
  EXPECT_EQ(s.x[3], 0);
}

TEST(Scaler, GlobalClampRaisesAndCuts) {
  const auto be = make_reference_backend_f32();
  const std::vector<float> x = {0, 0, 0, 0, 1e12F, 3e12F, 1e12F, 3e12F};
  const Scaled raised = run(*be, {}, x, kAll, 2);
  EXPECT_NEAR(raised.scale[0], 122.47449, 1e-4);
  EXPECT_NEAR(raised.scale[4] / 1.3093073e12, 1, 1e-6);
  const Scaled cut = run(*be, {}, x, kAll, 1);
  EXPECT_FLOAT_EQ(static_cast<float>(cut.scale[0]), 0.31622777F);
  EXPECT_NEAR(cut.scale[4] / 3.1622776e9, 1, 1e-6);
  ScalerSpec free;
  free.stabilize_with_global = false;
  EXPECT_FLOAT_EQ(static_cast<float>(run(*be, free, x, kAll, 2).scale[0]), 0.31622777F);
}

TEST(Scaler, GlobalScalerOverTheContext) {
  const auto be = make_reference_backend_f32();
  ScalerSpec spec;
  spec.kind = ScalerSpec::Kind::global;
  // Valid and inside the context: 1, 2. The spec's example has a prefix of two steps; here the
  // first patch is the context and only its first two steps are valid.
  const Scaled s = run(*be, spec, {1, 2, 3, 6, 9, 9, 9, 9}, {1, 1, 0, 0, 1, 1, 1, 1}, 1);
  EXPECT_NEAR(s.loc[7], 1.5, 1e-7);
  EXPECT_NEAR(s.scale[0], 0.500999, 1e-6);
}

TEST(Scaler, StatisticsUpToEachStep) {
  const auto be = make_reference_backend_f32();
  ScalerSpec spec;
  spec.kind = ScalerSpec::Kind::causal_step;
  const Scaled s = run(*be, spec, {2, 4, 4, 6, 10, 10, 12, 20}, kAll, 2);
  EXPECT_NEAR(s.loc[0], 2, 1e-6);
  EXPECT_NEAR(s.loc[1], 3, 1e-6);
  EXPECT_NEAR(s.scale[0], std::sqrt(0.1), 1e-6);
  EXPECT_NEAR(s.scale[1], std::sqrt(2 + 0.1), 1e-6);
  EXPECT_NEAR(s.loc[7], 8.5, 1e-6);
}

TEST(Scaler, CarriesItsStateFromPatchToPatch) {
  const auto be = make_reference_backend_f32();
  ScalerSpec spec;
  spec.patch = 4;
  const std::vector<float> x = {2, 4, 4, 6, 10, 10, 12, 20};
  const Scaled whole = run(*be, spec, x, kAll, 1);
  Block block;
  block.tokens = 1;
  block.context = 1;
  ScalerState state;
  float out[3][8];
  float last[2][4];
  for (std::int32_t token = 0; token < 2; ++token) {
    block.position = token;
    const Batch batch{&block, nullptr, 1, 1, 1};
    const auto row = [](float* data) { return view_of(data, 1, 4); };
    be->scale(batch, spec, view_of(x.data() + 4 * token, 1, 4), kAll.data(), &state,
              {row(out[0] + 4 * token), row(out[1] + 4 * token), row(out[2] + 4 * token),
               row(last[0]), row(last[1])});
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(last[0][i], out[1][4 * token + i]);
      EXPECT_EQ(last[1][i], out[2][4 * token + i]);
    }
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(static_cast<double>(out[0][i]), whole.x[i]);
    EXPECT_EQ(static_cast<double>(out[1][i]), whole.loc[i]);
    EXPECT_EQ(static_cast<double>(out[2][i]), whole.scale[i]);
  }
}

/// Spec A4.2: squares are added step by step, whatever the patch.
TEST(Scaler, SquaresAreSummedInTheOrderOfTheSteps) {
  constexpr std::int32_t kPatch = 64;
  constexpr std::int32_t kTokens = 3;
  std::vector<float> x(std::size_t{kPatch} * kTokens);
  std::vector<std::uint8_t> mask(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>((i * 7919 + 13) % 1009) * 0.37F - 150.0F;
    mask[i] = i % 11 != 3;
  }
  double count = 0, sum = 0, mean = 0, m2 = 0, context_sum = 0, context_squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (mask[i] == 0) continue;
    const double before = mean;
    count += 1;
    sum += static_cast<double>(x[i]);
    mean = sum / count;
    m2 += (static_cast<double>(x[i]) - before) * (static_cast<double>(x[i]) - mean);
    context_sum += static_cast<double>(x[i]);
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double d = static_cast<double>(x[i]) - context_sum / count;
    if (mask[i] != 0) context_squares += d * d;
  }
  const auto be = make_reference_backend_f32();
  ScalerSpec spec;
  spec.patch = kPatch;
  Block block;
  block.tokens = block.context = kTokens;
  const Batch batch{&block, nullptr, 1, kTokens, 1};
  ScalerState state;
  std::vector<float> out[3] = {x, x, x};
  std::vector<float> last[2] = {std::vector<float>(kPatch), std::vector<float>(kPatch)};
  const auto rows = [](std::vector<float>& values) { return test::in_rows(values, kPatch); };
  be->scale(batch, spec, test::in_rows(x, kPatch), mask.data(), &state,
            {rows(out[0]), rows(out[1]), rows(out[2]), rows(last[0]), rows(last[1])});
  EXPECT_EQ(state.count, count);
  EXPECT_EQ(state.sum, sum);
  EXPECT_EQ(state.mean, mean);
  EXPECT_EQ(state.m2, m2);
  EXPECT_EQ(state.upper, std::sqrt(context_squares / count + 0.1) * std::pow(10.0, spec.exponent));
}

}  // namespace
}  // namespace toto
