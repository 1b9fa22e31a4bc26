// SPDX-License-Identifier: Apache-2.0
// Whether a table has a series in each row: its columns are steps, or the series of their own.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "data/csv_reader.h"
#include "data/step_columns.h"
#include "data/told_missing.h"

namespace toto::data {

/// The first rows of such a table, which may end at different columns.
struct RowsSample {
  static constexpr std::size_t kMaxRows = 1000;
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 22;
  static constexpr std::size_t kMaxCells = 4096;

  std::size_t rows = 0;
  bool complete = false;                // there are no others
  bool all_numbers = true;              // what is there in the columns of steps
  bool ragged = false;                  // some row ends two columns or more before the last one
  bool any = false;                     // something is there
  bool all_integers = true;             // names of the columns of times: four digits
  std::vector<std::size_t> attributes;  // the other columns
  std::vector<std::vector<std::string>> fields;  // [attributes][rows]
  std::vector<std::string> cells;                // some of the numbers
};

/// `csv` stands behind the header. `told`: what stands for missing beside the usual words. Errors
/// in the rows end the sample: whoever reads them says so.
RowsSample sample_rows(CsvReader csv, const std::vector<std::string>& names,
                       const StepColumns& steps, const ToldMissing& told);

enum class RowsLook { no, unclear, yes };

/// Clear are: columns called by times beside names of series; columns called t1, d_1, week3 beside
/// names that differ from row to row; V2, V3, ... or 1, 2, ... beside such names, where rows end at
/// different columns or there are far more columns than rows. A column of times beside them makes
/// the table an ordinary one.
RowsLook look_at_rows(const std::vector<std::string>& names, const StepColumns& steps,
                      const RowsSample& sample);

/// Whether a record of such a table holds a row: not a comment, not empty throughout.
bool holds_row(const CsvReader& csv);

}  // namespace toto::data
