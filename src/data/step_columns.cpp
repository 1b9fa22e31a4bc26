// SPDX-License-Identifier: Apache-2.0
#include "data/step_columns.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "data/column_words.h"
#include "data/digits.h"
#include "data/number.h"
#include "data/timestamp.h"

namespace toto::data {
namespace {

constexpr std::size_t kFewest = 3;  // columns
constexpr auto kWords = std::to_array<std::string_view>(
    {"t", "d",       "day", "w",  "wk",   "week", "m",      "month", "h",   "hr",  "hour",
     "q", "quarter", "y",   "yr", "year", "step", "period", "time",  "obs", "lead"});

std::int64_t whole(std::string_view digits) {
  std::int64_t value = -1;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return result.ec == std::errc() ? value : -1;
}

/// Four digits of a likely year, or eight of a likely day.
bool is_likely_digits(std::string_view text) {
  constexpr std::int64_t kFirst = 1800, kLast = 2200;
  if (!all_digits(text) || (text.size() != 4 && text.size() != 8)) return false;
  const std::int64_t year = whole(text.substr(0, 4));
  if (year < kFirst || year > kLast) return false;
  if (text.size() == 4) return true;
  const std::int64_t month = whole(text.substr(4, 2)), day = whole(text.substr(6, 2));
  return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

bool is_time(std::string_view name) {
  const std::string_view time = time_in_name(name);
  return is_likely_digits(time) || looks_like_time(time);
}

struct Numbered {
  std::string_view prefix;
  std::int64_t number = -1;  // below 0: there is none
};

Numbered numbered(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  const std::size_t begin = last == name.npos ? 0 : last + 1;
  constexpr std::size_t kLongest = 9;
  if (begin == name.size() || name.size() - begin > kLongest) return {};
  return {name.substr(0, begin), whole(name.substr(begin))};
}

/// Years, the only times that are plain numbers, have to lie in order.
bool in_order(std::span<const std::string> names, const std::vector<std::size_t>& columns) {
  const auto year = [&](std::size_t column) { return whole(time_in_name(names[column])); };
  if (!all_digits(time_in_name(names[columns.front()]))) return true;
  return std::ranges::is_sorted(columns, std::less_equal{}, year) ||
         std::ranges::is_sorted(columns, std::greater_equal{}, year);
}

StepColumns longest_run(std::span<const std::string> names) {
  StepColumns best;
  for (std::size_t i = 0; i < names.size();) {
    const Numbered start = numbered(names[i]);
    std::size_t end = i + 1;
    while (start.number >= 0 && end < names.size()) {
      const Numbered next = numbered(names[end]);
      const auto passed = static_cast<std::int64_t>(end - i);
      if (next.prefix != start.prefix || next.number != start.number + passed) break;
      ++end;
    }
    if (end - i > best.columns.size()) {
      best.columns.clear();
      for (std::size_t k = i; k < end; ++k) best.columns.push_back(k);
      best.prefix = start.prefix;
      best.first = start.number;
    }
    i = end;
  }
  return best;
}

}  // namespace

std::string_view time_in_name(std::string_view name) {
  name = trim(name);
  if (name.size() > 1 && name[0] == 'X' && name[1] >= '0' && name[1] <= '9') name.remove_prefix(1);
  if (const std::size_t bracket = name.find(" ["); bracket != name.npos && name.ends_with(']')) {
    name = name.substr(0, bracket);
  }
  return name;
}

bool StepColumns::says_steps() const {
  const std::string plain = plain_name(prefix);
  return !times && std::ranges::find(kWords, std::string_view(plain)) != kWords.end();
}

bool StepColumns::unnamed() const {
  return !times && (prefix.empty() || prefix == "V" || prefix == "X");
}

std::optional<StepColumns> find_step_columns(std::span<const std::string> names) {
  StepColumns found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (is_time(names[i])) found.columns.push_back(i);
  }
  if (found.columns.size() >= kFewest && in_order(names, found.columns)) {
    found.times = true;
    return found;
  }
  found = longest_run(names);
  if (found.columns.size() < kFewest) return std::nullopt;
  return found;
}

}  // namespace toto::data
