// SPDX-License-Identifier: Apache-2.0
// What the first rows of a table say about columns together.
#pragma once

#include <cstddef>
#include <vector>

#include "data/columns.h"
#include "data/csv_reader.h"
#include "data/sample.h"

namespace toto::data {

/// A column that has one value in the first rows has no other one below. `csv` stands before them.
bool stays_the_same(CsvReader csv, const Sample& sample, std::size_t column);

/// Which of the columns have a field in a row below that does not mean missing. `csv` stands before
/// them.
std::vector<bool> columns_with_values(CsvReader csv, std::size_t columns);

/// Two of the first rows have one time and the same ids.
bool repeat_times(const Sample& sample, const Columns& columns,
                  const std::vector<std::size_t>& ids);

/// A code, a place, a size of what the ids name: another one for another series, and it stays.
bool belongs_to_ids(const Sample& sample, const std::vector<std::size_t>& ids, std::size_t column);

}  // namespace toto::data
