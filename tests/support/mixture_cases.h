// SPDX-License-Identifier: Apache-2.0
// Mixtures that tests of exact statistics share: the ordinary, the degenerate and the extreme.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/draw.h"
#include "support/mixture_oracle.h"

namespace toto {

/// What a network gives: `count` components around 0. `spread` moves them apart.
inline MixtureParameters network_mixture(std::uint64_t seed, int count, double spread = 1) {
  MixtureParameters p;
  for (int k = 0; k < count; ++k) {
    const auto word = static_cast<std::uint32_t>(k);
    const PhiloxWords a = draw_words(seed, {.sample = word});
    const PhiloxWords b = draw_words(seed, {.sample = word, .step = 1});
    p.df.push_back(2 - 3 * std::log(uniform32(a.x[0])));
    p.loc.push_back(spread * draw_student_t(1e30, b));
    p.scale.push_back(0.02 + uniform32(a.x[1]));
    p.probability.push_back(std::exp(-6 * uniform32(a.x[2])));
  }
  return p;
}

inline std::vector<std::pair<std::string, MixtureParameters>> mixture_cases() {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  return {
      {"df 2", {{2}, {0}, {1}, {1}}},
      {"df just above 2", {{2.0000002}, {-7}, {3}, {1}}},
      {"df 5", {{5}, {100}, {0.01}, {1}}},
      {"df 39.99", {{39.99}, {0}, {1}, {1}}},
      {"df 40", {{40}, {0}, {1}, {1}}},
      {"df 1000", {{1000}, {0}, {1}, {1}}},
      {"df 1e8", {{1e8}, {0}, {1}, {1}}},
      {"tiny", {{3, 6}, {1e-30, -2e-30}, {1e-30, 3e-30}, {0.4, 0.6}}},
      {"huge", {{3, 6}, {1e30, -2e30}, {1e30, 3e30}, {0.4, 0.6}}},
      {"scales 60 orders apart", {{4, 3}, {0, 0}, {1e-30, 1e30}, {0.5, 0.5}}},
      {"probability 0", {{kNaN, 3, 0, 7}, {kNaN, 1, 2, -1}, {0, 1, -1, 2}, {0, 0.7, 0, 0.3}}},
      {"probabilities that sum to 3", {{3, 7}, {0, 1}, {1, 2}, {1, 2}}},
      {"one dominant component", {{4, 3, 9}, {0, 20, -30}, {1, 0.1, 5}, {1, 1e-5, 1e-7}}},
      {"hidden bump", {{100, 100}, {0, 21}, {1e5, 1}, {0.9999, 0.0001}}},
      {"far apart, heavy tails", {{2.5, 2.1}, {-1e3, 1e3}, {1, 1}, {0.3, 0.7}}},
      {"far apart, light tails", {{200, 300}, {-30, 30}, {1, 1}, {0.3, 0.7}}},
      {"spikes", {{3, 3, 3, 3}, {0, 1, 2, 3}, {1e-6, 1e-6, 1e-6, 1e-6}, {1, 2, 3, 4}}},
      {"spike on a slope", {{3, 8}, {0.3, 0}, {1e-7, 1}, {0.2, 0.8}}},
      {"high level", {{4, 6}, {1e9, 1e9 + 1}, {0.5, 2}, {0.5, 0.5}}},
      {"network", network_mixture(1, 24)},
      {"network, heavy overlap", network_mixture(2, 24, 0.1)},
      {"network, spread out", network_mixture(3, 24, 10)},
  };
}

}  // namespace toto
