// SPDX-License-Identifier: Apache-2.0
// Days, months and weekdays of the proleptic Gregorian calendar, counted from 1970-01-01.
#pragma once

#include <chrono>
#include <cstdint>

namespace toto::data {

inline constexpr std::int64_t kDayMs = 86'400'000;
inline constexpr std::int64_t kLatestMs = 253'402'300'799'999;  // 9999-12-31 23:59:59.999

constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
constexpr std::int64_t floor_mod(std::int64_t a, std::int64_t b) { return a - floor_div(a, b) * b; }

constexpr std::chrono::year_month_day date_of(std::int64_t day) {
  return std::chrono::sys_days(std::chrono::days(day));
}
constexpr std::int64_t day_of(std::chrono::year_month_day date) {
  return std::chrono::sys_days(date).time_since_epoch().count();
}

/// Months since year 0, so that neighbours differ by 1.
constexpr std::int64_t month_number(std::chrono::year_month_day date) {
  return std::int64_t{static_cast<int>(date.year())} * 12 + static_cast<unsigned>(date.month()) - 1;
}
/// The date in that month on `day`, or on its last day if that comes first.
constexpr std::chrono::year_month_day date_in_month(std::int64_t month, int day) {
  const std::chrono::year_month ym(
      std::chrono::year(static_cast<int>(floor_div(month, 12))),
      std::chrono::month(static_cast<unsigned>(floor_mod(month, 12)) + 1));
  const std::chrono::year_month_day last(ym / std::chrono::last);
  const std::chrono::day wanted(static_cast<unsigned>(day));
  return wanted < last.day() ? ym / wanted : last;
}

/// 0 is Monday. 1970-01-01 was a Thursday.
constexpr int weekday_of(std::int64_t day) { return static_cast<int>(floor_mod(day + 3, 7)); }

/// Mondays to Fridays counted without gap; a weekend counts as the Friday before it.
constexpr std::int64_t business_day_number(std::int64_t day) {
  const int weekday = weekday_of(day);
  return floor_div(day + 3, 7) * 5 + (weekday < 4 ? weekday : 4);
}
constexpr std::int64_t business_day(std::int64_t number) {
  return floor_div(number, 5) * 7 + floor_mod(number, 5) - 3;
}

}  // namespace toto::data
