// SPDX-License-Identifier: Apache-2.0
// Calendar arithmetic on top of std::chrono.
#include "tools/plot/calendar.h"

#include <fmt/format.h>

#include <array>
#include <chrono>

namespace toto::plot {
namespace {

using std::chrono::sys_days;
using std::chrono::year_month_day;

std::int64_t floor_to(std::int64_t value, std::int64_t step, std::int64_t origin = 0) {
  const std::int64_t shifted = value - origin;
  const std::int64_t rest = ((shifted % step) + step) % step;
  return value - rest;
}

year_month_day date_of(std::int64_t ms) {
  return year_month_day(sys_days(std::chrono::days(floor_to(ms, kDay) / kDay)));
}

std::int64_t to_ms(year_month_day date) { return sys_days(date).time_since_epoch().count() * kDay; }

// Months since the start of year 0: what periods of months and years count in.
std::int64_t month_number(std::int64_t ms) {
  const year_month_day date = date_of(ms);
  return std::int64_t{static_cast<int>(date.year())} * 12 + static_cast<unsigned>(date.month()) - 1;
}

std::int64_t month_start(std::int64_t number) {
  const std::int64_t first = floor_to(number, 12);
  return to_ms(std::chrono::year(static_cast<int>(first / 12)) /
               std::chrono::month(static_cast<unsigned>(number - first) + 1) / 1);
}

bool by_month(Unit unit) { return unit == Unit::month || unit == Unit::year; }

std::int64_t unit_ms(Unit unit) {
  switch (unit) {
    case Unit::millisecond:
      return 1;
    case Unit::second:
      return kSecond;
    case Unit::minute:
      return kMinute;
    case Unit::hour:
      return kHour;
    case Unit::day:
      return kDay;
    case Unit::week:
      return 7 * kDay;
    case Unit::month:
      return 30 * kDay;
    case Unit::year:
      return 365 * kDay;
  }
  return 1;
}

constexpr std::array<Period, 44> kPeriods = {{
    {Unit::millisecond, 1},   {Unit::millisecond, 2},   {Unit::millisecond, 5},
    {Unit::millisecond, 10},  {Unit::millisecond, 20},  {Unit::millisecond, 50},
    {Unit::millisecond, 100}, {Unit::millisecond, 200}, {Unit::millisecond, 500},
    {Unit::second, 1},        {Unit::second, 2},        {Unit::second, 5},
    {Unit::second, 10},       {Unit::second, 15},       {Unit::second, 30},
    {Unit::minute, 1},        {Unit::minute, 2},        {Unit::minute, 5},
    {Unit::minute, 10},       {Unit::minute, 15},       {Unit::minute, 30},
    {Unit::hour, 1},          {Unit::hour, 2},          {Unit::hour, 3},
    {Unit::hour, 6},          {Unit::hour, 12},         {Unit::day, 1},
    {Unit::day, 2},           {Unit::week, 1},          {Unit::week, 2},
    {Unit::month, 1},         {Unit::month, 2},         {Unit::month, 3},
    {Unit::month, 6},         {Unit::year, 1},          {Unit::year, 2},
    {Unit::year, 5},          {Unit::year, 10},         {Unit::year, 20},
    {Unit::year, 50},         {Unit::year, 100},        {Unit::year, 200},
    {Unit::year, 500},        {Unit::year, 1000},
}};

}  // namespace

bool in_calendar(std::int64_t ms) { return ms >= -62'135'596'800'000 && ms < 253'402'300'800'000; }

double Period::typical_ms() const { return static_cast<double>(unit_ms(unit)) * count; }

std::int64_t Period::floor(std::int64_t ms) const {
  if (by_month(unit)) {
    return month_start(floor_to(month_number(ms), count * (unit == Unit::year ? 12 : 1)));
  }
  const std::int64_t monday = unit == Unit::week ? -3 * kDay : 0;  // 1970 began on a Thursday
  return floor_to(ms, unit_ms(unit) * count, monday);
}

std::int64_t Period::next(std::int64_t start) const {
  if (by_month(unit)) {
    return month_start(month_number(start) + count * (unit == Unit::year ? 12 : 1));
  }
  return start + unit_ms(unit) * count;
}

std::span<const Period> periods() { return kPeriods; }

std::string format_year(std::int64_t ms) {
  return fmt::format("{}", static_cast<int>(date_of(ms).year()));
}

std::string format_quarter(std::int64_t ms) {
  return fmt::format("Q{}", (static_cast<unsigned>(date_of(ms).month()) + 2) / 3);
}

std::string format_month(std::int64_t ms) {
  constexpr std::array<const char*, 12> kNames = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  return kNames[static_cast<unsigned>(date_of(ms).month()) - 1];
}

std::string format_day(std::int64_t ms) {
  return fmt::format("{} {}", static_cast<unsigned>(date_of(ms).day()), format_month(ms));
}

std::string format_date(std::int64_t ms) {
  return fmt::format("{} {}", format_day(ms), format_year(ms));
}

std::string format_clock(std::int64_t ms, Unit unit) {
  const std::int64_t in_day = ms - floor_to(ms, kDay);
  std::string text = fmt::format("{:02}:{:02}", in_day / kHour, in_day / kMinute % 60);
  if (unit <= Unit::second) text += fmt::format(":{:02}", in_day / kSecond % 60);
  if (unit == Unit::millisecond) text += fmt::format(".{:03}", in_day % kSecond);
  return text;
}

}  // namespace toto::plot
