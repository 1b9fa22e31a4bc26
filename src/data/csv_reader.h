// SPDX-License-Identifier: Apache-2.0
// Records of a CSV file, read as a stream with limits on what a field and a record may hold.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "toto/error.hpp"

namespace toto::data {

/// Where in a file; both from 1, columns in bytes.
struct Place {
  std::size_t line = 1;
  std::size_t column = 1;
};

/// RFC 4180 with LF, CRLF or CR; empty lines are skipped. The delimiter is the one of comma,
/// semicolon and tab that the first record (its first 64 KiB) has most of.
class CsvReader {
 public:
  static constexpr std::size_t kMaxField = std::size_t{1} << 20;    // bytes
  static constexpr std::size_t kMaxColumns = std::size_t{1} << 16;  // fields in a record

  /// `name` is for messages. Throws Error (65): encoding for UTF-16.
  CsvReader(std::istream& in, std::string name);

  /// Reads a record; false at the end of the file. What fields() gave before is gone. Throws Error
  /// (65): encoding, unclosed_quote, invalid_quote, field_too_large, too_many_columns; (74)
  /// read_failed.
  bool next();

  [[nodiscard]] std::size_t size() const { return fields_.size(); }
  [[nodiscard]] std::string_view operator[](std::size_t i) const {
    return std::string_view(text_).substr(fields_[i].begin, fields_[i].size);
  }
  [[nodiscard]] Place place(std::size_t i) const { return fields_[i].place; }
  [[nodiscard]] Place end() const { return end_; }  // of the record
  [[nodiscard]] const std::string& name() const { return name_; }

  /// Throws Error (65) at a place of this file.
  [[noreturn]] void fail(std::string_view code, std::string_view message, Place place,
                         std::string_view remedy = {}) const;

 private:
  struct Field {
    std::size_t begin = 0;  // in text_
    std::size_t size = 0;
    Place place;
  };

  bool fill();
  bool at_end() { return at_ == buffer_.size() && !fill(); }
  char peek() const { return buffer_[at_]; }
  void step() { ++at_, ++here_.column; }
  bool skip_line_end();
  void sniff_delimiter();
  void read_plain();
  void read_quoted();
  void read_field();
  [[noreturn]] void fail_nul() const;

  std::istream* in_;
  std::string name_;
  std::string buffer_;  // the part of the file that is looked at
  std::size_t at_ = 0;  // in buffer_
  Place here_;
  char delimiter_ = ',';
  std::string text_;  // the fields of the record, one after the other
  std::vector<Field> fields_;
  Place end_;
};

}  // namespace toto::data
