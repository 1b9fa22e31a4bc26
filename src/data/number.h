// SPDX-License-Identifier: Apache-2.0
// One field of a table as a number.
#pragma once

#include <string_view>

namespace toto::data {

enum class NumberKind {
  value,
  missing,       // empty, -, --, ., .., :, ***, nan, null, nil, na, n/a, #n/a, <na>, none
  not_a_number,  // anything else
  not_finite,    // infinite, or too large for a float
};

struct Number {
  NumberKind kind;
  float value;         // NaN unless kind is value
  double exact = 0.0;  // before it was rounded to a float
};

/// Decimal point, optional sign and exponent, blanks around it; the locale plays no part.
Number parse_number(std::string_view text);

/// `text` without blanks at its ends.
std::string_view trim(std::string_view text);

/// Text that was meant to be a number: it starts with a digit, behind a sign or point at most.
bool starts_like_number(std::string_view text);

bool equals_ignoring_case(std::string_view text, std::string_view lower);

}  // namespace toto::data
