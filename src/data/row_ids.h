// SPDX-License-Identifier: Apache-2.0
// The names of series that lie in rows: from the columns that are no steps.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "data/csv_reader.h"

namespace toto::data {

class RowIds {
 public:
  /// `columns`: those that may say it. `told`: those that do, as --id names them; throws Error (65)
  /// missing_column where one of them is none of `columns`.
  RowIds(const CsvReader& csv, const std::vector<std::string>& names,
         std::vector<std::size_t> columns, const std::vector<std::string>& told);

  /// Keeps a copy of what a row says. Throws Error (65) encoding.
  void add(const CsvReader& csv);

  /// The id of each row, and by which columns: those told; else the column called id, symbol and
  /// the like, else the first one of words, else all of words, else all that hold words or are
  /// called as what tells series apart: the first of these by which no two rows are the same.
  /// Without any column: row1, row2, ... Throws Error (65): missing_id, ambiguous_id.
  std::vector<std::string> settle();
  [[nodiscard]] const std::vector<std::size_t>& by() const { return by_; }

 private:
  [[nodiscard]] std::string_view field(std::size_t row, std::size_t i) const {
    const std::size_t at = row * columns_.size() + i;
    return std::string_view(words_).substr(ends_[at], ends_[at + 1] - ends_[at]);
  }
  [[nodiscard]] std::string id_of(std::size_t row, const std::vector<std::size_t>& by) const;
  [[nodiscard]] std::size_t first_repeated(const std::vector<std::size_t>& by) const;
  [[nodiscard]] std::vector<std::vector<std::size_t>> candidates() const;
  [[nodiscard]] bool is_text(std::size_t i) const;

  const CsvReader& csv_;
  const std::vector<std::string>& names_;
  std::vector<std::size_t> columns_;
  std::vector<std::size_t> told_;        // places in columns_
  std::string words_;                    // all fields, one behind the other
  std::vector<std::size_t> ends_ = {0};  // [1 + rows * columns_] where they end in words_
  std::vector<std::size_t> lines_;       // [rows]
  std::vector<std::size_t> by_;          // columns of the table
};

}  // namespace toto::data
