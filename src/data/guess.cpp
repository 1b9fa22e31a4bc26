// SPDX-License-Identifier: Apache-2.0
#include "data/guess.h"

#include "data/decorated.h"
#include "data/number.h"
#include "data/timestamp.h"

namespace toto::data {

Kind kind_of(std::string_view field) {
  field = trim(field);
  const Number plain = parse_number(field);
  if (plain.kind == NumberKind::missing) return Kind::empty;
  if (plain.kind != NumberKind::not_a_number) return Kind::number;
  if (looks_like_time(field)) return Kind::time;
  const Decorated parts = take_apart(field);
  const bool sign = parts.unit.empty() || parts.unit == "%" || is_currency(parts.unit);
  return parts.valid && sign ? Kind::number : Kind::text;
}

bool is_word(std::string_view field) {
  return kind_of(field) == Kind::text && !take_apart(field).valid;
}

}  // namespace toto::data
