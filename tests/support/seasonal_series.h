// SPDX-License-Identifier: Apache-2.0
// Five made series with a day and a week in them, for measurements of missing values at the end.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

namespace toto::test {

/// Normal numbers that are the same on every machine: splitmix64 (Steele, Lea, Flood, 2014) and the
/// transform of Box and Muller.
class MadeNoise {
 public:
  explicit MadeNoise(std::uint64_t seed) : state_(seed) {}
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  double uniform() {  // in (0, 1)
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    z ^= z >> 31U;
    return (static_cast<double>(z >> 11U) + 0.5) * 0x1p-53;
  }
  std::uint64_t state_;
};

inline constexpr std::size_t kSeasonalSeries = 5;

/// Steps of a day: the first three series are hourly, the others every 30 and every 15 minutes.
inline std::size_t steps_of_day(std::size_t which) {
  constexpr std::array<std::size_t, kSeasonalSeries> kSteps = {24, 24, 24, 48, 96};
  return kSteps[which];
}

/// Requests that fall at weekends, a temperature-like one with white noise, a multiplicative one,
/// one with a trend, and one with flat nights; noise with a memory of its own.
inline std::vector<float> seasonal_series(std::size_t which, std::size_t steps) {
  constexpr std::array<double, kSeasonalSeries> kMemory = {0.5, 0.0, 0.8, 0.6, 0.7};
  MadeNoise source(100 + which);
  const double memory = kMemory[which];
  const auto day = static_cast<double>(steps_of_day(which));
  std::vector<float> out(steps);
  double noise = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    const auto t = static_cast<double>(i);
    noise = memory * noise + std::sqrt(1 - memory * memory) * source.normal();
    const double turn = 2 * std::numbers::pi * t / day;
    const double daily = std::sin(turn - 1.9) + 0.4 * std::sin(2 * turn + 0.6);
    const double weekend = static_cast<std::size_t>(t / day) % 7 >= 5 ? 1 : 0;
    double value = 0;
    switch (which) {
      case 0:
        value = 600 + 160 * daily * (1 - 0.6 * weekend) - 120 * weekend + 18 * noise;
        break;
      case 1:
        value = 40 + 12 * daily - 9 * weekend + 2.5 * noise;
        break;
      case 2:
        value = 1000 * std::exp(0.35 * daily - 0.5 * weekend + 0.06 * noise);
        break;
      case 3:
        value = 50 + 20 * daily - 14 * weekend + 0.0006 * t + 4 * noise;
        break;
      default:
        value = 2000 + 500 * std::max(daily, -0.6) * (1 - 0.5 * weekend) + 70 * noise;
    }
    out[i] = static_cast<float>(value);
  }
  return out;
}

}  // namespace toto::test
