// SPDX-License-Identifier: Apache-2.0
#include "data/rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/number.h"

namespace toto::data {
namespace {

void append_padded(std::string& out, std::string_view digits) {
  if (digits.ends_with(".0")) digits.remove_suffix(2);
  if (digits.size() < 2) out.push_back('0');
  out.append(digits);
}

/// 930 and 93000 as 09:30 and 09:30:00; anything else as it stands.
void append_clock(std::string& out, std::string_view clock) {
  const bool digits = clock.size() <= 6 && clock.find_first_not_of("0123456789") == clock.npos;
  if (!digits || clock.empty()) {
    out.append(clock);
    return;
  }
  std::string padded(clock.size() <= 4 ? 4 - clock.size() : 6 - clock.size(), '0');
  padded.append(clock);
  for (std::size_t i = 0; i < padded.size(); i += 2) {
    if (i > 0) out.push_back(':');
    out.append(padded, i, 2);
  }
}

bool is_empty(const CsvReader& csv, std::size_t from) {
  for (std::size_t i = from; i < csv.size(); ++i) {
    if (!trim(csv[i]).empty()) return false;
  }
  return true;
}

}  // namespace

std::string_view time_text(const CsvReader& csv, const Columns& columns, std::string& buffer) {
  if (columns.timestamp && !columns.clock) return csv[*columns.timestamp];
  buffer.clear();
  if (columns.timestamp) {
    buffer.append(trim(csv[*columns.timestamp])).push_back(' ');
    append_clock(buffer, trim(csv[*columns.clock]));
    return buffer;
  }
  for (const std::size_t part : columns.date_parts) {
    if (!buffer.empty()) buffer.push_back('-');
    append_padded(buffer, trim(csv[part]));
  }
  return buffer;
}

std::string_view id_text(const CsvReader& csv, const Columns& columns, std::string& buffer) {
  if (columns.ids.size() == 1) return trim(csv[columns.ids.front()]);
  buffer.clear();
  for (const std::size_t column : columns.ids) {
    const std::string_view part = trim(csv[column]);
    if (part.empty()) return {};
    if (!buffer.empty()) buffer.push_back('/');
    buffer.append(part);
  }
  return buffer;
}

std::size_t time_column(const Columns& columns) {
  return columns.timestamp ? *columns.timestamp : columns.date_parts.front();
}

bool is_row(const CsvReader& csv, std::size_t named, std::size_t width) {
  const std::size_t size = csv.size();
  if (size == width && !csv[0].empty() && (size > 1 || csv[0][0] != '#')) return true;
  if (is_empty(csv, 0) && size > 1) return false;
  if (size > width && is_empty(csv, width)) return true;
  if (size >= named && size <= width) return width > 1 || csv[0].empty() || csv[0][0] != '#';
  if (csv[0].starts_with('#') || (size == 1 && trim(csv[0]).empty())) return false;
  csv.fail("ragged_row", fmt::format("expected {} fields as in the header, found {}", width, size),
           size > width ? csv.place(width) : csv.end());
}

}  // namespace toto::data
