// SPDX-License-Identifier: Apache-2.0
#include "data/value_column.h"

#include <cmath>
#include <limits>
#include <vector>

namespace toto::data {

void ValueColumn::look(std::span<const std::string_view> fields) {
  std::vector<std::string_view> units;
  for (const std::string_view field : fields) {
    const Number plain = parse_number(field);
    if (plain.kind == NumberKind::missing) continue;
    const Decorated parts = take_apart(field);
    if (plain.kind == NumberKind::not_a_number && !parts.valid) {
      ++words_;
      continue;
    }
    ++numbers_;
    if (!parts.valid) continue;
    votes_.add(parts.core);
    // 0 is the same in every unit, and many writers leave its unit out.
    if (parts.unit.empty() && plain.kind == NumberKind::value && plain.value == 0.0F) continue;
    units.push_back(parts.unit);
  }
  units_agree_ = unit_.settle(units);
  plain_ = unit_.factor("").has_value();
}

Number ValueColumn::read_unless_told(std::string_view field) const {
  constexpr Number kMissing{NumberKind::missing, std::numeric_limits<float>::quiet_NaN()};
  if (told_->has_word(field)) return kMissing;
  const Number number = read_number(field);
  return number.kind == NumberKind::value && told_->has_number(number.exact) ? kMissing : number;
}

Number ValueColumn::read_decorated(std::string_view field) const {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const Number plain = parse_number(field);
  if (plain.kind == NumberKind::missing || plain.kind == NumberKind::not_finite) return plain;
  const Decorated parts = take_apart(field);
  if (!parts.valid) return {NumberKind::not_a_number, kNaN};
  const Number core = parse_core(parts.core, decimal_, parts.negative);
  if (core.kind != NumberKind::value) return core;
  if (core.value == 0.0F && parts.unit.empty()) return core;
  const std::optional<double> factor = unit_.factor(parts.unit);
  if (!factor) return {NumberKind::not_a_number, kNaN};
  if (*factor == 1.0) return core;
  const auto scaled = static_cast<float>(core.exact * *factor);
  if (!std::isfinite(scaled)) return {NumberKind::not_finite, kNaN};
  return {NumberKind::value, scaled, core.exact * *factor};
}

}  // namespace toto::data
