// SPDX-License-Identifier: Apache-2.0
#include "data/sessions.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <sstream>

#include "core/json.h"
#include "data/calendar.h"
#include "data/text.h"
#include "data/zone.h"
#include "toto/error.hpp"

namespace toto::data {
namespace {

using std::chrono::year_month_day;

constexpr std::int64_t kMinuteMs = 60'000;
constexpr std::int64_t kHourMs = 60 * kMinuteMs;

std::vector<std::string_view> words_of(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  constexpr std::string_view kBlank = " \t\r";
  for (std::size_t at = line.find_first_not_of(kBlank); at != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlank, end);
  }
  return words;
}

/// Exactly `digits` decimal digits.
std::optional<int> whole(std::string_view text, std::size_t digits) {
  int value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool plain = text.size() == digits && text.find_first_not_of("0123456789") == text.npos;
  if (!plain || result.ec != std::errc()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> day_in(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto y = whole(text.substr(0, 4), 4);
  const auto m = whole(text.substr(5, 2), 2);
  const auto d = whole(text.substr(8, 2), 2);
  if (!y || !m || !d) return std::nullopt;
  const year_month_day date(std::chrono::year(*y), std::chrono::month(static_cast<unsigned>(*m)),
                            std::chrono::day(static_cast<unsigned>(*d)));
  if (!date.ok()) return std::nullopt;
  return day_of(date);
}

std::optional<std::int64_t> clock_in(std::string_view text) {
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  const auto hour = whole(text.substr(0, 2), 2);
  const auto minute = whole(text.substr(3, 2), 2);
  if (!hour || !minute || *minute > 59 || *hour * 60 + *minute > 24 * 60) return std::nullopt;
  return *hour * kHourMs + *minute * kMinuteMs;
}

std::optional<std::size_t> weekday_in(std::string_view text) {
  constexpr std::array<std::string_view, 7> kNames = {"Mon", "Tue", "Wed", "Thu",
                                                      "Fri", "Sat", "Sun"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (text == kNames[i]) return i;
  }
  return std::nullopt;
}

/// "Mon-Fri", "Sun-Thu", or several apart.
bool add_days(std::string_view text, std::array<bool, 7>& days) {
  const std::size_t dash = text.find('-');
  const auto first = weekday_in(text.substr(0, dash));
  const auto last = dash == text.npos ? first : weekday_in(text.substr(dash + 1));
  if (!first || !last) return false;
  for (std::size_t day = *first;; day = (day + 1) % 7) {
    days[day] = true;
    if (day == *last) return true;
  }
}

int year_of(std::int64_t day) { return static_cast<int>(date_of(day).year()); }

std::int64_t date(int year, unsigned month, unsigned day) {
  return day_of(std::chrono::year(year) / std::chrono::month(month) / std::chrono::day(day));
}

/// The n-th (from 1) of a weekday (0 is Monday) of a month.
std::int64_t nth(int year, unsigned month, int weekday, int n) {
  const std::int64_t first = date(year, month, 1);
  return first + floor_mod(weekday - weekday_of(first), 7) + 7 * (n - 1);
}

/// Sunday of Easter: the algorithm of Meeus, Jones and Butcher for the Gregorian calendar.
std::int64_t easter(int year) {
  const int a = year % 19, b = year / 100, c = year % 100;
  const int d = b / 4, e = b % 4, f = (b + 8) / 25, g = (b - f + 1) / 3;
  const int h = (19 * a + b - d - g + 15) % 30;
  const int i = c / 4, k = c % 4;
  const int l = (32 + 2 * e + 2 * i - h - k) % 7;
  const int m = (a + 11 * h + 22 * l) / 451;
  const int month = (h + l - 7 * m + 114) / 31;
  return date(year, static_cast<unsigned>(month),
              static_cast<unsigned>((h + l - 7 * m + 114) % 31 + 1));
}

/// A holiday of a fixed date is kept on the Friday before a Saturday and the Monday after a Sunday.
std::int64_t observed(std::int64_t day) {
  const int weekday = weekday_of(day);
  return weekday == 5 ? day - 1 : weekday == 6 ? day + 1 : day;
}

}  // namespace

bool is_nyse_holiday(std::int64_t day) {
  constexpr int kJuneteenth = 2022, kKing = 1998;
  const int year = year_of(day);
  const std::int64_t new_year = date(year, 1, 1);
  // A New Year's Day on a Saturday is not kept on the last day of the old year.
  if (day == new_year + (weekday_of(new_year) == 6 ? 1 : 0)) return true;
  if (year >= kKing && day == nth(year, 1, 0, 3)) return true;
  if (day == nth(year, 2, 0, 3) || day == easter(year) - 2) return true;
  const std::int64_t last_of_may = date(year, 5, 31);
  if (day == last_of_may - weekday_of(last_of_may)) return true;
  if (year >= kJuneteenth && day == observed(date(year, 6, 19))) return true;
  return day == observed(date(year, 7, 4)) || day == nth(year, 9, 0, 1) ||
         day == nth(year, 11, 3, 4) || day == observed(date(year, 12, 25));
}

bool is_nyse_early_close(std::int64_t day) {
  if (weekday_of(day) >= 5 || is_nyse_holiday(day)) return false;
  const int year = year_of(day);
  if (day == nth(year, 11, 3, 4) + 1 || day == date(year, 12, 24)) return true;
  return day == date(year, 7, 3);
}

bool Sessions::is_open(std::int64_t day) const {
  if (always_) return true;
  if (!weekdays_[static_cast<std::size_t>(weekday_of(day))] || holidays_.contains(day))
    return false;
  return !nyse_ || !is_nyse_holiday(day);
}

std::int64_t Sessions::closes(std::int64_t day) const {
  constexpr std::int64_t kEarly = 13 * kHourMs;
  if (const auto found = early_.find(day); found != early_.end()) return found->second;
  return nyse_ && is_nyse_early_close(day) ? kEarly : close_;
}

Sessions Sessions::parse(std::string_view text, const std::string& name) {
  Sessions out;
  std::size_t number = 0;
  std::array<bool, 7> days = {};
  bool has_days = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string_view> words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (words.empty()) continue;
    bool good = words.size() >= 2;
    if (good && words[0] == "timezone" && words.size() == 2) {
      out.timezone_ = words[1];
      (void)Zone(out.timezone_);
    } else if (good && words[0] == "days") {
      has_days = true;
      for (std::size_t i = 1; i < words.size(); ++i) good = good && add_days(words[i], days);
    } else if (good && words[0] == "hours" && words.size() == 2 && words[1].size() == 11) {
      const auto open = clock_in(words[1].substr(0, 5)), close = clock_in(words[1].substr(6));
      good = open && close && words[1][5] == '-' && *open < *close;
      if (good) out.open_ = *open;
      if (good) out.close_ = *close;
    } else if (good && words[0] == "holiday" && words.size() == 2) {
      const auto day = day_in(words[1]);
      good = day.has_value();
      if (good) out.holidays_.insert(*day);
    } else if (good && words[0] == "early" && words.size() == 3) {
      const auto day = day_in(words[1]), close = clock_in(words[2]);
      good = day && close;
      if (good) out.early_[*day] = *close;
    } else {
      good = false;
    }
    if (good) continue;
    throw Error(ExitStatus::bad_data, "invalid_calendar",
                "expected timezone ZONE, days Mon-Fri, hours 09:30-16:00, holiday 2026-12-25 or "
                "early 2026-12-24 13:00",
                fmt::format("{}:{}", name, number));
  }
  if (has_days) out.weekdays_ = days;
  return out;
}

std::shared_ptr<const Sessions> Sessions::find(const std::string& name) {
  Sessions out;
  if (name == "24x7") {
    out.always_ = true;
  } else if (name == "NYSE" || name == "XNYS" || name == "NASDAQ" || name == "XNAS") {
    out.nyse_ = true;
    out.timezone_ = "America/New_York";
    out.open_ = 9 * kHourMs + 30 * kMinuteMs;
    out.close_ = 16 * kHourMs;
  } else if (name.find_first_of("./") == std::string::npos) {
    throw Error(ExitStatus::usage, "invalid_calendar", "there is no calendar " + quote(name),
                "--calendar", "NYSE, 24x7, or a file such as ./xetra.txt");
  } else {
    const Text text = read_text(name);
    out = parse(text.view(), name);
  }
  return std::make_shared<const Sessions>(std::move(out));
}

}  // namespace toto::data
