// SPDX-License-Identifier: Apache-2.0
// Values that float32 cannot tell apart: they are kept as differences from an exact offset.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "data/columns.h"
#include "data/csv_reader.h"
#include "data/rounding.h"
#include "data/table.h"
#include "data/value_column.h"
#include "toto/tools/data.hpp"

namespace toto::data {

/// values + offset, for figures: the sums have digits that the values do not.
std::vector<double> plus_offset(std::span<const float> values, double offset);

/// Of differences from `from` those from `to`.
float moved(float value, double from, double to);

/// The offset of a column; 0 where there are none.
inline double offset_at(std::span<const double> offsets, std::size_t column) {
  return offsets.empty() ? 0.0 : offsets[column];
}

/// Sets the offsets of columns from `first` on that float32 has too few digits for. `rounding` is
/// [groups][columns], and the values are those of the file. Whether there are any.
///
/// An offset is near the last values in time, where the forecast begins, and a multiple of a power
/// of two that a usual change from row to row is not much smaller than. So whole numbers have whole
/// differences.
bool choose_offsets(Table& table, std::span<const Rounding> rounding, std::size_t first);

/// Chosen among floats, an offset may lie half a float's step off the values. Moves those that do
/// by what the differences show; then these are to be read again. Whether there are any.
bool centre_offsets(Table& table, std::span<const Rounding> rounding);

/// Says for the first column with an offset what was done, in one warning.
void tell_offsets(Table& table, std::span<const Rounding> rounding);

/// Says for the first such column that float32 has too few digits, without an offset.
void tell_lost_digits(Table& table, std::span<const Rounding> rounding, std::size_t first);

/// How the rows of a table are read.
struct RowsOfTable {
  CsvReader csv;          // before the first row
  std::size_t named = 0;  // as is_row() has them
  std::size_t width = 0;
  const Columns& columns;
  std::span<const std::size_t> numbers;  // columns that are parsed
  std::span<const ValueColumn> parsers;  // of them
};

/// Reads the columns that have an offset once more, as differences from it. Rows are in the order
/// of the file, as read the first time.
void read_differences(RowsOfTable rows, Table& table);

/// Rounding of the values that the table has, [groups][columns]: what was found to be missing does
/// not count.
void read_rounding(RowsOfTable rows, Table& table, std::span<Rounding> rounding);

}  // namespace toto::data
