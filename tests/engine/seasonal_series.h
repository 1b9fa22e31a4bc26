// SPDX-License-Identifier: Apache-2.0
// Series with a season, made for a test.
#pragma once

#include <cmath>
#include <functional>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "support/requests.h"

namespace toto::test {

class Noise {
 public:
  explicit Noise(std::uint32_t seed) : random_(seed) {}
  double next() {
    const double radius = std::sqrt(-2 * std::log((random_() + 0.5) / 4294967296.0));
    return radius * std::cos(2 * std::numbers::pi * (random_() + 0.5) / 4294967296.0);
  }

 private:
  std::mt19937 random_;
};

inline std::vector<double> table_of(std::size_t period, Noise& noise) {
  std::vector<double> table;
  table.reserve(period);
  for (std::size_t k = 0; k < period; ++k) table.push_back(noise.next());
  return table;
}

inline std::vector<double> made(std::size_t count,
                                const std::function<double(std::size_t)>& value) {
  std::vector<double> y;
  y.reserve(count);
  for (std::size_t t = 0; t < count; ++t) y.push_back(value(t));
  return y;
}

inline OwnedSeries owned(const std::vector<std::vector<double>>& rows) {
  OwnedSeries s;
  s.id = "seasonal";
  s.variates = rows.size();
  for (const std::vector<double>& row : rows) {
    for (const double value : row) s.values.push_back(static_cast<float>(value));
  }
  return s;
}

inline constexpr std::size_t kHorizon = 20;

inline ForecastOptions options_with(const std::string& views) {
  ForecastOptions options;
  options.horizon = kHorizon;
  options.num_samples = 16;
  options.levels = {0.1, 0.5, 0.9};
  options.guards.clamp = 0;
  options.views = parse_views(views);
  return options;
}

}  // namespace toto::test
