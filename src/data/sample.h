// SPDX-License-Identifier: Apache-2.0
// The first records of a table, kept to tell its columns apart.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "data/csv_reader.h"
#include "data/told_missing.h"

namespace toto::data {

class Sample {
 public:
  static constexpr std::size_t kMaxRows = 1000;
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 22;

  /// Reads on. Columns from `width` on are those without a name, and empty here. Shorter records
  /// are passed over; whoever reads the table says so. What is told to be missing is empty here.
  Sample(CsvReader csv, std::string_view text, std::size_t width, const ToldMissing& told = {});

  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] std::string_view at(std::size_t row, std::size_t column) const {
    return column < rows_[row].size() ? rows_[row][column] : std::string_view();
  }
  [[nodiscard]] std::vector<std::string_view> column(std::size_t column) const;
  /// The lines of the first record, for messages.
  [[nodiscard]] Place place(std::size_t column) const { return places_.at(column); }

 private:
  std::vector<std::vector<std::string_view>> rows_;
  std::vector<Place> places_;
  std::deque<std::string> copies_;
};

}  // namespace toto::data
