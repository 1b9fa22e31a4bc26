// SPDX-License-Identifier: Apache-2.0
#include "data/bad_number.h"

#include <fmt/format.h>

#include "core/json.h"
#include "data/decorated.h"

namespace toto::data {

bool is_limit(std::string_view field) {
  field = trim(field);
  if (!field.starts_with('<') && !field.starts_with('>')) return false;
  field.remove_prefix(1);
  if (field.starts_with('=')) field.remove_prefix(1);
  return starts_like_number(field) && take_apart(field).valid;
}

void fail_number(const CsvReader& csv, std::size_t column, const std::string& name,
                 const ValueColumn& values, NumberKind kind) {
  const std::string_view field = csv[column];
  const std::string what = fmt::format("{} in column {}", quote(field), quote(name));
  if (kind == NumberKind::not_finite) {
    csv.fail("not_finite", what, csv.place(column),
             "values must be finite and below 3.4e38 in size; leave the field empty if missing");
  }
  const Decorated parts = take_apart(field);
  const std::string& unit = values.unit().name();
  if (parts.valid && parts.unit != unit) {
    csv.fail("not_a_number",
             fmt::format("{}: a unit that does not go with {}", what,
                         unit.empty() ? "the plain numbers before it" : quote(unit)),
             csv.place(column), "write all numbers of a column in one unit");
  }
  if (is_limit(field)) {
    csv.fail("not_a_number", what + ": a limit, not a value", csv.place(column),
             "take it for missing with --missing-values, or write the number to be read");
  }
  csv.fail("not_a_number", what, csv.place(column),
           field.find(',') != std::string_view::npos
               ? "say --decimal , if this is a decimal comma"
               : "if it stands for missing name it with --missing-values; else name the value "
                 "columns");
}

}  // namespace toto::data
