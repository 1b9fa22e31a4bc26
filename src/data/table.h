// SPDX-License-Identifier: Apache-2.0
// A table as rows grouped by series: columns found, fields parsed, rows in order, nothing filled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/descriptor.h"
#include "data/columns.h"
#include "data/text.h"
#include "toto/tools/data.hpp"

namespace toto::data {

/// The rows of one id, in the order of time.
struct RowGroup {
  std::string id;                     // empty without an id column
  Times times;                        // [rows] as TimeSeries has them
  std::vector<std::int16_t> offsets;  // [rows] minutes east of UTC; empty: 0 throughout the table
  std::vector<float> values;          // [rows][columns]; NaN = missing
  std::vector<float> low;  // [rows][columns] what rounding to float took off values, where a
                           // rate is to be formed; else empty
  std::vector<double> value_offsets;  // [columns] that values are differences from; empty: all 0
  std::size_t repeated = 0;           // rows that were the same as another one, and dropped
  std::optional<Interval> step;       // that the rows have been put on; else it is to be inferred
};

struct Table {
  std::string name;
  std::string symbol;  // of the only series, where the header says it
  Layout layout = Layout::wide;
  bool has_ids = false;
  std::vector<std::string> columns;  // values, then covariates
  std::size_t covariates = 0;
  std::vector<RowGroup> groups;  // in order of appearance; at least one, none without rows
  TimeStyle style;
  std::vector<std::string> warnings;
  Reading reading;
};

/// A text of any format. Errors as for read_csv. `spent`: the bytes of the text if nobody else
/// reads it: their memory may be given back while it is read.
Table read_any_table(const Text& text, const CsvOptions& options, Take take,
                     Bytes* spent = nullptr);
/// A CSV text.
Table read_table(const Text& text, const CsvOptions& options, Take take, Bytes* spent = nullptr);

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
