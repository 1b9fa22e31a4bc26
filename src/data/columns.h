// SPDX-License-Identifier: Apache-2.0
// Which columns of a table are what: by the names people use, by their look, or as told.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "data/sample.h"
#include "toto/tools/data.hpp"

namespace toto::data {

/// Columns are counted from 0 in the order of the header.
struct Columns {
  struct LeftOut {
    std::size_t column = 0;
    std::string why;
  };

  Layout layout = Layout::wide;
  std::optional<std::size_t> timestamp;  // nothing: rows are numbered
  std::optional<std::size_t> clock;      // a time of day beside a column of dates
  std::vector<std::size_t> date_parts;   // year, month and perhaps day, instead of a timestamp
  std::vector<std::size_t> ids;
  std::vector<std::size_t> values;
  std::vector<std::size_t> covariates;
  std::vector<LeftOut> left_out;
  std::vector<std::string> warnings;
};

/// Which columns are values.
enum class Take {
  targets,     // those asked for, else what the layout has for them
  covariates,  // every column that starts with a number but those asked for as targets
};

/// `header` are the trimmed names; `csv` is for messages. Throws Error (65): missing_column,
/// duplicate_column, not_a_number (no column holds numbers).
Columns find_columns(const std::vector<std::string>& header, const Sample& sample,
                     const CsvReader& csv, const CsvOptions& options, Take take);

}  // namespace toto::data
