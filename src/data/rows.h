// SPDX-License-Identifier: Apache-2.0
// The fields of a record that a table needs, put together: its time as one text, its id as one.
#pragma once

#include <string>
#include <string_view>

#include "data/columns.h"
#include "data/csv_reader.h"

namespace toto::data {

/// "2013-01-02 09:30" from the columns that hold it. `buffer` keeps what has to be written anew.
std::string_view time_text(const CsvReader& csv, const Columns& columns, std::string& buffer);

/// "berlin/42" from the id columns; empty where one of them is.
std::string_view id_text(const CsvReader& csv, const Columns& columns, std::string& buffer);

/// Which of the columns a message about the time points to.
std::size_t time_column(const Columns& columns);

/// Whether a record of `csv` is a row of data: not a comment, not empty throughout. `named` is one
/// more than the last column with a name, `width` the number of columns. Throws Error ragged_row.
bool is_row(const CsvReader& csv, std::size_t named, std::size_t width);

}  // namespace toto::data
