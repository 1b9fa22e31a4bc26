// SPDX-License-Identifier: Apache-2.0
#include "data/timestamp.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "data/calendar.h"
#include "data/digits.h"
#include "data/number.h"
#include "data/pattern.h"

namespace toto::data {
namespace {

// Whole numbers below this are years or an index; above, epochs: 1e8 s is in 1973.
constexpr std::int64_t kSmallestEpoch = 100'000'000;
// Differences of two integers this large still fit 64 bits.
constexpr std::int64_t kLargestInteger = 4'000'000'000'000'000'000;
constexpr std::int64_t kFirstYear = 1500, kLastYear = 2200;  // that four digits may mean

/// Takes a decimal fraction off the front: its digits (0: there is none, -1: malformed) and ms.
int take_fraction(std::string_view& text, std::int64_t& ms) {
  ms = 0;
  if (!take(text, '.')) return 0;
  int digits = 0;
  for (std::int64_t unit = 100; !text.empty() && text[0] >= '0' && text[0] <= '9'; ++digits) {
    ms += unit * (text[0] - '0');
    unit /= 10;
    text.remove_prefix(1);
  }
  return digits == 0 || digits > 9 ? -1 : digits;
}

/// Takes a zone off the front, in whichever way it is written.
std::optional<int> take_zone(std::string_view& text, TimeStyle::Zone& zone) {
  zone = TimeStyle::Zone::none;
  if (text.empty()) return 0;
  if (take(text, 'Z') || take(text, 'z')) {
    zone = TimeStyle::Zone::z;
    return 0;
  }
  const bool west = text[0] == '-';
  if (!west && text[0] != '+') return std::nullopt;
  text.remove_prefix(1);
  const int hours = take_digits(text, 2);
  int minutes = 0;
  if (text.empty()) {
    zone = TimeStyle::Zone::hours;
  } else {
    zone = take(text, ':') ? TimeStyle::Zone::colon : TimeStyle::Zone::compact;
    minutes = take_digits(text, 2);
  }
  if (hours < 0 || hours > 14 || minutes < 0 || minutes > 59) return std::nullopt;
  return (west ? -1 : 1) * (hours * 60 + minutes);
}

struct Calendar {
  TimeStyle style;
  std::int64_t local = 0;  // ms since 1970 by the clock on the wall
};

bool take_date(std::string_view& text, Calendar& out) {
  const bool compact = all_digits(text) && (text.size() == 6 || text.size() == 8);
  const int year = take_digits(text, 4);
  if (year < 1 || text.empty()) return false;
  // Digits alone are a date only if the year is a likely one; an index has as many.
  if (compact && (year < kFirstYear || year > kLastYear)) return false;
  char& separator = out.style.date_separator;
  separator = compact ? '\0' : text[0];
  if (!compact && separator != '-' && separator != '/') return false;
  if (!compact) text.remove_prefix(1);
  const int month = take_digits(text, 2);
  int day = 1;
  out.style.form = TimeStyle::Form::month;
  if (!text.empty()) {
    if (!compact && !take(text, separator)) return false;
    day = take_digits(text, 2);
    out.style.form = TimeStyle::Form::date;
  }
  if (month < 0 || day < 0) return false;
  const std::chrono::year_month_day date(std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (!date.ok()) return false;
  out.local = day_of(date) * kDayMs;
  return true;
}

bool take_clock(std::string_view& text, Calendar& out) {
  out.style.form = TimeStyle::Form::datetime;
  out.style.time_separator = text[0] == ' ' ? ' ' : 'T';
  if (text[0] != 'T' && text[0] != 't' && text[0] != ' ') return false;
  text.remove_prefix(1);
  const int hour = take_digits(text, 2);
  if (!take(text, ':')) return false;
  const int minute = take_digits(text, 2);
  int second = 0;
  std::int64_t ms = 0;
  out.style.seconds = take(text, ':');
  if (out.style.seconds) {
    second = take_digits(text, 2);
    out.style.fraction_digits = take_fraction(text, ms);
  }
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 ||
      out.style.fraction_digits < 0) {
    return false;
  }
  out.local += ((hour * 60 + minute) * 60 + second) * std::int64_t{1000} + ms;
  const std::optional<int> offset = take_zone(text, out.style.zone);
  out.style.zone_offset_minutes = offset.value_or(0);
  return offset.has_value();
}

std::optional<Calendar> parse_calendar(std::string_view text) {
  Calendar out;
  if (!take_date(text, out)) return std::nullopt;
  if (text.empty()) return out;
  if (out.style.form != TimeStyle::Form::date || !take_clock(text, out) || !text.empty()) {
    return std::nullopt;
  }
  return out;
}

}  // namespace

bool looks_like_time(std::string_view text) {
  text = trim(text);
  if (all_digits(text)) return false;
  return parse_calendar(text).has_value() || !guess_patterns(text).empty();
}

bool looks_like_clock(std::string_view text) {
  text = trim(text);
  if (text.find(':') == text.npos || text.size() > 16) return false;
  return looks_like_time("2000-01-01 " + std::string(text));
}

TimeReader::TimeReader(const std::string& format, const std::string& zone_name) {
  if (format == "dmy" || format == "mdy" || format == "ymd") {
    order_ = format;
  } else if (!format.empty()) {
    check_pattern(format);
    patterns_ = {format};
    text_ = Text::pattern;
    style_.form = form_of(format);
    style_.pattern = format;
  }
  if (!zone_name.empty()) zone_.emplace(zone_name);
  style_.timezone = zone_name;
}

bool TimeReader::settle(std::string_view text) {
  if (const std::optional<Calendar> calendar = parse_calendar(text)) {
    const std::string zone_name = style_.timezone;
    style_ = calendar->style;
    if (style_.zone == TimeStyle::Zone::none) style_.timezone = zone_name;
    text_ = style_.form == TimeStyle::Form::month  ? Text::month
            : style_.form == TimeStyle::Form::date ? Text::date
                                                   : Text::datetime;
    return true;
  }
  if (read_epoch_fraction(text) && style_.fraction_digits > 0) {
    text_ = Text::epoch_fraction;
    return true;
  }
  if (settle_pattern(text)) return true;
  style_ = {};
  if (!read_integer(text)) return false;
  text_ = Text::integer;
  return true;
}

bool TimeReader::settle_pattern(std::string_view text) {
  std::vector<std::string> patterns = guess_patterns(text);
  if (!order_.empty() && patterns.size() > 1) {
    patterns = {order_ == "mdy" ? patterns[1] : patterns[0]};
  }
  if (patterns.empty()) return false;
  patterns_ = std::move(patterns);
  text_ = Text::pattern;
  style_.fraction_digits = 0;
  style_.form = form_of(patterns_.front());
  style_.pattern = patterns_.front();
  return true;
}

std::optional<Timestamp> TimeReader::read(std::string_view text) {
  text = trim(text);
  if (text_ == Text::unknown && !settle(text)) return std::nullopt;
  if (text_ == Text::integer) return read_integer(text);
  if (text_ == Text::epoch_fraction) return read_epoch_fraction(text);
  if (text_ == Text::pattern) return read_by_pattern(text);
  return read_calendar(text);
}

std::optional<Timestamp> TimeReader::read_by_pattern(std::string_view text) {
  std::optional<PatternTime> found = read_pattern(text, patterns_.front());
  if (ambiguous()) {
    const std::optional<PatternTime> other = read_pattern(text, patterns_[1]);
    if (!found && other) {
      patterns_.erase(patterns_.begin());
      style_.pattern = patterns_.front();
      found = other;
    } else if (found && !other) {
      patterns_.pop_back();
    }
  }
  if (!found) return std::nullopt;
  style_.fraction_digits = std::max(style_.fraction_digits, found->fraction_digits);
  const std::string& pattern = patterns_.front();
  if (found->zoned || pattern.find("UTC") != pattern.npos || pattern.find("GMT") != pattern.npos) {
    style_.timezone.clear();
    style_.zone_offset_minutes = found->offset_minutes;
    return Timestamp{found->local - found->offset_minutes * std::int64_t{60'000},
                     static_cast<std::int16_t>(found->offset_minutes)};
  }
  return in_zone(found->local);
}

Timestamp TimeReader::in_zone(std::int64_t local) const {
  if (!zone_) return {local, 0};
  const Zone::Instants at = zone_->instants_of(local);
  return {at.first, static_cast<std::int16_t>((local - at.first) / 60'000),
          static_cast<std::int16_t>((at.last - at.first) / 60'000)};
}

// Tables written by way of floating point have 1700.0 for 1700.
std::optional<Timestamp> TimeReader::read_integer(std::string_view text) const {
  Timestamp out;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, out.time);
  const std::string_view rest(result.ptr, static_cast<std::size_t>(end - result.ptr));
  const bool whole = rest.empty() || (rest.size() > 1 && rest[0] == '.' &&
                                      rest.find_first_not_of('0', 1) == rest.npos);
  if (result.ec != std::errc() || !whole || out.time < -kLargestInteger ||
      out.time > kLargestInteger) {
    return std::nullopt;
  }
  return out;
}

std::optional<Timestamp> TimeReader::read_epoch_fraction(std::string_view text) {
  const bool negative = take(text, '-');
  std::int64_t seconds = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (result.ec != std::errc() || seconds < 0 || seconds > kLatestMs / 1000) return std::nullopt;
  // The first one tells an epoch from a year or an index that was written as 1700.0.
  if (text_ == Text::unknown && seconds < kSmallestEpoch) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(result.ptr - text.data()));
  std::int64_t ms = 0;
  const int digits = take_fraction(text, ms);
  if (digits < 0 || !text.empty()) return std::nullopt;
  style_.form = TimeStyle::Form::epoch;
  style_.fraction_digits = std::max(style_.fraction_digits, digits);
  return Timestamp{(negative ? -1 : 1) * (seconds * 1000 + ms), 0};
}

std::optional<Timestamp> TimeReader::read_calendar(std::string_view text) {
  const std::optional<Calendar> calendar = parse_calendar(text);
  if (!calendar) return std::nullopt;
  TimeStyle style = calendar->style;
  // Writers leave out a fraction or seconds of zero, and offsets change with the season.
  const bool differs = style.form != style_.form || style.date_separator != style_.date_separator ||
                       style.time_separator != style_.time_separator || style.zone != style_.zone;
  if (differs) return std::nullopt;
  style_.seconds = style_.seconds || style.seconds;
  style_.fraction_digits = std::max(style_.fraction_digits, style.fraction_digits);
  style_.zone_offset_minutes = style.zone_offset_minutes;
  if (style.zone == TimeStyle::Zone::none) return in_zone(calendar->local);
  return Timestamp{calendar->local - style.zone_offset_minutes * std::int64_t{60'000},
                   static_cast<std::int16_t>(style.zone_offset_minutes)};
}

std::string_view TimeReader::expected() const {
  switch (text_) {
    case Text::integer:
      return "a whole number, as in the first row";
    case Text::epoch_fraction:
      return "epoch seconds, as in the first row";
    case Text::month:
      return "a month written as in the first row";
    case Text::date:
      return "a date written as in the first row";
    case Text::datetime:
      return "a date and time written as in the first row, zone included";
    case Text::pattern:
      return "a time written as in the first row, or --date-format";
    case Text::unknown:
      break;
  }
  return "YYYY-MM-DD, YYYY-MM-DD hh:mm:ss (also with T and a zone), YYYY-MM, YYYYMMDD, a year, an "
         "epoch, a row number, DD/MM/YYYY, Jan 1949, 1960Q1, 2018-W01, or --date-format";
}

void TimeReader::finish(std::int64_t lowest, std::int64_t highest) {
  if (text_ != Text::integer) return;
  const std::int64_t largest = std::max(std::abs(lowest), std::abs(highest));
  if (largest < kSmallestEpoch) {
    const bool years = lowest >= kFirstYear && highest <= kLastYear;
    style_.form = years ? TimeStyle::Form::year : TimeStyle::Form::index;
    return;
  }
  style_.form = TimeStyle::Form::epoch;
  for (std::int64_t size = largest / kSmallestEpoch; size >= 1000 && style_.epoch_decimals < 9;
       size /= 1000) {
    style_.epoch_decimals += 3;
  }
}

std::int64_t TimeReader::convert(std::int64_t time) const {
  if (text_ != Text::integer || style_.form == TimeStyle::Form::index) return time;
  if (style_.form == TimeStyle::Form::year) return day_of(date_in_month(time * 12, 1)) * kDayMs;
  switch (style_.epoch_decimals) {
    case 0:
      return time * 1000;
    case 3:
      return time;
    case 6:
      return floor_div(time, 1000);
    default:
      return floor_div(time, 1'000'000);
  }
}

}  // namespace toto::data
