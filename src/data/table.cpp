// SPDX-License-Identifier: Apache-2.0
#include "data/table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>

#include "core/json.h"
#include "core/utf8.h"
#include "data/columns.h"
#include "data/csv_reader.h"
#include "data/number.h"
#include "data/timestamp.h"

namespace toto::data {
namespace {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

class TableReader {
 public:
  TableReader(std::istream& in, std::string_view name, const CsvOptions& options, Take take)
      : csv_(in, std::string(name)), options_(options), take_(take) {
    table_.name = name;
  }

  Table read() {
    read_header();
    if (!csv_.next()) csv_.fail("no_rows", "the table has no rows", {1, 1});
    check_width();
    find_columns_of_table();
    do {
      check_width();
      read_row();
    } while (csv_.next());
    finish_times();
    return std::move(table_);
  }

 private:
  void read_header() {
    if (!csv_.next()) csv_.fail("no_rows", "the file is empty", {1, 1});
    bool only_data = true;
    for (std::size_t i = 0; i < csv_.size(); ++i) {
      const std::string_view name = trim(csv_[i]);
      check_utf8(i);
      only_data =
          only_data && (parse_number(name).kind == NumberKind::value || looks_like_time(name));
      header_.emplace_back(name);
    }
    if (only_data) {
      csv_.fail("no_header", "the first row holds data, not names", csv_.place(0),
                "add a first row with the names of the columns");
    }
  }

  void find_columns_of_table() {
    columns_ = find_columns(header_, csv_, options_, take_);
    table_.layout = columns_.layout;
    table_.has_ids = columns_.id.has_value();
    table_.warnings = std::move(columns_.warnings);
    table_.covariates = columns_.covariates.size();
    numbers_ = columns_.values;
    numbers_.insert(numbers_.end(), columns_.covariates.begin(), columns_.covariates.end());
    for (const std::size_t column : numbers_) table_.columns.push_back(header_[column]);
  }

  void check_width() const {
    if (csv_.size() == header_.size()) return;
    const bool longer = csv_.size() > header_.size();
    csv_.fail(
        "ragged_row",
        fmt::format("expected {} fields as in the header, found {}", header_.size(), csv_.size()),
        longer ? csv_.place(header_.size()) : csv_.end());
  }

  void check_utf8(std::size_t field) const {
    if (first_invalid_utf8(csv_[field]) == std::string_view::npos) return;
    csv_.fail("encoding", "the name is not UTF-8", csv_.place(field), "save the file as UTF-8");
  }

  void read_row() {
    RowGroup& group = columns_.id ? group_of(*columns_.id) : only_group();
    if (columns_.timestamp) {
      read_time(group, *columns_.timestamp);
    } else {
      group.times.push_back(static_cast<std::int64_t>(group.times.size()));
    }
    for (const std::size_t column : numbers_) group.values.push_back(read_number(column));
    group.last_line = csv_.place(0).line;
  }

  RowGroup& only_group() {
    if (table_.groups.empty()) table_.groups.emplace_back();
    return table_.groups.front();
  }

  RowGroup& group_of(std::size_t field) {
    const std::string_view id = trim(csv_[field]);
    if (!table_.groups.empty() && table_.groups[latest_].id == id) return table_.groups[latest_];
    if (const auto known = by_id_.find(id); known != by_id_.end()) {
      latest_ = known->second;
      return table_.groups[latest_];
    }
    if (id.empty()) csv_.fail("missing_id", "the id is empty", csv_.place(field));
    check_utf8(field);
    latest_ = table_.groups.size();
    table_.groups.emplace_back().id = id;
    by_id_.emplace(id, latest_);
    return table_.groups.back();
  }

  void read_time(RowGroup& group, std::size_t field) {
    const auto stamp = times_.read(csv_[field]);
    if (!stamp) {
      csv_.fail(
          "invalid_timestamp",
          fmt::format("{} is not a timestamp; expected {}", quote(csv_[field]), times_.expected()),
          csv_.place(field));
    }
    if (!group.times.empty() && stamp->time <= group.times.back()) fail_order(group, *stamp, field);
    group.times.push_back(stamp->time);
    group.offsets.push_back(stamp->offset_minutes);
    lowest_ = std::min(lowest_, stamp->time);
    highest_ = std::max(highest_, stamp->time);
  }

  [[noreturn]] void fail_order(const RowGroup& group, const Timestamp& stamp,
                               std::size_t field) const {
    const std::string of = columns_.id ? fmt::format(" of series {}", quote(group.id)) : "";
    const std::string text = quote(trim(csv_[field]));
    if (stamp.time == group.times.back()) {
      csv_.fail("duplicate_timestamp",
                fmt::format("{}{} has been in line {} already", text, of, group.last_line),
                csv_.place(field),
                columns_.id
                    ? "keep one row per timestamp and series"
                    : "keep one row per timestamp, or name the id column if the table holds "
                      "several series");
    }
    csv_.fail("backward_timestamp",
              fmt::format("{}{} is before the timestamp in line {}", text, of, group.last_line),
              csv_.place(field), "sort the rows by time");
  }

  float read_number(std::size_t column) const {
    const Number number = parse_number(csv_[column]);
    if (number.kind == NumberKind::value || number.kind == NumberKind::missing) return number.value;
    const std::string what =
        fmt::format("{} in column {}", quote(csv_[column]), quote(header_[column]));
    if (number.kind == NumberKind::not_finite) {
      csv_.fail("not_finite", what, csv_.place(column),
                "values must be finite and below 3.4e38 in size; leave the field empty if missing");
    }
    csv_.fail("not_a_number", what, csv_.place(column),
              csv_[column].find(',') != std::string_view::npos
                  ? "write a decimal point and no thousands separators"
                  : "leave the field empty if missing, or name the value columns");
  }

  void finish_times() {
    if (!columns_.timestamp) return;
    times_.finish(lowest_, highest_);
    table_.style = times_.style();
    for (RowGroup& group : table_.groups) {
      for (std::int64_t& time : group.times) time = times_.convert(time);
      const auto same = std::ranges::adjacent_find(group.times);
      if (same == group.times.end()) continue;
      throw Error(
          ExitStatus::bad_data, "duplicate_timestamp",
          fmt::format("two rows{}{} are in the same millisecond {}",
                      group.id.empty() ? "" : " of series ",
                      group.id.empty() ? "" : quote(group.id), format_time(*same, table_.style)),
          table_.name, "times are kept to the millisecond");
    }
  }

  CsvReader csv_;
  const CsvOptions& options_;
  Take take_;
  std::vector<std::string> header_;
  Columns columns_;
  std::vector<std::size_t> numbers_;  // columns that are parsed, values then covariates
  Table table_;
  std::unordered_map<std::string, std::size_t, TextHash, std::equal_to<>> by_id_;
  std::size_t latest_ = 0;  // the group of the row before
  TimeReader times_;
  std::int64_t lowest_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t highest_ = std::numeric_limits<std::int64_t>::min();
};

}  // namespace

Table read_table(std::istream& in, std::string_view name, const CsvOptions& options, Take take) {
  return TableReader(in, name, options, take).read();
}

Input::Input(const std::string& path) : name_(path == "-" ? "<stdin>" : path), stream_(nullptr) {
  const bool opens = path != "-";
  const int fd = opens ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
  if (fd < 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) {
      throw Error(ExitStatus::missing_input, "file_not_found", "there is no such file", path);
    }
    throw Error(ExitStatus::io, "read_failed", fmt::format("cannot read: {}", std::strerror(error)),
                path);
  }
  buffer_ = std::make_unique<DescriptorBuffer>(fd, opens, name_);
  stream_.rdbuf(buffer_.get());
  stream_.exceptions(std::ios::badbit);  // what the buffer throws says what went wrong
}

}  // namespace toto::data
