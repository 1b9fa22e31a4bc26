// SPDX-License-Identifier: Apache-2.0
#include "data/look.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "data/bad_number.h"
#include "data/decorated.h"
#include "data/even_steps.h"
#include "data/number.h"
#include "data/timestamp.h"

namespace toto::data {
namespace {

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest(result.ptr,
                              static_cast<std::size_t>(text.data() + text.size() - result.ptr));
  if (result.ec != std::errc() || (!rest.empty() && rest != ".0")) return std::nullopt;
  return value;
}

bool is_day_number(std::int64_t value) {
  constexpr std::int64_t kFirst = 19000101, kLast = 21001231;
  const std::int64_t month = value / 100 % 100, day = value % 100;
  return value >= kFirst && value <= kLast && month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

bool is_clock_number(std::string_view text, std::int64_t value) {
  const std::int64_t hhmm = text.size() > 4 ? value / 100 : value;
  const bool seconds = text.size() <= 4 || value % 100 < 60;
  return value >= 0 && text.size() >= 3 && text.size() <= 6 && hhmm / 100 < 24 && hhmm % 100 < 60 &&
         seconds;
}

bool is_flag(std::string_view text) {
  return text == "0" || text == "1" || text == "0.0" || text == "1.0" ||
         equals_ignoring_case(text, "true") || equals_ignoring_case(text, "false") ||
         equals_ignoring_case(text, "yes") || equals_ignoring_case(text, "no");
}

/// A number with a point as programs write it: no zero before another digit.
bool is_plain_decimal(std::string_view text) {
  const bool padded = text.size() > 1 && text[0] == '0' && text[1] != '.';
  return !padded && parse_number(text).kind == NumberKind::value &&
         text.find('.') != std::string_view::npos;
}

bool is_number(std::string_view text) {
  return parse_number(text).kind != NumberKind::not_a_number || take_apart(text).valid;
}

}  // namespace

Look look_at(std::span<const std::string_view> fields) {
  constexpr std::int64_t kSmallestEpoch = 100'000'000;
  Look out;
  std::vector<std::int64_t> whole;
  std::set<std::string_view> values;
  std::size_t count = 0, numbers = 0, times = 0, months = 0, clocks = 0, flags = 0, days = 0,
              clock_numbers = 0;
  for (std::string_view field : fields) {
    field = trim(field);
    if (parse_number(field).kind == NumberKind::missing) continue;
    ++count;
    values.insert(field);
    flags += is_flag(field) ? 1 : 0;
    if (const auto value = whole_number(field)) {
      whole.push_back(*value);
      days += field.size() == 8 && is_day_number(*value) ? 1 : 0;
      clock_numbers += is_clock_number(field, *value) ? 1 : 0;
      ++numbers;
    } else if (looks_like_time(field)) {
      ++(is_plain_decimal(field) ? months : times);
    } else if (looks_like_clock(field)) {
      ++clocks;
    } else {
      // What starts like a number was meant to be one; its reader will say what is wrong with it.
      numbers += is_number(field) || starts_like_number(field) || is_limit(field) ? 1 : 0;
    }
  }
  if (count == 0) {
    out.empty = true;
    return out;
  }
  const auto all = [&](std::size_t some) { return some == count; };
  // 1.4976 may be January 4976 and a rate of exchange. Among dates there is one that is no number.
  out.dates = times > 0 && all(times + months);
  if (!out.dates) numbers += months;
  out.text = numbers * 2 < count;
  out.clocks = all(clocks);
  out.clock_numbers = all(clock_numbers);
  out.day_numbers = all(days);
  out.whole = all(whole.size());
  out.constant = values.size() == 1;
  out.distinct = values.size() == count;
  out.repeating = values.size() * 2 <= count;
  out.flags = all(flags);
  if (!out.whole) return out;
  bool up = true, down = true, never_falls = true, never_rises = true;
  for (std::size_t i = 1; i < whole.size(); ++i) {
    up = up && whole[i] == whole[i - 1] + 1;
    down = down && whole[i] == whole[i - 1] - 1;
    never_falls = never_falls && whole[i] >= whole[i - 1];
    never_rises = never_rises && whole[i] <= whole[i - 1];
  }
  out.counting = count >= kRowsForRule && (up || down);
  out.epochs = whole.front() >= kSmallestEpoch && (never_falls || never_rises);
  const bool rising = out.epochs && !out.constant && count >= kRowsForRule;
  out.likely_epochs = rising && goes_on_like_time(whole);
  out.perhaps_epochs = rising && !out.likely_epochs && may_be_time(whole);
  return out;
}

}  // namespace toto::data
