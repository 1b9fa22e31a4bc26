// SPDX-License-Identifier: Apache-2.0
// Toto 2.0 on a CUDA device: against float64, and that a request's bits do not depend on its batch.
// Skipped where there is no device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "backend/cuda/runtime/cuda_backend.h"
#include "support/needs_device.h"
#include "support/toto2_requests.h"

namespace toto {
namespace {

using test::Dice;
using test::distance;
using test::forecast;
using test::Made;
using test::make;
using test::network;
using test::odd;
using test::released;

std::unique_ptr<Toto2> on_device(const Toto2Config& config, CudaWeights weights) {
  return network(config, make_cuda_backend({weights, 1}));
}

/// The sizes of the smallest release.
Toto2Config smallest() { return test::heads_of_64(4, 32); }

/// Heads of 64 that share keys, with norms.
Toto2Config grouped() {
  Toto2Config c = smallest();
  c.patch_size = 8;
  c.num_groups = 2;
  c.qk_norm = true;
  return c;
}

/// Four kinds of sizes: the network's switches are all tried.
std::vector<Toto2Config> configs() { return {released(), odd(), smallest(), grouped()}; }

/// One series of as many patches as attention takes with few lanes (attention_tensor.cu), where two
/// heads share keys.
Made long_series(Dice& dice, std::int32_t patch) {
  Made m = make(dice, patch, 1);
  m.request.steps = 36 * patch;
  m.request.covariates = m.request.known_steps = 0;
  m.request.horizon = 3 * patch;
  m.request.block = 0;
  m.values = dice.values(m.request.steps);
  m.mask = dice.mask(m.request.steps, true);
  m.known.clear(), m.known_mask.clear(), m.known_groups.clear();
  return m;
}

class CudaToto2 : public testing::Test {
 protected:
  void SetUp() override { TOTO_NEEDS_DEVICE(); }
};

TEST_F(CudaToto2, BitsDependOnTheRequestAlone) {
  for (const CudaWeights weights : {CudaWeights::f32, CudaWeights::tf32, CudaWeights::bf16}) {
    for (const Toto2Config& config : configs()) {
      const auto net = on_device(config, weights);
      Dice dice(7);
      std::vector<Made> batch;
      for (int i = 0; i < 9; ++i) batch.push_back(make(dice, config.patch_size));
      std::vector<std::vector<double>> expected;
      for (const Made& m : batch) expected.push_back(forecast(*net, m));
      EXPECT_EQ(forecast(*net, batch), expected) << config.d_model;
      std::reverse(batch.begin(), batch.end());
      std::reverse(expected.begin(), expected.end());
      EXPECT_EQ(forecast(*net, batch), expected) << config.d_model;
      EXPECT_EQ(forecast(*net, batch), expected) << config.d_model << ", again";
    }
  }
}

// Where few lanes leave processors idle, attention has thread blocks of more warps, and the
// statistics of up to 32 patches a warp for each.
TEST_F(CudaToto2, RequestsThatFillTheDeviceHaveTheBitsOfOne) {
  for (const CudaWeights weights : {CudaWeights::f32, CudaWeights::bf16}) {
    for (const Toto2Config& config : {smallest(), grouped()}) {
      const auto net = on_device(config, weights);
      Dice dice(13);
      std::vector<Made> kinds;
      for (int i = 0; i < 6; ++i) kinds.push_back(make(dice, config.patch_size));
      for (int i = 0; i < 4; ++i) {
        kinds.push_back(make(dice, config.patch_size, 2, 26));
        kinds.back().request.fallback = 0;
      }
      kinds.push_back(long_series(dice, config.patch_size));
      std::vector<std::vector<double>> expected;
      for (const Made& m : kinds) expected.push_back(forecast(*net, m));
      std::vector<Made> batch;
      for (std::size_t i = 0; i < 240; ++i) batch.push_back(kinds[i % kinds.size()]);
      const std::vector<std::vector<double>> found = forecast(*net, batch);
      for (std::size_t i = 0; i < batch.size(); ++i) {
        ASSERT_EQ(found[i], expected[i % kinds.size()]) << config.num_groups << ", request " << i;
      }
    }
  }
}

// The bound of the CPU's kernels (toto2_generation_test.cpp).
TEST_F(CudaToto2, Float32IsCloseToFloat64) {
  for (const Toto2Config& config : configs()) {
    const auto exact = network(config, make_reference_backend_f64(), false);
    const auto net = on_device(config, CudaWeights::f32);
    for (std::uint32_t seed = 0; seed < 12; ++seed) {
      Dice dice(100 + seed);
      Made m = make(dice, config.patch_size, 3);
      m.request.block = 0;
      EXPECT_LT(distance(forecast(*net, m), forecast(*exact, m)), 3e-5)
          << config.d_model << ", seed " << seed;
    }
  }
}

// Operands of eleven and of eight bits: the distance is printed, the bound is four times what was
// measured.
TEST_F(CudaToto2, ShorterTypesAreCloseToFloat64) {
  for (const auto& [weights, name, bound] :
       {std::tuple{CudaWeights::tf32, "tf32", 0.02}, {CudaWeights::bf16, "bfloat16", 0.15}}) {
    double worst = 0;
    for (const Toto2Config& config : {released(), smallest(), grouped()}) {
      const auto exact = network(config, make_reference_backend_f64(), false);
      const auto net = on_device(config, weights);
      for (std::uint32_t seed = 0; seed < 12; ++seed) {
        Dice dice(100 + seed);
        Made m = make(dice, config.patch_size, 3);
        m.request.block = 0;
        m.request.fallback = 0;
        worst = std::max(worst, distance(forecast(*net, m), forecast(*exact, m)));
      }
    }
    std::printf("Toto 2.0, %s: at most %.3g of the scale from float64\n", name, worst);
    EXPECT_LT(worst, bound) << name;
  }
}

TEST_F(CudaToto2, LongAndWideRequests) {
  const Toto2Config config = released();
  const auto exact = network(config, make_reference_backend_f64(), false);
  const auto net = on_device(config, CudaWeights::f32);
  Dice dice(5);
  for (const auto& [variates, steps] :
       {std::pair{1, 150 * 8}, {90, 24}, {3, 67 * 8 + 1}, {1, 700 * 8}}) {
    Made m;
    m.request.targets = variates;
    m.request.steps = steps;
    m.request.horizon = 20;
    m.values = dice.values(variates * steps);
    m.mask = dice.mask(variates * steps, true);
    m.groups.assign(static_cast<std::size_t>(variates), 0);
    EXPECT_LT(distance(forecast(*net, m), forecast(*exact, m)), 3e-5) << variates << " x " << steps;
  }
}

// Keys of long requests do not fit into shared memory: all of the batch then take another way.
TEST_F(CudaToto2, ShortRequestsHaveTheSameBitsBesideLongOnes) {
  for (const CudaWeights weights : {CudaWeights::f32, CudaWeights::bf16}) {
    const Toto2Config config = grouped();
    const auto net = on_device(config, weights);
    Dice dice(11);
    std::vector<Made> batch;
    for (int i = 0; i < 5; ++i) batch.push_back(make(dice, config.patch_size));
    Made m;
    m.request.steps = 700 * config.patch_size;
    m.request.horizon = 20;
    m.values = dice.values(m.request.steps);
    m.mask = dice.mask(m.request.steps, true);
    m.groups = {0};
    std::vector<std::vector<double>> expected;
    for (const Made& one : batch) expected.push_back(forecast(*net, one));
    batch.push_back(m);
    std::vector<std::vector<double>> found = forecast(*net, batch);
    found.pop_back();
    EXPECT_EQ(found, expected) << (weights == CudaWeights::f32 ? "float32" : "bfloat16");
    const auto exact = network(config, make_reference_backend_f64(), false);
    EXPECT_LT(distance(forecast(*net, m), forecast(*exact, m)),
              weights == CudaWeights::f32 ? 3e-5 : 0.15);
  }
}

}  // namespace
}  // namespace toto
