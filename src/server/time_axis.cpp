// SPDX-License-Identifier: Apache-2.0
#include "server/time_axis.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "core/json.h"
#include "data/calendar.h"
#include "data/digits.h"
#include "data/interval.h"
#include "server/errors.h"

namespace toto::server {
namespace {

using data::Interval;
using data::take;
using data::take_digits;
using Unit = data::Interval::Unit;

constexpr std::int64_t kMinuteMs = 60'000;

struct Word {
  std::string_view word;
  Unit unit;
  std::int64_t count;
};
constexpr std::array<Word, 52> kWords = {{
    {"millisecond", Unit::milliseconds, 1},
    {"ms", Unit::milliseconds, 1},
    {"L", Unit::milliseconds, 1},
    {"second", Unit::milliseconds, 1000},
    {"seconds", Unit::milliseconds, 1000},
    {"sec", Unit::milliseconds, 1000},
    {"S", Unit::milliseconds, 1000},
    {"s", Unit::milliseconds, 1000},
    {"minute", Unit::milliseconds, 60'000},
    {"minutes", Unit::milliseconds, 60'000},
    {"min", Unit::milliseconds, 60'000},
    {"T", Unit::milliseconds, 60'000},
    {"hour", Unit::milliseconds, 3'600'000},
    {"hours", Unit::milliseconds, 3'600'000},
    {"H", Unit::milliseconds, 3'600'000},
    {"h", Unit::milliseconds, 3'600'000},
    {"day", Unit::milliseconds, data::kDayMs},
    {"days", Unit::milliseconds, data::kDayMs},
    {"D", Unit::milliseconds, data::kDayMs},
    {"d", Unit::milliseconds, data::kDayMs},
    {"business_day", Unit::business_day, 1},
    {"B", Unit::business_day, 1},
    {"week", Unit::milliseconds, 7 * data::kDayMs},
    {"weeks", Unit::milliseconds, 7 * data::kDayMs},
    {"W", Unit::milliseconds, 7 * data::kDayMs},
    {"w", Unit::milliseconds, 7 * data::kDayMs},
    {"W-SUN", Unit::milliseconds, 7 * data::kDayMs},
    {"W-MON", Unit::milliseconds, 7 * data::kDayMs},
    {"month", Unit::month, 1},
    {"months", Unit::month, 1},
    {"M", Unit::month, 1},
    {"MS", Unit::month, 1},
    {"ME", Unit::month, 1},
    {"quarter", Unit::month, 3},
    {"quarters", Unit::month, 3},
    {"Q", Unit::month, 3},
    {"QS", Unit::month, 3},
    {"QE", Unit::month, 3},
    {"Q-DEC", Unit::month, 3},
    {"QE-DEC", Unit::month, 3},
    {"QS-OCT", Unit::month, 3},
    {"year", Unit::month, 12},
    {"years", Unit::month, 12},
    {"Y", Unit::month, 12},
    {"y", Unit::month, 12},
    {"YS", Unit::month, 12},
    {"YE", Unit::month, 12},
    {"A", Unit::month, 12},
    {"AS", Unit::month, 12},
    {"A-DEC", Unit::month, 12},
    {"YE-DEC", Unit::month, 12},
    {"YS-JAN", Unit::month, 12},
}};

std::size_t digits_ahead(std::string_view text) {
  std::size_t count = 0;
  while (count < text.size() && text[count] >= '0' && text[count] <= '9') ++count;
  return count;
}

/// The day of a week or an ordinal date; nothing where there is no such day.
std::optional<std::int64_t> day_of_week(int year, int week, int weekday) {
  if (week < 1 || week > 53 || weekday < 1 || weekday > 7) return std::nullopt;
  const auto fourth = data::day_of(std::chrono::year(year) / std::chrono::January / 4);
  const std::int64_t first = fourth - data::weekday_of(fourth);
  const std::int64_t day = first + (week - 1) * 7 + weekday - 1;
  const auto next = data::day_of(std::chrono::year(year + 1) / std::chrono::January / 4);
  if (week == 53 && day - weekday + 1 >= next - data::weekday_of(next)) return std::nullopt;
  return day;
}

std::optional<std::int64_t> day_of_year(int year, int number) {
  const bool leap = std::chrono::year(year).is_leap();
  if (number < 1 || number > (leap ? 366 : 365)) return std::nullopt;
  return data::day_of(std::chrono::year(year) / std::chrono::January / 1) + number - 1;
}

/// The date at the front of `text`, taken away.
std::optional<std::int64_t> take_date(std::string_view& text) {
  const int year = take_digits(text, 4);
  if (year < 1) return std::nullopt;
  const bool extended = take(text, '-');
  if (take(text, 'W')) {
    const int week = take_digits(text, 2);
    int weekday = 1;
    if (extended ? take(text, '-') : digits_ahead(text) > 0) weekday = take_digits(text, 1);
    return day_of_week(year, week, weekday);
  }
  const std::size_t digits = digits_ahead(text);
  if (!extended && digits == 0) return day_of_year(year, 1);
  if (digits == 3) return day_of_year(year, take_digits(text, 3));
  const int month = take_digits(text, 2);
  int day = 1;
  if (extended ? take(text, '-') : true) day = take_digits(text, 2);
  const std::chrono::year_month_day date(std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (month < 1 || day < 1 || !date.ok()) return std::nullopt;
  return data::day_of(date);
}

/// A fraction of a part that takes `size` ms, taken away; 0 where there is none, -1 for a bad one.
std::int64_t take_fraction(std::string_view& text, std::int64_t size, int& shown) {
  if (!text.starts_with('.') && !text.starts_with(',')) return 0;
  text.remove_prefix(1);
  const std::size_t digits = digits_ahead(text);
  if (digits == 0 || digits > 18) return -1;
  const std::string decimal = "0." + std::string(text.substr(0, digits));
  double fraction = 0;
  std::from_chars(decimal.data(), decimal.data() + decimal.size(), fraction);
  text.remove_prefix(digits);
  shown = static_cast<int>(std::min<std::size_t>(digits, 3));
  return static_cast<std::int64_t>(fraction * static_cast<double>(size));
}

/// hh, hh:mm, hh:mm:ss or without colons, with a fraction of the last one.
std::optional<std::int64_t> take_clock(std::string_view& text, data::TimeStyle& style) {
  const int hour = take_digits(text, 2);
  if (hour < 0 || hour > 24) return std::nullopt;
  std::int64_t time = hour * 60 * kMinuteMs;
  std::int64_t unit = 60 * kMinuteMs;
  style.seconds = false;
  const bool extended = text.starts_with(':');
  if (extended ? take(text, ':') : digits_ahead(text) >= 2) {
    const int minute = take_digits(text, 2);
    if (minute < 0 || minute > 59) return std::nullopt;
    time += minute * kMinuteMs;
    unit = kMinuteMs;
    if (extended ? take(text, ':') : digits_ahead(text) >= 2) {
      const int second = take_digits(text, 2);
      if (second < 0 || second > 60) return std::nullopt;  // 60: a leap second
      time += std::min(second, 59) * std::int64_t{1000};
      unit = 1000;
      style.seconds = true;
    }
  }
  int shown = 0;
  const std::int64_t fraction = take_fraction(text, unit, shown);
  if (fraction < 0) return std::nullopt;
  if (fraction > 0 && unit > 1000) style.seconds = true;
  if (unit == 1000) style.fraction_digits = shown;
  time += fraction;
  if (time > data::kDayMs) return std::nullopt;
  return time;
}

bool take_zone(std::string_view& text, data::TimeStyle& style) {
  using Zone = data::TimeStyle::Zone;
  if (text.empty()) return true;
  if (take(text, 'Z') || take(text, 'z')) {
    style.zone = Zone::z;
    return true;
  }
  const bool west = text.starts_with('-');
  if (!west && !text.starts_with('+')) return false;
  text.remove_prefix(1);
  const int hours = take_digits(text, 2);
  int minutes = 0;
  style.zone = Zone::hours;
  if (take(text, ':')) {
    style.zone = Zone::colon;
    minutes = take_digits(text, 2);
  } else if (!text.empty()) {
    style.zone = Zone::compact;
    minutes = take_digits(text, 2);
  }
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return false;
  style.zone_offset_minutes = (west ? -1 : 1) * (hours * 60 + minutes);
  return true;
}

}  // namespace

TimeAxis::TimeAxis(std::int64_t start, data::TimeStyle style, data::Interval interval)
    : start_(start), style_(std::move(style)), interval_(interval) {}

std::string TimeAxis::at(std::size_t step) const {
  const std::int64_t offset = style_.zone_offset_minutes * kMinuteMs;
  const auto count = static_cast<std::int64_t>(origin_ + step);
  const std::int64_t room = data::kLatestMs - start_;
  // Steps that lead beyond the year 9999 from any start.
  const std::int64_t most = interval_.unit == Unit::month ? 130'000 : 3'000'000;
  const bool far = count > (interval_.unit == Unit::milliseconds ? room : most) / interval_.count;
  const std::int64_t time =
      far ? data::kLatestMs + 1 : data::advance(start_ + offset, interval_, count) - offset;
  if (time + offset > data::kLatestMs) {
    throw Error(ExitStatus::bad_data, "timestamp_overflow",
                "the forecast would go beyond the year 9999", "start_timestamp",
                "shorten the horizon, or leave the timestamp out");
  }
  return data::format_time(time, style_);
}

std::optional<IsoTime> parse_iso_time(std::string_view text) {
  IsoTime found;
  found.style.form = data::TimeStyle::Form::date;
  const std::optional<std::int64_t> day = take_date(text);
  if (!day) return std::nullopt;
  std::int64_t time = *day * data::kDayMs;
  if (!text.empty()) {
    if (!take(text, 'T') && !take(text, ' ') && !take(text, 't')) return std::nullopt;
    found.style.form = data::TimeStyle::Form::datetime;
    const std::optional<std::int64_t> clock = take_clock(text, found.style);
    if (!clock || !take_zone(text, found.style) || !text.empty()) return std::nullopt;
    time += *clock;
  }
  found.time = time - found.style.zone_offset_minutes * kMinuteMs;
  if (time > data::kLatestMs) return std::nullopt;
  return found;
}

std::optional<data::Interval> parse_frequency(std::string_view text) {
  std::int64_t times = 1;
  if (const std::size_t digits = digits_ahead(text); digits > 0) {
    if (digits > 6) return std::nullopt;
    times = take_digits(text, digits);
    while (take(text, ' ')) {
    }
  }
  if (times == 0) return std::nullopt;
  for (const Word& word : kWords) {
    if (word.word != text) continue;
    Interval interval;
    interval.unit = word.unit;
    interval.count = word.count * times;
    return interval;
  }
  return std::nullopt;
}

TimeAxis make_axis(std::string_view start, std::string_view frequency, std::string_view where) {
  std::optional<IsoTime> time = parse_iso_time(start);
  if (!time) {
    throw Error(ExitStatus::usage, "invalid_timestamp",
                "expected a time as ISO 8601 has it, found " + quote(start), where,
                "2026-01-31, 2026-01-31T12:00:00Z, 2026-W05 and the like");
  }
  std::optional<Interval> interval = parse_frequency(frequency);
  if (!interval) {
    throw Error(ExitStatus::usage, "invalid_frequency",
                "expected a frequency, found " + quote(frequency), where,
                "second, minute, hour, day, week, month, quarter, year, their short forms S, T, H, "
                "D, W, M, Q, Y, or 15min and the like");
  }
  const std::int64_t local = time->time + time->style.zone_offset_minutes * kMinuteMs;
  const std::int64_t day = data::floor_div(local, data::kDayMs);
  if (interval->unit == Unit::month) {
    interval->day = static_cast<int>(static_cast<unsigned>(data::date_of(day).day()));
  }
  using Form = data::TimeStyle::Form;
  if (time->style.form == Form::date && interval->unit == Unit::milliseconds &&
      interval->count % data::kDayMs != 0) {
    time->style.form = Form::datetime;
  }
  if (time->style.form == Form::datetime && interval->unit == Unit::milliseconds) {
    if (interval->count % kMinuteMs != 0) time->style.seconds = true;
    if (interval->count % 1000 != 0) time->style.fraction_digits = 3;
  }
  return {time->time, time->style, *interval};
}

}  // namespace toto::server
