// SPDX-License-Identifier: Apache-2.0
#include "data/column_checks.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "data/number.h"

namespace toto::data {

bool stays_the_same(CsvReader csv, const Sample& sample, std::size_t column) {
  if (sample.size() < Sample::kMaxRows) return true;
  const std::string first(sample.at(0, column));
  try {
    while (csv.next()) {
      if (column < csv.size() && csv[column] != first) return false;
    }
  } catch (const Error&) {
    return true;  // whoever reads the rows meets it again
  }
  return true;
}

std::vector<bool> columns_with_values(CsvReader csv, std::size_t columns) {
  std::vector<bool> found(columns, false);
  try {
    while (csv.next()) {
      for (std::size_t i = 0; i < std::min(columns, csv.size()); ++i) {
        if (!found[i]) found[i] = parse_number(trim(csv[i])).kind != NumberKind::missing;
      }
    }
  } catch (const Error&) {
    found.assign(columns, true);  // whoever reads the rows meets it again
  }
  return found;
}

bool repeat_times(const Sample& sample, const Columns& columns,
                  const std::vector<std::size_t>& ids) {
  std::set<std::string> seen;
  for (std::size_t row = 0; row < sample.size(); ++row) {
    std::string key;
    if (columns.timestamp) key.append(sample.at(row, *columns.timestamp));
    if (columns.clock) key.append(" ").append(sample.at(row, *columns.clock));
    for (const std::size_t column : ids) key.append("\n").append(sample.at(row, column));
    if (!seen.insert(std::move(key)).second) return true;
  }
  return false;
}

bool belongs_to_ids(const Sample& sample, const std::vector<std::size_t>& ids, std::size_t column) {
  if (ids.empty()) return false;
  std::unordered_map<std::string, std::string_view> first;
  for (std::size_t row = 0; row < sample.size(); ++row) {
    std::string id;
    for (const std::size_t i : ids) id.append(sample.at(row, i)).push_back('\n');
    const std::string_view value = sample.at(row, column);
    if (first.emplace(std::move(id), value).first->second != value) return false;
  }
  return first.size() > 1 && sample.size() >= 4 * first.size();
}

}  // namespace toto::data
