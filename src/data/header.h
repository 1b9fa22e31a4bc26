// SPDX-License-Identifier: Apache-2.0
// The names of a table's columns: from its header, or by what its rows look like.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "data/csv_reader.h"
#include "data/dialect.h"

namespace toto::data {

struct Header {
  std::vector<std::string> names;  // trimmed; as many as fields
  bool there = true;               // false: the names were made up
  std::size_t line = 1;
  std::string symbol;  // of all columns, where the header says it
  std::vector<std::string> notes;
};

/// Leaves `csv` before the first row. Throws Error (65): no_rows, no_header, encoding.
Header read_header(CsvReader& csv, const Dialect& dialect);

}  // namespace toto::data
