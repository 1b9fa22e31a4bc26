// SPDX-License-Identifier: Apache-2.0
// The error for a field that should be a number, with the way out.
#pragma once

#include <cstddef>
#include <string>

#include "data/csv_reader.h"
#include "data/number.h"
#include "data/value_column.h"

namespace toto::data {

/// A value below or above a limit of measurement: <1, > 2,419.6.
bool is_limit(std::string_view field);

/// Throws Error (65) not_finite or not_a_number for the field of `csv` in `column`, which is called
/// `name` and was read by `values` as `kind`.
[[noreturn]] void fail_number(const CsvReader& csv, std::size_t column, const std::string& name,
                              const ValueColumn& values, NumberKind kind);

}  // namespace toto::data
