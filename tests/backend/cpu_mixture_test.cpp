// SPDX-License-Identifier: Apache-2.0
// Mixtures in vectors against the same in double: tails and the way back, on hostile mixtures too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/isa.h"
#include "backend/cpu/mixture_kernels.h"
#include "statistics/mixture.h"
#include "support/mixture_cases.h"

namespace toto {
namespace {

using cpu::Isa;
using cpu::kMaxMixtures;
using cpu::MixtureKernels;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Parameters [4][K] as float32 has them; a mixture that float32 cannot hold is left out.
struct Case {
  std::string name;
  std::size_t components = 0;
  std::vector<float> params;
  Mixture exact{0};
};

std::vector<Case> cases() {
  auto all = mixture_cases();
  for (std::uint64_t seed = 100; seed < 140; ++seed) {
    all.emplace_back("network " + std::to_string(seed),
                     network_mixture(seed, 1 + static_cast<int>(seed) % 24, 0.2));
  }
  for (const double df : {2.0, 2.001, 2.5, 4.0, 6.0, 9.9999, 10.0, 11.0, 25.0, 300.0, 1e12}) {
    all.emplace_back("df " + std::to_string(df), MixtureParameters{{df}, {0.3}, {0.7}, {1}});
  }
  all.emplace_back("a rare, wide one", MixtureParameters{{3, 2.1}, {0, 0}, {1, 50}, {1, 1e-6}});
  all.emplace_back("a gap", MixtureParameters{{50, 50}, {-1, 1}, {0.01, 0.01}, {0.5, 0.5}});
  std::vector<Case> out;
  for (const auto& [name, p] : all) {
    Case c{name, p.size(), {}, Mixture(p.size())};
    for (const auto* part : {&p.df, &p.loc, &p.scale, &p.probability}) {
      for (const double v : *part) c.params.push_back(static_cast<float>(v));
    }
    const std::vector<double> own(c.params.begin(), c.params.end());
    const std::size_t k = p.size();
    const auto part = [&](std::size_t i) { return std::span(own).subspan(i * k, k); };
    c.exact.assign(part(0), part(1), part(2), part(3));
    // Squares of scales are formed, so they must be within float32 as well.
    const bool fits = std::ranges::all_of(p.scale, [](double s) { return s > 1e-12 && s < 1e12; });
    if (fits) out.push_back(std::move(c));
  }
  return out;
}

struct Room {
  Room(const MixtureKernels& kernels, std::size_t components)
      : memory(kernels.room(components) + 16) {
    const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
    first = memory.data() + (64 - at % 64) % 64 / sizeof(float);
  }
  std::vector<float> memory;
  float* first;
};

const std::vector<float> kScores = {-8.2F, -6,   -4.5F, -3.1F, -2,   -1.3F, -0.6F, -0.1F,
                                    0,     0.2F, 0.7F,  1.5F,  2.2F, 3.3F,  5,     7.9F};

TEST(CpuMixture, TailsAreThoseInDouble) {
  for (const Isa isa : cpu::available_isas()) {
    const MixtureKernels& kernels = cpu::mixture_kernels(isa);
    double worst = 0;
    for (const Case& c : cases()) {
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

/// The distance of the logit from where it should be; 0 where a neighbouring float is beyond it.
double miss(const Mixture& mixture, double z, float x) {
  const double lower = 0.5 * std::erfc(-z * std::numbers::sqrt2 / 2);
  const double upper = 0.5 * std::erfc(z * std::numbers::sqrt2 / 2);
  const auto off = [&](float at) {
    return std::log(mixture.cdf(at) / mixture.upper(at)) - std::log(lower / upper);
  };
  constexpr float kInf = std::numeric_limits<float>::infinity();
  float below = x, above = x;
  for (int i = 0; i < 2; ++i) {
    below = std::nextafter(below, -kInf);
    above = std::nextafter(above, kInf);
  }
  return off(below) <= 0 && off(above) >= 0 ? 0
                                            : std::min(std::abs(off(below)), std::abs(off(above)));
}

TEST(CpuMixture, TheWayBackIsThatInDouble) {
  for (const Isa isa : cpu::available_isas()) {
    const MixtureKernels& kernels = cpu::mixture_kernels(isa);
    double worst = 0;
    for (const Case& c : cases()) {
      Room room(kernels, c.components);
      const std::size_t used =
          kernels.take(c.params.data(), 0, kernels.lanes, c.components, room.first);
      for (std::size_t at = 0; at < kScores.size(); at += kernels.lanes) {
        float x[kMaxMixtures];
        kernels.at_scores(room.first, used, kScores.data() + at, x);
        for (std::size_t i = 0; i < kernels.lanes; ++i) {
          const double z = kScores[at + i];
          const double off = miss(c.exact, z, x[i]);
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
  const std::vector<Case> all = cases();
  constexpr std::size_t kRoom = 24;
  for (const Isa isa : cpu::available_isas()) {
    const MixtureKernels& kernels = cpu::mixture_kernels(isa);
    std::vector<float> params;  // [cases][4][kRoom], filled up with components of probability 0
    for (const Case& c : all) {
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
