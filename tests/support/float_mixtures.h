// SPDX-License-Identifier: Apache-2.0
// Mixtures as float32 holds them, and how far a quantile in float32 is from theirs.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "statistics/mixture.h"
#include "support/mixture_cases.h"

namespace toto::test {

/// Parameters [4][K] as float32 has them; a mixture that float32 cannot hold is left out.
struct FloatMixture {
  std::string name;
  std::size_t components = 0;
  std::vector<float> params;
  Mixture exact{0};
};

inline std::vector<FloatMixture> float_mixtures() {
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
  std::vector<FloatMixture> out;
  for (const auto& [name, p] : all) {
    FloatMixture c{name, p.size(), {}, Mixture(p.size())};
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

inline const std::vector<float> kScores = {-8.2F, -6,   -4.5F, -3.1F, -2,   -1.3F, -0.6F, -0.1F,
                                           0,     0.2F, 0.7F,  1.5F,  2.2F, 3.3F,  5,     7.9F};

/// The distance of the logit of x from that of Phi(z); 0 where a neighbouring float is beyond it.
inline double logit_miss(const Mixture& mixture, double z, float x) {
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

}  // namespace toto::test
