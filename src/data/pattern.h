// SPDX-License-Identifier: Apache-2.0
// Dates and times by a pattern in the words of strftime: reading, writing, guessing the pattern.
//
//   %Y %y year     %m month     %d day      %b %B month's name   %a %A weekday (read and ignored)
//   %H %I hour     %M minute    %S second (with a fraction)      %p AM or PM
//   %q quarter     %G year and %V week of ISO 8601               %z zone (+0100, +01:00, Z)
//   %-m %-d %-H %-I: written without a leading zero. Both are read either way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "toto/tools/data.hpp"

namespace toto::data {

struct PatternTime {
  std::int64_t local = 0;  // ms since 1970 by the clock on the wall
  int fraction_digits = 0;
  bool zoned = false;
  int offset_minutes = 0;
};

/// Nothing where `text` is not written so, or there is no such day or time.
std::optional<PatternTime> read_pattern(std::string_view text, std::string_view pattern);

std::string write_pattern(std::int64_t local, std::string_view pattern, int fraction_digits,
                          int offset_minutes);

/// Whether a pattern has all that tells a time, and nothing unknown. Throws Error (2)
/// invalid_date_format.
void check_pattern(std::string_view pattern);

/// month (also a quarter), date (also a week) or datetime.
TimeStyle::Form form_of(std::string_view pattern);

/// The patterns by which a text may have been written: none, one, or two that tell day and month
/// in another order, the day first.
std::vector<std::string> guess_patterns(std::string_view text);

}  // namespace toto::data
