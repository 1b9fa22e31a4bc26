// SPDX-License-Identifier: Apache-2.0
// A text of any format as a table.
#include <algorithm>
#include <charconv>
#include <iterator>

#include "data/csv_reader.h"
#include "data/header.h"
#include "data/json_table.h"
#include "data/table.h"
#include "toto/error.hpp"

namespace toto::data {

Table read_any_table(const Text& text, const CsvOptions& options, Take take, Bytes* spent) {
  if (!looks_like_json(text.view())) return read_table(text, options, take, spent);
  JsonTable json = read_json_table(text);
  Table table = read_table(json.text, options, take);
  table.reading.format = json.format;
  table.reading.compression = text.compression;
  std::ranges::move(json.notes, std::back_inserter(table.warnings));
  if (json.ids.empty()) return table;
  for (RowGroup& group : table.groups) {
    std::size_t number = 0;
    const auto result = std::from_chars(group.id.data(), group.id.data() + group.id.size(), number);
    if (result.ec == std::errc() && number < json.ids.size()) group.id = json.ids[number];
  }
  return table;
}

std::vector<std::string> column_names(const Text& text) {
  if (looks_like_json(text.view())) return column_names(read_json_table(text).text);
  const Dialect dialect = sniff(text.view());
  CsvReader csv(text.view(), text.name, dialect);
  try {
    return read_header(csv, dialect).names;
  } catch (const Error& error) {
    if (error.code() != "no_header") throw;
    return {};  // columns that are called by times; if not, whoever reads the rows says so
  }
}

}  // namespace toto::data
