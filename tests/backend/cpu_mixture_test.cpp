// SPDX-License-Identifier: Apache-2.0
// Mixtures in vectors against the same in double: tails and the way back, on hostile mixtures too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "backend/cpu/isa.h"
#include "backend/cpu/mixture_kernels.h"
#include "support/float_mixtures.h"

namespace toto {
namespace {

using cpu::Isa;
using cpu::kMaxMixtures;
using cpu::MixtureKernels;
using test::float_mixtures;
using test::FloatMixture;
using test::kScores;
using test::logit_miss;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Room {
  Room(const MixtureKernels& kernels, std::size_t components)
      : memory(kernels.room(components) + 16) {
    const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
    first = memory.data() + (64 - at % 64) % 64 / sizeof(float);
  }
  std::vector<float> memory;
  float* first;
};

TEST(CpuMixture, TailsAreThoseInDouble) {
  for (const Isa isa : cpu::available_isas()) {
    const MixtureKernels& kernels = cpu::mixture_kernels(isa);
    double worst = 0;
    for (const FloatMixture& c : float_mixtures()) {
      Room room(kernels, c.components);
      const std::size_t used =
          kernels.take(c.params.data(), 0, kernels.lanes, c.components, room.first);
      for (const float z : kScores) {
        const auto x = static_cast<float>(c.exact.at_normal_score(z));
        const std::vector<float> all(kMaxMixtures, x);
        float lower[kMaxMixtures], upper[kMaxMixtures];
        kernels.tails(room.first, used, all.data(), lower, upper);
        const double exact[2] = {c.exact.cdf(x), c.exact.upper(x)};
        const double found[2] = {lower[0], upper[0]};
        for (int side = 0; side < 2; ++side) {
          if (exact[side] < 1e-16) continue;  // nobody draws there
          const double off = std::abs(std::log(found[side] / exact[side]));
          worst = std::max(worst, off / (1 + z * z));
          EXPECT_LT(off, 1e-6 * (1 + z * z)) << c.name << " " << z;
        }
      }
    }
    RecordProperty("largest_error_of_log_tail_" + std::string(cpu::isa_name(isa)),
                   std::to_string(worst * 1e6) + "e-6");
  }
}

TEST(CpuMixture, TheWayBackIsThatInDouble) {
  for (const Isa isa : cpu::available_isas()) {
    const MixtureKernels& kernels = cpu::mixture_kernels(isa);
    double worst = 0;
    for (const FloatMixture& c : float_mixtures()) {
      Room room(kernels, c.components);
      const std::size_t used =
          kernels.take(c.params.data(), 0, kernels.lanes, c.components, room.first);
      for (std::size_t at = 0; at < kScores.size(); at += kernels.lanes) {
        float x[kMaxMixtures];
        kernels.at_scores(room.first, used, kScores.data() + at, x);
        for (std::size_t i = 0; i < kernels.lanes; ++i) {
          const double z = kScores[at + i];
          const double off = logit_miss(c.exact, z, x[i]);
          worst = std::max(worst, off / (1 + z * z));
          EXPECT_LT(off, 1e-6 * (1 + z * z)) << c.name << " z " << z << " x " << x[i];
        }
      }
    }
    RecordProperty("largest_miss_of_the_logit_" + std::string(cpu::isa_name(isa)),
                   std::to_string(worst * 1e6) + "e-6");
  }
}

/// A lane's bits depend on its own mixture and score, whatever is beside it.
TEST(CpuMixture, WhatIsBesideALaneChangesNoBit) {
  const std::vector<FloatMixture> all = float_mixtures();
  constexpr std::size_t kRoom = 24;
  for (const Isa isa : cpu::available_isas()) {
    const MixtureKernels& kernels = cpu::mixture_kernels(isa);
    std::vector<float> params;  // [cases][4][kRoom], filled up with components of probability 0
    for (const FloatMixture& c : all) {
      for (std::size_t part = 0; part < 4; ++part) {
        const auto from = c.params.begin() + static_cast<std::ptrdiff_t>(part * c.components);
        params.insert(params.end(), from, from + static_cast<std::ptrdiff_t>(c.components));
        params.resize(params.size() + kRoom - c.components, part == 3 ? 0.0F : kNaN);
      }
    }
    Room room(kernels, kRoom);
    const auto drawn = [&](std::size_t first, std::size_t n) {
      std::vector<float> x(kMaxMixtures);
      const std::vector<float> z(kMaxMixtures, 0.9F);
      const std::size_t used =
          kernels.take(params.data() + first * 4 * kRoom, 4 * kRoom, n, kRoom, room.first);
      kernels.at_scores(room.first, used, z.data(), x.data());
      return x;
    };
    for (std::size_t first = 0; first + kernels.lanes <= all.size(); first += kernels.lanes) {
      const std::vector<float> together = drawn(first, kernels.lanes);
      for (std::size_t i = 0; i < kernels.lanes; ++i) {
        EXPECT_EQ(drawn(first + i, 1)[0], together[i]) << all[first + i].name;
      }
    }
  }
}

TEST(CpuMixture, WhatIsNotValidIsNaN) {
  const MixtureKernels& kernels = cpu::mixture_kernels(cpu::find_isa(""));
  const std::vector<std::vector<float>> bad = {{3, 0, 1, 0},    {3, 0, 1, kNaN}, {1, 0, 1, 1},
                                               {3, kNaN, 1, 1}, {3, 0, 0, 1},    {kNaN, 0, 1, 1}};
  for (const auto& params : bad) {
    Room room(kernels, 1);
    const std::size_t used = kernels.take(params.data(), 0, kernels.lanes, 1, room.first);
    const std::vector<float> z(kMaxMixtures, 0.5F);
    std::vector<float> x(kMaxMixtures);
    kernels.at_scores(room.first, used, z.data(), x.data());
    EXPECT_TRUE(std::isnan(x[0]));
  }
}

}  // namespace
}  // namespace toto
