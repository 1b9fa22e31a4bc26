// SPDX-License-Identifier: Apache-2.0
// One column of numbers: its decimal mark and unit, and its fields as numbers.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "data/decorated.h"
#include "data/number.h"
#include "data/told_missing.h"
#include "data/units.h"

namespace toto::data {

class ValueColumn {
 public:
  /// Looks at the fields of the first rows.
  void look(std::span<const std::string_view> fields);
  [[nodiscard]] const DecimalVotes& votes() const { return votes_; }
  /// Of the fields looked at, none that is there is a number.
  [[nodiscard]] bool is_text() const { return numbers_ == 0 && words_ > 0; }
  /// Neither commas nor points tell the decimal mark, but there are some.
  [[nodiscard]] bool unclear() const {
    return votes_.point == 0 && votes_.comma == 0 && votes_.unclear_comma > 0;
  }
  void set_decimal(char decimal) { decimal_ = decimal; }
  /// Further words and numbers that mean missing; `told` must outlive this.
  void set_missing(const ToldMissing& told) { told_ = told.empty() ? nullptr : &told; }
  [[nodiscard]] char decimal() const { return decimal_; }
  [[nodiscard]] const ColumnUnit& unit() const { return unit_; }
  [[nodiscard]] bool units_agree() const { return units_agree_; }

  [[nodiscard]] Number read(std::string_view field) const {
    return told_ == nullptr ? read_number(field) : read_unless_told(field);
  }

 private:
  [[nodiscard]] Number read_number(std::string_view field) const {
    if (decimal_ == '.') {
      const Number plain = parse_number(field);
      if (plain.kind != NumberKind::not_a_number && (plain_ || plain.kind != NumberKind::value)) {
        return plain;
      }
    }
    return read_decorated(field);
  }
  [[nodiscard]] Number read_unless_told(std::string_view field) const;
  [[nodiscard]] Number read_decorated(std::string_view field) const;

  DecimalVotes votes_;
  ColumnUnit unit_;
  std::size_t numbers_ = 0, words_ = 0;
  const ToldMissing* told_ = nullptr;
  char decimal_ = '.';
  bool units_agree_ = true;
  bool plain_ = true;  // a number without a unit is what it says
};

}  // namespace toto::data
