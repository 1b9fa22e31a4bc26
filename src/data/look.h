// SPDX-License-Identifier: Apache-2.0
// What the values of a column look like.
#pragma once

#include <span>
#include <string_view>

namespace toto::data {

struct Look {
  bool text = false;            // words, or dates that nobody takes for numbers
  bool dates = false;           // every field is a date or a time
  bool day_numbers = false;     // every field is YYYYMMDD of a likely year
  bool epochs = false;          // whole numbers as large as epochs, that never fall
  bool likely_epochs = false;   // even without a name that says so: they go on by even steps
  bool perhaps_epochs = false;  // they may be; a counter rises like that as well
  bool clocks = false;          // hh:mm
  bool clock_numbers = false;   // hhmm or hhmmss
  bool whole = false;           // whole numbers
  bool counting = false;        // each one more than the one before, or one less
  bool constant = false;
  bool distinct = false;   // no value twice
  bool repeating = false;  // at most half as many values as rows
  bool flags = false;      // only 0 and 1, true and false, yes and no
  bool empty = false;      // nothing there
};

/// The rows that a rule about all rows needs, so that two rows are no pattern.
inline constexpr std::size_t kRowsForRule = 8;

Look look_at(std::span<const std::string_view> fields);

}  // namespace toto::data
