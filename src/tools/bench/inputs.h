// SPDX-License-Identifier: Apache-2.0
// The series of a workload, from a fixed formula.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "toto/tools/bench.hpp"

namespace toto {

/// Series with two seasons, a trend and a little noise; no two alike.
struct BenchInputs {
  std::vector<std::vector<float>> values;
  std::vector<std::string> ids;
  std::vector<Series> series;

  explicit BenchInputs(const Workload& w) {
    for (std::size_t i = 0; i < w.series; ++i) {
      auto& all = values.emplace_back();
      ids.push_back("bench-" + std::to_string(i));
      for (std::size_t v = 0; v < w.variates; ++v) {
        for (std::size_t t = 0; t < w.context; ++t) {
          const auto x = static_cast<double>(t);
          const double phase = static_cast<double>(i * 7 + v);
          all.push_back(static_cast<float>(100 + 0.01 * x + 5 * std::sin(x * 0.26 + phase) +
                                           2 * std::sin(x * 0.037 * (1 + phase)) +
                                           std::sin(x * x * 0.37 + phase)));
        }
      }
    }
    for (std::size_t i = 0; i < w.series; ++i) {
      Series& s = series.emplace_back();
      s.id = ids[i];
      s.variates = w.variates;
      s.steps = w.context;
      s.values = values[i];
    }
  }
};

}  // namespace toto
