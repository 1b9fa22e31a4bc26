// SPDX-License-Identifier: Apache-2.0
// Calendar periods that a time axis can be divided into, in UTC and milliseconds since 1970.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace toto::plot {

constexpr std::int64_t kSecond = 1000;
constexpr std::int64_t kMinute = 60 * kSecond;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kDay = 24 * kHour;

/// Years 1 to 9999: what is drawn as dates.
[[nodiscard]] bool in_calendar(std::int64_t ms);

enum class Unit { millisecond, second, minute, hour, day, week, month, year };

struct Period {
  Unit unit;
  int count;  ///< so many units

  [[nodiscard]] double typical_ms() const;
  /// Start of the period that holds `ms`. Weeks start on Monday.
  [[nodiscard]] std::int64_t floor(std::int64_t ms) const;
  /// Start of the period after the one that starts at `start`.
  [[nodiscard]] std::int64_t next(std::int64_t start) const;
};

/// All periods that make round ticks, from a millisecond to a thousand years, ascending.
[[nodiscard]] std::span<const Period> periods();

[[nodiscard]] std::string format_year(std::int64_t ms);     ///< 2024
[[nodiscard]] std::string format_quarter(std::int64_t ms);  ///< Q1
[[nodiscard]] std::string format_month(std::int64_t ms);    ///< Jan
[[nodiscard]] std::string format_day(std::int64_t ms);      ///< 5 Jan
[[nodiscard]] std::string format_date(std::int64_t ms);     ///< 5 Jan 2024
/// 14:05, 14:05:30 or 14:05:30.250, as fine as `unit` asks for.
[[nodiscard]] std::string format_clock(std::int64_t ms, Unit unit);

}  // namespace toto::plot
