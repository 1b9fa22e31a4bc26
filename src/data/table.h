// SPDX-License-Identifier: Apache-2.0
// A CSV file as rows grouped by series: columns found, fields parsed, order checked, nothing
// filled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/descriptor.h"
#include "data/columns.h"
#include "toto/tools/data.hpp"

namespace toto::data {

/// The rows of one id, in the order of the file, which is that of time.
struct RowGroup {
  std::string id;                     // empty without an id column
  std::vector<std::int64_t> times;    // [rows] as TimeSeries has them
  std::vector<std::int16_t> offsets;  // [rows] minutes east of UTC
  std::vector<float> values;          // [rows][columns]; NaN = missing
  std::size_t last_line = 0;
};

struct Table {
  std::string name;
  Layout layout = Layout::wide;
  bool has_ids = false;
  std::vector<std::string> columns;  // values, then covariates
  std::size_t covariates = 0;
  std::vector<RowGroup> groups;  // in order of appearance; at least one, none without rows
  TimeStyle style;
  std::vector<std::string> warnings;
};

/// Reads it whole; errors as for read_csv.
Table read_table(std::istream& in, std::string_view name, const CsvOptions& options, Take take);

/// A file open for reading, or standard input for "-". Reading throws Error read_failed (74).
class Input {
 public:
  /// Throws Error file_not_found (66), read_failed (74).
  explicit Input(const std::string& path);
  [[nodiscard]] std::istream& stream() { return stream_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::unique_ptr<DescriptorBuffer> buffer_;
  std::istream stream_;
};

}  // namespace toto::data
