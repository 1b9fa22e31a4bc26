// SPDX-License-Identifier: Apache-2.0
#include "data/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "data/calendar.h"
#include "data/number.h"
#include "data/pattern_words.h"

namespace toto::data {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Takes 1 to `most` digits off the front; -1 where there is none.
int take_number(std::string_view& text, std::size_t most) {
  int value = 0;
  std::size_t count = 0;
  while (count < most && count < text.size() && is_digit(text[count])) {
    value = value * 10 + (text[count++] - '0');
  }
  text.remove_prefix(count);
  return count == 0 ? -1 : value;
}

struct Parts {
  int year = 1970, month = 1, day = 1;
  int hour = 0, minute = 0, second = 0;
  std::int64_t ms = 0;
  int week = 0;   // of ISO 8601; 0: none
  int half = -1;  // 0: AM, 1: PM
  PatternTime out;
};

bool in(int value, int lowest, int highest) { return value >= lowest && value <= highest; }

bool take_fraction(std::string_view& text, Parts& parts) {
  if (text.size() < 2 || (text[0] != '.' && text[0] != ',') || !is_digit(text[1])) return true;
  text.remove_prefix(1);
  int digits = 0;
  for (std::int64_t unit = 100; !text.empty() && is_digit(text[0]); ++digits) {
    parts.ms += unit * (text[0] - '0');
    unit /= 10;
    text.remove_prefix(1);
  }
  parts.out.fraction_digits = digits;
  return digits <= 9;
}

bool take_zone(std::string_view& text, Parts& parts) {
  parts.out.zoned = true;
  if (text.starts_with('Z')) {
    text.remove_prefix(1);
    return true;
  }
  if (text.empty() || (text[0] != '+' && text[0] != '-')) return false;
  const int sign = text[0] == '-' ? -1 : 1;
  text.remove_prefix(1);
  const int hours = take_number(text, 2);
  if (text.starts_with(':')) text.remove_prefix(1);
  const int minutes = text.empty() || !is_digit(text[0]) ? 0 : take_number(text, 2);
  parts.out.offset_minutes = sign * (hours * 60 + minutes);
  return in(hours, 0, 14) && in(minutes, 0, 59);
}

bool take_year(std::string_view& text, Parts& parts, bool short_form) {
  const std::size_t before = text.size();
  parts.year = take_number(text, short_form ? 2 : 4);
  if (before - text.size() != (short_form ? 2U : 4U)) return false;
  if (short_form) parts.year += parts.year < 69 ? 2000 : 1900;  // as POSIX has it
  return parts.year >= 1;
}

bool take_half(std::string_view& text, Parts& parts) {
  const std::string_view word = text.substr(0, 2);
  if (!equals_ignoring_case(word, "am") && !equals_ignoring_case(word, "pm")) return false;
  parts.half = word[0] == 'p' || word[0] == 'P' ? 1 : 0;
  text.remove_prefix(2);
  return true;
}

bool take_field(char field, std::string_view& text, Parts& parts) {
  switch (field) {
    case 'Y':
    case 'G':
      return take_year(text, parts, false);
    case 'y':
      return take_year(text, parts, true);
    case 'm':
      return in(parts.month = take_number(text, 2), 1, 12);
    case 'd':
      return in(parts.day = take_number(text, 2), 1, 31);
    case 'b':
    case 'B':
      return (parts.month = take_month_name(text)) > 0;
    case 'a':
    case 'A':
      return take_weekday_name(text);
    case 'H':
      return in(parts.hour = take_number(text, 2), 0, 23);
    case 'I':
      return in(parts.hour = take_number(text, 2), 1, 12);
    case 'M':
      return in(parts.minute = take_number(text, 2), 0, 59);
    case 'S':
      return in(parts.second = take_number(text, 2), 0, 59) && take_fraction(text, parts);
    case 'p':
      return take_half(text, parts);
    case 'q': {
      const int quarter = take_number(text, 1);
      parts.month = quarter * 3 - 2;
      return in(quarter, 1, 4);
    }
    case 'V':
      return in(parts.week = take_number(text, 2), 1, 53);
    case 'z':
      return take_zone(text, parts);
    default:
      return false;
  }
}

/// The Monday of a week of ISO 8601: week 1 is the one with January 4th.
std::int64_t monday_of(int year, int week) {
  const std::int64_t fourth = day_of(date_in_month(std::int64_t{year} * 12, 4));
  return fourth - weekday_of(fourth) + std::int64_t{week - 1} * 7;
}

std::optional<PatternTime> assemble(Parts& parts) {
  const std::chrono::year_month_day date(std::chrono::year(parts.year),
                                         std::chrono::month(static_cast<unsigned>(parts.month)),
                                         std::chrono::day(static_cast<unsigned>(parts.day)));
  std::int64_t day = 0;
  if (parts.week > 0) {
    day = monday_of(parts.year, parts.week);
    if (parts.week == 53 && day >= monday_of(parts.year + 1, 1)) return std::nullopt;
  } else {
    if (!date.ok()) return std::nullopt;
    day = day_of(date);
  }
  int hour = parts.hour;
  if (parts.half >= 0) hour = hour % 12 + 12 * parts.half;
  parts.out.local = day * kDayMs +
                    ((hour * 60 + parts.minute) * 60 + parts.second) * std::int64_t{1000} +
                    parts.ms;
  return parts.out;
}

/// A pattern's next character: a field (second is its letter) or itself.
struct Piece {
  char letter = 0;  // 0: the character stands for itself
  char character = 0;
  bool short_form = false;  // %-d
};

Piece take_piece(std::string_view& pattern) {
  Piece piece;
  piece.character = pattern[0];
  pattern.remove_prefix(1);
  if (piece.character != '%' || pattern.empty()) return piece;
  if (pattern[0] == '-' && pattern.size() > 1) {
    piece.short_form = true;
    pattern.remove_prefix(1);
  }
  if (pattern[0] != '%') piece.letter = pattern[0];
  pattern.remove_prefix(1);
  return piece;
}

void write_zone(std::string& out, int offset, bool zulu) {
  if (zulu) {
    out.push_back('Z');
    return;
  }
  const int size = offset < 0 ? -offset : offset;
  out += fmt::format("{}{:02}:{:02}", offset < 0 ? '-' : '+', size / 60, size % 60);
}

struct Broken {
  std::chrono::year_month_day date;
  std::int64_t day;
  std::int64_t clock;
};

void write_number(std::string& out, std::int64_t value, bool short_form) {
  out += short_form ? fmt::format("{}", value) : fmt::format("{:02}", value);
}

/// The year and week of ISO 8601 of a day.
std::pair<int, std::int64_t> week_of(std::int64_t day) {
  const std::int64_t thursday = day - weekday_of(day) + 3;
  const int year = static_cast<int>(date_of(thursday).year());
  return {year, (day - monday_of(year, 1)) / 7 + 1};
}

void write_date_field(std::string& out, const Piece& piece, const Broken& at) {
  const auto month = static_cast<unsigned>(at.date.month());
  const int year = static_cast<int>(at.date.year());
  switch (piece.letter) {
    case 'Y':
      out += fmt::format("{:04}", year);
      break;
    case 'y':
      out += fmt::format("{:02}", year % 100);
      break;
    case 'm':
      write_number(out, month, piece.short_form);
      break;
    case 'd':
      write_number(out, static_cast<unsigned>(at.date.day()), piece.short_form);
      break;
    case 'b':
      out += month_name(month).substr(0, 3);
      break;
    case 'B':
      out += month_name(month);
      break;
    case 'a':
      out += weekday_name(weekday_of(at.day)).substr(0, 3);
      break;
    case 'A':
      out += weekday_name(weekday_of(at.day));
      break;
    case 'q':
      out += fmt::format("{}", (month + 2) / 3);
      break;
    case 'G':
      out += fmt::format("{:04}", week_of(at.day).first);
      break;
    case 'V':
      write_number(out, week_of(at.day).second, piece.short_form);
      break;
    default:
      break;
  }
}

void write_clock_field(std::string& out, const Piece& piece, const Broken& at, int digits,
                       int offset) {
  const std::int64_t hour = at.clock / 3'600'000;
  switch (piece.letter) {
    case 'H':
      write_number(out, hour, piece.short_form);
      break;
    case 'I':
      write_number(out, (hour + 11) % 12 + 1, piece.short_form);
      break;
    case 'M':
      write_number(out, at.clock / 60'000 % 60, false);
      break;
    case 'S': {
      write_number(out, at.clock / 1000 % 60, false);
      if (digits == 0) break;
      std::string fraction = fmt::format("{:03}", at.clock % 1000);
      fraction.resize(static_cast<std::size_t>(digits), '0');
      out.append(".").append(fraction);
      break;
    }
    case 'p':
      out += hour < 12 ? "AM" : "PM";
      break;
    case 'z':
      write_zone(out, offset, false);
      break;
    default:
      break;
  }
}

}  // namespace

std::optional<PatternTime> read_pattern(std::string_view text, std::string_view pattern) {
  Parts parts;
  while (!pattern.empty()) {
    const Piece piece = take_piece(pattern);
    if (piece.letter == 0) {
      if (!text.starts_with(piece.character)) return std::nullopt;
      text.remove_prefix(1);
    } else if (!take_field(piece.letter, text, parts)) {
      return std::nullopt;
    }
  }
  if (!text.empty()) return std::nullopt;
  return assemble(parts);
}

std::string write_pattern(std::int64_t local, std::string_view pattern, int fraction_digits,
                          int offset_minutes) {
  const std::int64_t day = floor_div(local, kDayMs);
  const Broken at{date_of(day), day, floor_mod(local, kDayMs)};
  std::string out;
  while (!pattern.empty()) {
    const Piece piece = take_piece(pattern);
    if (piece.letter == 0) {
      out.push_back(piece.character);
    } else {
      write_date_field(out, piece, at);
      write_clock_field(out, piece, at, fraction_digits, offset_minutes);
    }
  }
  return out;
}

void check_pattern(std::string_view pattern) {
  std::string letters;
  for (std::string_view rest = pattern; !rest.empty();) {
    if (const Piece piece = take_piece(rest); piece.letter != 0) letters.push_back(piece.letter);
  }
  const auto has = [&](std::string_view any) {
    return letters.find_first_of(any) != std::string::npos;
  };
  if (letters.find_first_not_of("YyGmdbBaAHIMSpqVz") != std::string::npos || !has("YyG") ||
      !has("mbBqV")) {
    throw Error(ExitStatus::usage, "invalid_date_format",
                fmt::format("'{}' does not tell a date", pattern), "--date-format",
                "dmy, mdy, ymd, or fields of strftime such as %d/%m/%Y %H:%M");
  }
}

TimeStyle::Form form_of(std::string_view pattern) {
  if (pattern.find("%H") != pattern.npos || pattern.find("%I") != pattern.npos ||
      pattern.find("%-H") != pattern.npos || pattern.find("%-I") != pattern.npos) {
    return TimeStyle::Form::datetime;
  }
  const bool has_day = pattern.find("%d") != pattern.npos || pattern.find("%-d") != pattern.npos ||
                       pattern.find("%V") != pattern.npos;
  return has_day ? TimeStyle::Form::date : TimeStyle::Form::month;
}

}  // namespace toto::data
