// SPDX-License-Identifier: Apache-2.0
#include "data/style.h"

#include <algorithm>
#include <string_view>

#include "data/calendar.h"

namespace toto::data {
namespace {

constexpr std::int64_t kSecondMs = 1'000, kMinuteMs = 60'000, kHourMs = 3'600'000;
constexpr std::int64_t kMonths = 0;  // a month or longer, which is no number of milliseconds

bool has(std::string_view pattern, char word) {
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '%') continue;
    ++i;
    if (pattern[i] == '-' && i + 1 < pattern.size()) ++i;
    if (pattern[i] == word) return true;
  }
  return false;
}

std::int64_t of_seconds(const TimeStyle& style) {
  return style.fraction_digits == 0 ? kSecondMs : 1;
}

/// The shortest time that a style tells apart, in milliseconds.
std::int64_t finest(const TimeStyle& style) {
  if (!style.pattern.empty()) {
    const std::string_view pattern = style.pattern;
    if (has(pattern, 'S')) return of_seconds(style);
    if (has(pattern, 'M')) return kMinuteMs;
    if (has(pattern, 'H') || has(pattern, 'I')) return kHourMs;
    if (has(pattern, 'd')) return kDayMs;
    return has(pattern, 'V') ? 7 * kDayMs : kMonths;
  }
  switch (style.form) {
    case TimeStyle::Form::epoch:
      return style.epoch_decimals > 0 ? 1 : of_seconds(style);
    case TimeStyle::Form::datetime:
      return style.seconds ? of_seconds(style) : kMinuteMs;
    case TimeStyle::Form::date:
      return kDayMs;
    default:
      return kMonths;
  }
}

/// Months that a style takes together.
std::int64_t months_of(const TimeStyle& style) {
  if (!style.pattern.empty()) return has(style.pattern, 'q') ? 3 : 1;
  return style.form == TimeStyle::Form::year ? 12 : 1;
}

/// What ISO 8601 writes of the same time, to the day or finer.
TimeStyle iso(const TimeStyle& from, TimeStyle::Form form) {
  TimeStyle out = from;
  if (!from.pattern.empty() || from.date_separator == '\0') {
    out.date_separator = '-';
    out.time_separator = ' ';
    if (has(from.pattern, 'z')) out.zone = TimeStyle::Zone::colon;
  } else if (from.form != TimeStyle::Form::datetime) {
    out.time_separator = ' ';
  }
  out.pattern.clear();
  out.form = form;
  out.seconds = from.form == TimeStyle::Form::datetime && from.pattern.empty() && from.seconds;
  return out;
}

}  // namespace

void tell_steps_apart(TimeStyle& style, const Interval& step) {
  using Form = TimeStyle::Form;
  if (style.form == Form::index) return;
  const std::int64_t told = finest(style);
  if (step.unit == Interval::Unit::month) {
    if (step.count % months_of(style) != 0) style = iso(style, Form::date);
    return;
  }
  const std::int64_t size = step.unit == Interval::Unit::milliseconds ? step.count : kDayMs;
  if (told != kMonths && size % told == 0) return;
  if (style.form != Form::epoch) {
    style = iso(style, size % kDayMs == 0 ? Form::date : Form::datetime);
    style.seconds = style.seconds || size % kMinuteMs != 0;
  }
  if (size % kSecondMs != 0) style.fraction_digits = std::max(style.fraction_digits, 3);
}

}  // namespace toto::data
