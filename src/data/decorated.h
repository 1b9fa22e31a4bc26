// SPDX-License-Identifier: Apache-2.0
// Numbers as people and spreadsheets write them: 1.234,50 €, (1,000), 86.0 req/s, 10 %.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "data/number.h"

namespace toto::data {

/// A number's parts; the views lie in the field.
struct Decorated {
  bool valid = false;
  bool negative = false;  // by a sign, or by parentheses around it
  std::string_view core;  // digits and separators, begins and ends with neither sign nor unit
  std::string_view unit;  // behind the number, or a currency in front of it
};

Decorated take_apart(std::string_view field);

bool is_currency(std::string_view unit);

/// Which of point and comma is the decimal mark, as far as some numbers tell. 1,234 and 1.234 tell
/// nothing: either may be a group of thousands.
struct DecimalVotes {
  std::size_t point = 0;
  std::size_t comma = 0;
  std::size_t unclear_comma = 0;  // a comma that may be either
  std::size_t unclear_point = 0;

  void add(std::string_view core);
  void add(const DecimalVotes& other);
};

/// `core` with `decimal` as its mark; groups of thousands may be separated by the other of point
/// and comma, by apostrophes and by blanks. Exactly rounded.
Number parse_core(std::string_view core, char decimal, bool negative);

}  // namespace toto::data
