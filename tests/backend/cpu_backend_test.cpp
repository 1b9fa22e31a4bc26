// SPDX-License-Identifier: Apache-2.0
// The CPU backend as a whole: how it is made, what it refuses, and the accuracy of its functions.
#include "backend/cpu/cpu_backend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "backend/cpu/ceilings.h"
#include "core/cpu_info.h"
#include "support/host_views.h"
#include "toto/error.hpp"

namespace toto {
namespace {

using test::in_rows;

TEST(CpuBackend, MakesTheBestByDefault) {
  const auto backend = make_cpu_backend({});
  EXPECT_EQ(backend->name(), "cpu");
  EXPECT_EQ(backend->element_size(), sizeof(float));
  const auto& made = dynamic_cast<const cpu::CpuBackend&>(*backend);
  EXPECT_EQ(made.instruction_set(), cpu::available_isas().front());
  EXPECT_EQ(made.team().size(), available_cores());
}

TEST(CpuBackend, ObeysNames) {
  for (const cpu::Isa isa : cpu::available_isas()) {
    const auto backend = make_cpu_backend({3, CpuWeights::bf16, std::string(cpu::isa_name(isa))});
    const auto& made = dynamic_cast<const cpu::CpuBackend&>(*backend);
    EXPECT_EQ(made.instruction_set(), isa);
    EXPECT_EQ(made.weights(), CpuWeights::bf16);
    EXPECT_EQ(made.team().size(), 3);
  }
}

TEST(CpuBackend, RefusesWhatItDoesNotHave) {
  for (const char* name : {"avx1024", "AVX2", " ", "scalar"}) {
    try {
      (void)make_cpu_backend({1, CpuWeights::f32, name});
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "invalid_isa");
      EXPECT_EQ(error.status(), ExitStatus::usage);
      for (const cpu::Isa isa : cpu::available_isas()) {
        EXPECT_NE(error.remedy().find(cpu::isa_name(isa)), std::string::npos) << error.remedy();
      }
    }
  }
  for (const int threads : {-1, 1025}) {
    try {
      (void)make_cpu_backend({threads, CpuWeights::f32, ""});
      FAIL() << threads;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "invalid_threads");
      EXPECT_EQ(error.status(), ExitStatus::usage);
    }
  }
}

TEST(CpuBackend, MemoryIsAlignedAndZero) {
  const auto backend = make_cpu_backend({1, CpuWeights::f32, ""});
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{5} << 20}) {
    auto* memory = static_cast<std::byte*>(backend->allocate(bytes));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 64, 0U);
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(memory[i], std::byte{0});
    backend->release(memory);
  }
  EXPECT_THROW((void)backend->allocate(std::numeric_limits<std::size_t>::max()), std::bad_alloc);
}

TEST(CpuBackend, CallersOnSeveralThreadsTakeTurns) {
  const auto backend = make_cpu_backend({2, CpuWeights::bf16, ""});
  constexpr std::int32_t kSize = 200;
  auto weights = std::make_unique<float[]>(std::size_t{kSize} * kSize);
  for (std::size_t i = 0; i < kSize; ++i) weights[i * kSize + i] = 2.0F;
  const Matrix twice =
      backend->upload_matrix(std::move(weights), kSize, kSize, {}, Epilogue::store);
  std::vector<std::jthread> callers;
  std::vector<int> wrong(3, 0);
  for (std::size_t c = 0; c < wrong.size(); ++c) {
    callers.emplace_back([&, c] {
      const std::vector<float> x(std::size_t{9} * kSize, static_cast<float>(c));
      std::vector<float> y(x.size());
      for (int i = 0; i < 20; ++i) {
        backend->linear(twice, in_rows(x, kSize), in_rows(y, kSize), Epilogue::store);
        for (const float v : y) wrong[c] += v != 2.0F * static_cast<float>(c);
      }
    });
  }
  callers.clear();  // joins
  for (const int w : wrong) EXPECT_EQ(w, 0);
}

class CpuFunctions : public testing::TestWithParam<cpu::Isa> {
 protected:
  [[nodiscard]] std::unique_ptr<Backend> make() const {
    return make_cpu_backend({1, CpuWeights::f32, std::string(cpu::isa_name(GetParam()))});
  }
};

double in_ulps(float got, double expected) {
  const auto rounded = static_cast<float>(std::abs(expected));
  const double ulp = std::nextafter(rounded, std::numeric_limits<float>::infinity()) -
                     static_cast<double>(rounded);
  return std::abs(got - expected) / ulp;
}

/// Arguments from -range to range, dense near 0.
std::vector<float> arguments(float range) {
  std::vector<float> x;
  constexpr int kSteps = 20001;
  for (int i = -kSteps; i <= kSteps; ++i) {
    const float part = static_cast<float>(i) / kSteps;
    x.push_back(range * part * std::abs(part));
  }
  return x;
}

TEST_P(CpuFunctions, SiluIsAccurate) {
  const auto be = make();
  auto weights = std::make_unique<float[]>(2);  // gate = x, value = 1 through its bias
  weights[0] = 1.0F;
  const std::vector<float> bias = {0.0F, 1.0F};
  const Matrix m = be->upload_matrix(std::move(weights), 2, 1, bias, Epilogue::gated);
  const std::vector<float> x = arguments(80.0F);
  std::vector<float> y(x.size());
  be->linear(m, in_rows(x, 1), in_rows(y, 1), Epilogue::gated);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = x[i] / (1.0 + std::exp(-static_cast<double>(x[i])));
    worst = std::max(worst, in_ulps(y[i], exact));
  }
  EXPECT_LE(worst, GetParam() == cpu::Isa::sse4 ? 3.0 : 2.0);  // without fused multiply-adds: more
  const std::vector<float> odd = {-1e30F, -200.0F, 200.0F, 1e30F,
                                  std::numeric_limits<float>::quiet_NaN()};
  be->linear(m, in_rows(odd, 1), in_rows(y, 1), Epilogue::gated);
  EXPECT_EQ(y[0], 0.0F);
  EXPECT_EQ(y[1], 0.0F);
  EXPECT_EQ(y[2], 200.0F);
  EXPECT_EQ(y[3], 1e30F);
  EXPECT_TRUE(std::isnan(y[4]));
}

TEST_P(CpuFunctions, SoftplusIsAccurate) {
  const auto be = make();
  const std::vector<float> x = arguments(60.0F);
  std::vector<float> raw;
  for (const float v : x) raw.insert(raw.end(), {v, 0.0F, v, 0.0F});
  be->distribution(in_rows(raw, 4), true);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::log1p(std::exp(static_cast<double>(x[i])));
    const double scale = std::max(exact, 0x1p-23);
    worst = std::max(worst, in_ulps(raw[4 * i + 2], scale));
    EXPECT_LE(in_ulps(raw[4 * i], 2 + scale), 2.0) << x[i];
    EXPECT_EQ(raw[4 * i + 3], 1.0F);
  }
  EXPECT_LE(worst, 3.0);
}

TEST_P(CpuFunctions, NotANumberIsNotHidden) {
  const auto be = make();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t at = 0; at < 8; ++at) {
    std::vector<float> raw(8, 0.5F);  // [4][2]
    raw[at] = nan;
    be->distribution(in_rows(raw, 8), true);
    EXPECT_TRUE(std::isnan(raw[at])) << at;
  }
  std::vector<float> x(40, 1.0F);
  x[33] = nan;
  const std::vector<float> gain(40, 1.0F);
  std::vector<float> y(40);
  be->rms_norm(in_rows(x, 40), in_rows(gain, 40), in_rows(y, 40));
  EXPECT_TRUE(std::isnan(y[0]));
  Block b;
  b.tokens = b.suffix_capacity = 2;
  const Batch batch{&b, nullptr, 1, 2, 2};
  std::vector<float> qkv(static_cast<std::size_t>(2) * 3 * 4, 1.0F);
  std::vector<float> keys(8, 1.0F);
  std::vector<float> out(8);
  keys[5] = nan;  // of the second token: the first does not see it
  be->time_attention(batch, in_rows(qkv, 12), {in_rows(keys, 4), in_rows(qkv, 4)}, in_rows(out, 4),
                     1, false);
  EXPECT_EQ(out[0], 1.0F);
  EXPECT_TRUE(std::isnan(out[4]));
}

INSTANTIATE_TEST_SUITE_P(All, CpuFunctions, testing::ValuesIn(cpu::available_isas()),
                         [](const auto& at) { return std::string(cpu::isa_name(at.param)); });

TEST(CpuCeilings, AreMeasured) {
  ThreadTeam team(1);
  for (const cpu::Isa isa : cpu::available_isas()) {
    const cpu::Ceilings c = cpu::measure_ceilings(team, isa, 0.02);
    EXPECT_GT(c.f32_flops, 1e7);
    EXPECT_GE(c.bf16_flops, 1e7);
    EXPECT_GT(c.read_bytes, 1e7);
  }
}

}  // namespace
}  // namespace toto
