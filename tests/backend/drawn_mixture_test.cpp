// SPDX-License-Identifier: Apache-2.0
// What a device draws coherent paths with, on the host: one thread instead of several has all
// components. Against the same in double, on hostile mixtures too.
#include "backend/cuda/statistics/drawn_mixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "support/float_mixtures.h"

namespace toto {
namespace {

using test::float_mixtures;
using test::FloatMixture;
using test::kScores;

constexpr int kAtOnce = 32;

struct Alone {
  static constexpr int kThreads = 1;
  float (*terms)[cuda::drawn::kTerms];
  const float* made_with;
  [[nodiscard]] float& term(int i, int k) const { return terms[i][k]; }
  [[nodiscard]] const float* weights() const { return made_with; }
  static int thread() { return 0; }
  static float sum(float v) { return v; }
  static float highest(float v) { return v; }
  static bool all(bool v) { return v; }
};
/// A mixture of one thread and what lies elsewhere on a device.
template <int kOwn>
class OfOne {
 public:
  OfOne(const float* params, std::int32_t components) {
    for (int i = 0; i < cuda::drawn::kWeights; ++i)
      weights_[i] = cuda::drawn::alternating_weight(i);
    mixture_.emplace(Alone{terms_, weights_}, params, components);
  }
  [[nodiscard]] cuda::drawn::Tails tails(float x) const { return mixture_->tails(x); }
  [[nodiscard]] float at_score(float z) const { return mixture_->at_score(z); }

 private:
  float terms_[kOwn > 0 ? kOwn : 1][cuda::drawn::kTerms];
  float weights_[cuda::drawn::kWeights];
  std::optional<cuda::drawn::Mixture<Alone, kOwn>> mixture_;
};
using Ready = OfOne<kAtOnce>;
using Anew = OfOne<0>;

// The functions of a device round a little more than those of the host.
constexpr double kBound = 1e-6;

TEST(DrawnMixture, TailsAreThoseInDouble) {
  double worst = 0;
  for (const FloatMixture& c : float_mixtures()) {
    const Ready mixture(c.params.data(), static_cast<std::int32_t>(c.components));
    for (const float z : kScores) {
      const auto x = static_cast<float>(c.exact.at_normal_score(z));
      const cuda::drawn::Tails tails = mixture.tails(x);
      const double exact[2] = {c.exact.cdf(x), c.exact.upper(x)};
      const double found[2] = {tails.lower, tails.upper};
      for (int side = 0; side < 2; ++side) {
        if (exact[side] < 1e-16) continue;  // nobody draws there
        const double off = std::abs(std::log(found[side] / exact[side]));
        worst = std::max(worst, off / (1 + z * z));
        EXPECT_LT(off, kBound * (1 + z * z)) << c.name << " " << z;
      }
    }
  }
  RecordProperty("largest_error_of_log_tail", std::to_string(worst * 1e6) + "e-6");
}

TEST(DrawnMixture, TheWayBackIsThatInDouble) {
  double worst = 0;
  for (const FloatMixture& c : float_mixtures()) {
    const Ready mixture(c.params.data(), static_cast<std::int32_t>(c.components));
    for (const float z : kScores) {
      const float x = mixture.at_score(z);
      const double off = test::logit_miss(c.exact, z, x);
      worst = std::max(worst, off / (1 + z * z));
      EXPECT_LT(off, kBound * (1 + z * z)) << c.name << " z " << z << " x " << x;
    }
  }
  RecordProperty("largest_miss_of_the_logit", std::to_string(worst * 1e6) + "e-6");
}

// Where there are too many components to be kept.
TEST(DrawnMixture, MadeAnewTheyAreTheSame) {
  for (const FloatMixture& c : float_mixtures()) {
    const auto components = static_cast<std::int32_t>(c.components);
    const Ready kept(c.params.data(), components);
    const Anew anew(c.params.data(), components);
    for (const float z : kScores) EXPECT_EQ(kept.at_score(z), anew.at_score(z)) << c.name;
  }
}

TEST(DrawnMixture, WhatIsNotValidIsNaN) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::vector<float>> bad = {{3, 0, 1, 0},    {3, 0, 1, kNaN}, {1, 0, 1, 1},
                                               {3, kNaN, 1, 1}, {3, 0, 0, 1},    {kNaN, 0, 1, 1}};
  for (const auto& params : bad) {
    const Ready mixture(params.data(), 1);
    EXPECT_TRUE(std::isnan(mixture.at_score(0.5F)));
    EXPECT_TRUE(std::isnan(mixture.tails(0.5F).lower));
  }
  const std::vector<float> good = {3, 0, 1, 1};
  EXPECT_TRUE(std::isnan(Ready(good.data(), 1).at_score(kNaN)));
}

}  // namespace
}  // namespace toto
