// SPDX-License-Identifier: Apache-2.0
// Timestamps and intervals as text.
#include <fmt/format.h>

#include <array>
#include <iterator>

#include "data/calendar.h"
#include "data/pattern.h"
#include "data/zone.h"
#include "toto/tools/data.hpp"

namespace toto::data {
namespace {

void append_fraction(std::string& text, std::int64_t ms, int digits) {
  if (digits == 0) return;
  std::string fraction = fmt::format("{:03}", ms);
  fraction.resize(static_cast<std::size_t>(digits), '0');
  text.append(".").append(fraction);
}

std::string format_epoch(std::int64_t time, const TimeStyle& style) {
  if (style.epoch_decimals == 3) return fmt::format("{}", time);
  if (style.epoch_decimals == 6) return fmt::format("{}", time * 1'000);
  if (style.epoch_decimals == 9) return fmt::format("{}", time * 1'000'000);
  const std::int64_t size = time < 0 ? -time : time;
  std::string text = fmt::format("{}{}", time < 0 ? "-" : "", size / 1000);
  append_fraction(text, size % 1000, style.fraction_digits);
  return text;
}

std::string zone_text(const TimeStyle& style) {
  if (style.zone == TimeStyle::Zone::none) return "";
  if (style.zone == TimeStyle::Zone::z) return "Z";
  const int offset = style.zone_offset_minutes;
  const int size = offset < 0 ? -offset : offset;
  std::string text = fmt::format("{}{:02}", offset < 0 ? '-' : '+', size / 60);
  if (style.zone == TimeStyle::Zone::hours && size % 60 == 0) return text;
  if (style.zone != TimeStyle::Zone::compact) text.append(":");
  return text.append(fmt::format("{:02}", size % 60));
}

std::string format_calendar(std::int64_t time, const TimeStyle& style) {
  const int offset =
      style.timezone.empty() ? style.zone_offset_minutes : Zone(style.timezone).offset_at(time);
  const std::int64_t local = time + offset * std::int64_t{60'000};
  if (!style.pattern.empty()) {
    return write_pattern(local, style.pattern, style.fraction_digits, offset);
  }
  const std::chrono::year_month_day date = date_of(floor_div(local, kDayMs));
  const int year = static_cast<int>(date.year());
  std::string text = fmt::format("{:04}", year);
  if (style.form == TimeStyle::Form::year) return text;
  const auto append_part = [&](unsigned part) {
    if (style.date_separator != '\0') text.push_back(style.date_separator);
    text.append(fmt::format("{:02}", part));
  };
  append_part(static_cast<unsigned>(date.month()));
  if (style.form == TimeStyle::Form::month) return text;
  append_part(static_cast<unsigned>(date.day()));
  if (style.form == TimeStyle::Form::date) return text;
  const std::int64_t clock = floor_mod(local, kDayMs);
  text.append(
      fmt::format("{}{:02}:{:02}", style.time_separator, clock / 3'600'000, clock / 60'000 % 60));
  if (style.seconds) {
    text.append(fmt::format(":{:02}", clock / 1000 % 60));
    append_fraction(text, clock % 1000, style.fraction_digits);
  }
  return text.append(zone_text(style));
}

std::string plural(std::int64_t count, std::string_view unit) {
  return fmt::format("{} {}{}", count, unit, count == 1 ? "" : "s");
}

std::string duration(std::int64_t ms) {
  struct Unit {
    std::int64_t ms;
    std::string_view name;
  };
  constexpr std::array<Unit, 5> kUnits = {Unit{7 * kDayMs, "week"}, Unit{kDayMs, "day"},
                                          Unit{3'600'000, "hour"}, Unit{60'000, "minute"},
                                          Unit{1000, "second"}};
  for (const Unit& unit : kUnits) {
    if (ms % unit.ms == 0) return plural(ms / unit.ms, unit.name);
  }
  return plural(ms, "millisecond");
}

std::string step_text(const Interval& interval) {
  switch (interval.unit) {
    case Interval::Unit::milliseconds:
      return duration(interval.count);
    case Interval::Unit::business_day:
      return "business days";
    case Interval::Unit::month:
      return (interval.count % 12 == 0 ? plural(interval.count / 12, "year")
                                       : plural(interval.count, "month")) +
             (interval.day == 31 ? ", at the end of the month" : "");
    case Interval::Unit::index:
      break;
  }
  return plural(interval.count, "step");
}

}  // namespace

std::string format_time(std::int64_t time, const TimeStyle& style) {
  switch (style.form) {
    case TimeStyle::Form::index:
      return fmt::format("{}", time);
    case TimeStyle::Form::epoch:
      return format_epoch(time, style);
    default:
      return format_calendar(time, style);
  }
}

std::string describe(const TimeStyle& style) {
  if (!style.pattern.empty()) return style.pattern;
  const bool compact = style.date_separator == '\0';
  switch (style.form) {
    case TimeStyle::Form::index:
      return "row number";
    case TimeStyle::Form::year:
      return "year";
    case TimeStyle::Form::month:
      return compact ? "YYYYMM" : fmt::format("YYYY{0}MM", style.date_separator);
    case TimeStyle::Form::date:
      return compact ? "YYYYMMDD" : fmt::format("YYYY{0}MM{0}DD", style.date_separator);
    case TimeStyle::Form::datetime:
      break;
    case TimeStyle::Form::epoch:
      return style.epoch_decimals == 0   ? "epoch in seconds"
             : style.epoch_decimals == 3 ? "epoch in milliseconds"
             : style.epoch_decimals == 6 ? "epoch in microseconds"
                                         : "epoch in nanoseconds";
  }
  return fmt::format("YYYY{0}MM{0}DD{1}hh:mm{2}{3}", style.date_separator, style.time_separator,
                     style.seconds ? ":ss" : "", zone_text(style));
}

std::string describe(const Interval& interval) {
  const std::string step = step_text(interval);
  return interval.regular ? step : fmt::format("irregular (median {})", step);
}

}  // namespace toto::data
