// SPDX-License-Identifier: Apache-2.0
#include "data/sample.h"

namespace toto::data {

Sample::Sample(CsvReader csv, std::string_view text, std::size_t width, const ToldMissing& told) {
  std::size_t bytes = 0;
  while (rows_.size() < kMaxRows && bytes < kMaxBytes) {
    try {
      if (!csv.next()) break;
    } catch (const Error&) {
      break;  // whoever reads the table comes here again
    }
    if (csv.size() < width) continue;
    std::vector<std::string_view>& row = rows_.emplace_back();
    for (std::size_t i = 0; i < width; ++i) {
      const std::string_view field = told.has(csv[i]) ? csv[i].substr(0, 0) : csv[i];
      const bool inside = field.data() >= text.data() && field.data() <= text.data() + text.size();
      row.push_back(inside ? field : std::string_view(copies_.emplace_back(field)));
      if (rows_.size() == 1) places_.push_back(csv.place(i));
      bytes += field.size() + sizeof(std::string_view);
    }
  }
}

std::vector<std::string_view> Sample::column(std::size_t column) const {
  std::vector<std::string_view> out;
  out.reserve(rows_.size());
  for (std::size_t row = 0; row < rows_.size(); ++row) out.push_back(at(row, column));
  return out;
}

}  // namespace toto::data
