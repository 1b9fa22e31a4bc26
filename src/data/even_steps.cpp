// SPDX-License-Identifier: Apache-2.0
#include "data/even_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace toto::data {
namespace {

constexpr std::int64_t kFirst = 900'000'000, kEnd = 4'102'444'800;  // 1998 to 2100, seconds
constexpr double kDay = 86'400;

/// How many units a second has; 0 where `value` is not in those years in any unit.
std::int64_t units_in_second(std::int64_t value) {
  std::int64_t units = 1;
  while (value / units >= kEnd && units < 1'000'000'000) units *= 1000;
  return value / units >= kFirst && value / units < kEnd ? units : 0;
}

/// Seconds that people choose as a step; below one second 1, 2 and 5 hundredths and tenths.
bool is_chosen(double seconds) {
  constexpr auto kSteps = std::to_array<double>(
      {0.01,       0.02,        0.05, 0.1,        0.2,        0.25,       0.5,
       1,          2,           3,    4,          5,          6,          10,
       12,         15,          20,   30,         40,         60,         120,
       180,        240,         300,  360,        600,        720,        900,
       1200,       1800,        3600, 2 * 3600.0, 3 * 3600.0, 4 * 3600.0, 6 * 3600.0,
       8 * 3600.0, 12 * 3600.0, kDay, 2 * kDay,   7 * kDay,   14 * kDay,  28 * kDay});
  constexpr double kRoom = 0.005;
  return std::ranges::any_of(kSteps,
                             [&](double step) { return std::abs(seconds - step) <= kRoom * step; });
}

/// All of them as long as a month, a quarter or a year can be, give or take an hour.
bool are_months(std::span<const double> sorted) {
  constexpr double kHour = 3600;
  const auto within = [&](double least, double most) {
    return sorted.front() >= least * kDay - kHour && sorted.back() <= most * kDay + kHour;
  };
  return within(28, 31) || within(90, 92) || within(365, 366);
}

}  // namespace

bool may_be_time(std::span<const std::int64_t> values) {
  return !values.empty() && units_in_second(values.front()) != 0 &&
         units_in_second(values.front()) == units_in_second(values.back());
}

bool goes_on_like_time(std::span<const std::int64_t> values) {
  if (!may_be_time(values)) return false;
  const auto units = static_cast<double>(units_in_second(values.front()));
  std::vector<double> steps;  // seconds
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] == values[i - 1]) continue;
    steps.push_back(std::abs(static_cast<double>(values[i] - values[i - 1])) / units);
  }
  if (steps.empty()) return false;
  std::ranges::sort(steps);
  if (are_months(steps)) return true;
  const double middle = steps[(steps.size() - 1) / 2];
  if (!is_chosen(middle)) return false;
  constexpr double kRoom = 0.05;
  const auto even = std::ranges::count_if(steps, [&](double step) {
    const double times = std::nearbyint(step / middle);
    return times >= 1 && std::abs(step - times * middle) <= kRoom * middle;
  });
  return static_cast<std::size_t>(even) * 10 >= steps.size() * 9;
}

}  // namespace toto::data
