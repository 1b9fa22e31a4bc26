// SPDX-License-Identifier: Apache-2.0
// Every operation of the CUDA backend against the reference backend; and that a row's bits do not
// depend on how many rows there are. Skipped where there is no device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "backend/cuda/runtime/cuda_backend.h"
#include "support/differential_ops.h"
#include "toto/error.hpp"

namespace toto {
namespace {

class CudaDifferential : public testing::TestWithParam<differential::NamedCheck> {
 protected:
  void SetUp() override {
    const std::string why = cuda_unavailable();
    if (!why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(CudaDifferential, AgreesWithReference) {
  const auto exact = make_reference_backend_f64();
  const auto single = make_reference_backend_f32();
  const auto backend = make_cuda_backend({CudaWeights::f32, 1});
  const differential::Subject subject{*backend, *exact, *single};
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    differential::Dice dice(1000 * seed);
    try {
      ASSERT_EQ(GetParam().check(dice, subject), "") << "seed " << seed;
    } catch (const Error& e) {
      ASSERT_EQ(e.code(), "unsupported_model") << e.what();  // heads wider than 128
    }
  }
}

TEST(CudaTf32, ProductsRoundTheirOperandsOnHopperAlone) {
  const std::string why = cuda_unavailable();
  if (!why.empty()) GTEST_SKIP() << why;
  const auto exact = make_reference_backend_f64();
  const auto single = make_reference_backend_f32();
  const auto backend = make_cuda_backend({CudaWeights::tf32, 1});
  const differential::Subject subject{
      *backend, *exact, *single,
      backend->isa() == "sm_90" ? differential::Rounds::to_tf32 : differential::Rounds::nothing};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    differential::Dice dice(1000 * seed);
    ASSERT_EQ(differential::check_linear(dice, subject), "") << "seed " << seed;
  }
}

std::string check_name(const testing::TestParamInfo<differential::NamedCheck>& made) {
  return made.param.name;
}
INSTANTIATE_TEST_SUITE_P(All, CudaDifferential, testing::ValuesIn(differential::kChecks),
                         check_name);

/// y = W x for the first `rows` of the same rows, as the network does it: in bfloat16 the inputs
/// are what rms_norm leaves. If `at_once`, by norm_linear.
std::vector<double> product(Backend& be, const Matrix& m, const std::vector<float>& x,
                            std::int32_t rows, Epilogue use, bool at_once) {
  const std::int32_t width = use == Epilogue::gated ? m.out / 2 : m.out;
  const std::size_t cells = static_cast<std::size_t>(rows) * static_cast<std::size_t>(m.in);
  const differential::Memory from(be, x);
  differential::Dice dice(7);
  const differential::Memory gain(be, dice.values(static_cast<std::size_t>(m.in), 2.0F));
  const differential::Memory normed(be, cells + static_cast<std::size_t>(std::max(rows, 64)));
  const differential::Memory y(
      be, std::vector<float>(static_cast<std::size_t>(rows) * static_cast<std::size_t>(width + 8),
                             0.5F));
  const View inputs = from.of(m.in).shaped(rows, m.in);
  const View room = normed.of(m.in + 1);
  const View results = y.of(width + 8).as(
      use == Epilogue::gated ? be.operand_type(m) : be.element_type(), rows, width);
  if (at_once) {
    be.norm_linear(inputs, gain.of(m.in), room, m, results, use);
  } else {
    const View between = room.as(be.operand_type(m), rows, m.in);
    be.rms_norm(inputs, gain.of(m.in), between);
    be.linear(m, between, results, use);
  }
  std::vector<double> all = y.read();
  // Gated results of bfloat16 are bfloat16, two to an element: compared as what they are.
  all.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(width) /
             (use == Epilogue::gated && be.weight_size() < 4 ? 2 : 1));
  return all;
}

TEST(CudaBits, ARowDoesNotDependOnTheNumberOfRows) {
  const std::string why = cuda_unavailable();
  if (!why.empty()) GTEST_SKIP() << why;
  for (const CudaWeights weights : {CudaWeights::f32, CudaWeights::tf32, CudaWeights::bf16}) {
    const auto backend = make_cuda_backend({weights, 1});
    for (const auto& [out, in] : {std::pair{768, 768},
                                  {768, 3072},
                                  {6144, 768},
                                  {272, 1752},
                                  {160, 96},
                                  {160, 64},
                                  {160, 200},
                                  {250, 1752},  // no multiple of four; two blocks share slices
                                  {49, 1752},
                                  {49, 200},
                                  {2115, 192},  // the same of blocks of 32 and 48 outputs
                                  {4251, 64},
                                  {96, 6148},       // weights of few rows come in rounds
                                  {2304, 2432},     // for wide blocks too
                                  {4104, 3200}}) {  // a residual is streamed in bfloat16, by four
      for (const Epilogue use : {Epilogue::store, Epilogue::residual, Epilogue::gated}) {
        if (use == Epilogue::gated && out % 4 != 0) continue;
        differential::Dice dice(static_cast<std::uint64_t>(out + in));
        const auto w =
            dice.values(static_cast<std::size_t>(out) * static_cast<std::size_t>(in), 1.0F);
        const auto bias = dice.values(static_cast<std::size_t>(out), 1.0F);
        const auto x =
            dice.values(static_cast<std::size_t>(3000) * static_cast<std::size_t>(in), 1.0F);
        const Matrix m = backend->upload_matrix(differential::copy_of(w), out, in, bias, use);
        for (const bool at_once : {false, true}) {
          const auto all = product(*backend, m, x, 3000, use, at_once);
          for (const std::int32_t rows : {1, 3, 8, 9, 20, 32, 33, 70, 500}) {
            auto some = product(*backend, m, x, rows, use, at_once);
            ASSERT_TRUE(std::equal(some.begin(), some.end(), all.begin()))
                << out << "x" << in << ", " << rows << " rows, epilogue " << static_cast<int>(use)
                << ", type " << static_cast<int>(weights) << (at_once ? ", norm_linear" : "");
          }
        }
      }
    }
  }
}

// As many rows as a large batch has: tiles of every width, sizes that are no multiples of them, and
// blocks that end one tile while they multiply the next.
TEST(CudaBits, LargeTilesGiveTheBitsOfFewRows) {
  const std::string why = cuda_unavailable();
  if (!why.empty()) GTEST_SKIP() << why;
  constexpr std::int32_t kMost = 9728;
  for (const CudaWeights weights : {CudaWeights::bf16, CudaWeights::tf32}) {
    const auto backend = make_cuda_backend({weights, 1});
    for (const auto& [out, in, use] : {std::tuple{1376, 256, Epilogue::gated},
                                       {512, 1368, Epilogue::residual},
                                       {1024, 2736, Epilogue::residual},
                                       {1536, 1536, Epilogue::residual},  // few rows are streamed
                                       {2048, 5464, Epilogue::residual},  // few rows by four blocks
                                       {516, 776, Epilogue::store},
                                       {772, 64, Epilogue::residual},
                                       {2304, 192, Epilogue::store},
                                       {768, 200, Epilogue::residual}}) {
      differential::Dice dice(static_cast<std::uint64_t>(out + in));
      const auto w =
          dice.values(static_cast<std::size_t>(out) * static_cast<std::size_t>(in), 1.0F);
      const auto bias = dice.values(static_cast<std::size_t>(out), 1.0F);
      const auto x = dice.values(std::size_t{kMost} * static_cast<std::size_t>(in), 1.0F);
      const Matrix m = backend->upload_matrix(differential::copy_of(w), out, in, bias, use);
      const auto all = product(*backend, m, x, kMost, use, false);
      for (const std::int32_t rows : {1, 8, 9, 19, 32, 129, 2000, 4096, 8191}) {
        const auto some = product(*backend, m, x, rows, use, false);
        ASSERT_TRUE(std::equal(some.begin(), some.end(), all.begin()))
            << out << "x" << in << ", " << rows << " rows, epilogue " << static_cast<int>(use)
            << ", type " << static_cast<int>(weights);
      }
    }
  }
}

// Large batches add to a residual stream in the cache, which has no subnormal numbers.
TEST(CudaBits, SubnormalSumsOfAResidualDoNotDependOnTheNumberOfRows) {
  const std::string why = cuda_unavailable();
  if (!why.empty()) GTEST_SKIP() << why;
  constexpr std::int32_t kOut = 256, kIn = 192, kMost = 3000;
  const auto backend = make_cuda_backend({CudaWeights::bf16, 1});
  std::vector<float> bias(kOut), before(std::size_t{kMost} * kOut);
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i % 7) * 3e-39F;
  for (std::size_t i = 0; i < before.size(); ++i) {
    before[i] = (static_cast<float>(i % 5) - 2) * 4e-39F + (i % 3 == 0 ? 1.5e-38F : 0.0F);
  }
  const Matrix m = backend->upload_matrix(std::make_unique<float[]>(std::size_t{kOut} * kIn), kOut,
                                          kIn, bias, Epilogue::residual);
  const auto sums = [&](std::int32_t rows) {
    const differential::Memory x(
        *backend, std::vector<float>(static_cast<std::size_t>(rows) * (kIn + 8), 0.0F));
    const differential::Memory y(*backend, before);
    backend->linear(m, x.of(kIn + 8).as(backend->operand_type(m), rows, kIn),
                    y.of(kOut).shaped(rows, kOut), Epilogue::residual);
    std::vector<double> all = y.read();
    all.resize(static_cast<std::size_t>(rows) * kOut);
    return all;
  };
  const auto all = sums(kMost);
  for (const std::int32_t rows : {1, 8, 32, 33, 500}) {
    const auto some = sums(rows);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << rows << " rows";
  }
}

// What is not finite among the inputs of a row is seen in all its outputs, and in no other row's.
TEST(CudaBits, WhatIsNotFiniteStays) {
  const std::string why = cuda_unavailable();
  if (!why.empty()) GTEST_SKIP() << why;
  constexpr std::int32_t kOut = 96, kIn = 768;
  std::uint32_t bits = 0x7FFFFFFF;  // the NaN that a GPU makes
  float nan = 0;
  std::memcpy(&nan, &bits, sizeof nan);
  for (const CudaWeights weights : {CudaWeights::f32, CudaWeights::tf32}) {
    const auto backend = make_cuda_backend({weights, 1});
    const std::vector<float> ones(static_cast<std::size_t>(kOut) * kIn, 1.0F);
    const Matrix m =
        backend->upload_matrix(differential::copy_of(ones), kOut, kIn, {}, Epilogue::store);
    for (const float odd : {nan, -nan, std::numeric_limits<float>::infinity()}) {
      for (const std::int32_t rows : {2, 100}) {
        std::vector<float> x(static_cast<std::size_t>(rows) * kIn, 0.5F);
        x[5] = odd;
        const differential::Memory from(*backend, x);
        const differential::Memory y(*backend, static_cast<std::size_t>(rows) * kOut);
        backend->linear(m, from.of(m.in).shaped(rows, m.in), y.of(kOut), Epilogue::store);
        const std::vector<double> found = y.read();
        for (std::size_t i = 0; i < kOut; ++i) {
          ASSERT_FALSE(std::isfinite(found[i])) << rows << " rows, " << odd;
          ASSERT_EQ(found[kOut + i], 0.5 * kIn) << rows << " rows, " << odd;
        }
      }
    }
  }
}

TEST(CudaBackend, SaysWhyThereIsNone) {
  const std::string why = cuda_unavailable();
  if (why.empty()) GTEST_SKIP() << "there is a device";
  try {
    (void)make_cuda_backend({});
    FAIL() << "made a backend without a device";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "device_unavailable");
    EXPECT_EQ(e.status(), ExitStatus::device_unavailable);
    EXPECT_EQ(e.message(), why);
  }
}

TEST(CudaBackend, RefusesMoreMemoryThanThereIs) {
  const std::string why = cuda_unavailable();
  if (!why.empty()) GTEST_SKIP() << why;
  const auto backend = make_cuda_backend({});
  EXPECT_THROW((void)backend->allocate(std::size_t{1} << 46), std::bad_alloc);
  void* const memory = backend->allocate(64);  // and goes on
  backend->release(memory);
}

}  // namespace
}  // namespace toto
