// SPDX-License-Identifier: Apache-2.0
// The names that people and programs give to columns.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace toto::data {

/// Small letters, without blanks, the marks that join words, and numbers in front: "Open Time" is
/// "opentime", "<DATE>" is "date", "1. open" is "open".
std::string plain_name(std::string_view name);

using Words = std::span<const std::string_view>;

Words time_words();   ///< of timestamps, in order of preference, as plain_name() writes them
Words id_words();     ///< that always tell series apart, in order of preference
Words value_words();  ///< of the values of a long table
Words bar_words();    ///< open, high, low, close

/// A time of day beside a column of dates.
bool is_clock_word(std::string_view plain);
/// What tells series apart if it repeats: a shop, a host, a region.
bool is_group_word(std::string_view plain);
/// A part of the date beside a timestamp: a year, a weekday.
bool is_calendar_word(std::string_view plain);
/// A name that says "time": open_time, created_at.
bool sounds_like_time(std::string_view plain);
/// Jan, January, ...: a month without a year.
bool is_month_word(std::string_view plain);
/// y, value, close, volume: what is forecast, whatever it looks like.
bool is_value_word(std::string_view plain);
/// bytes_total, request_count: what only rises.
bool is_counter_word(std::string_view plain);
/// A holiday, a promotion: known ahead, no quantity.
bool is_flag_word(std::string_view plain);

}  // namespace toto::data
