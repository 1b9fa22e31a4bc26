// SPDX-License-Identifier: Apache-2.0
// Records of a CSV text, with limits on what a field and a record may hold.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "data/dialect.h"
#include "toto/error.hpp"

namespace toto::data {

/// Where in a file; both from 1, columns in bytes.
struct Place {
  std::size_t line = 1;
  std::size_t column = 1;
};

/// RFC 4180 with LF, CRLF or CR; empty lines are skipped, and of printed tables the rules. Fields
/// lie in the text itself, so it must outlive the reader; those with doubled quotes are copied.
class CsvReader {
 public:
  static constexpr std::size_t kMaxField = std::size_t{1} << 20;    // bytes
  static constexpr std::size_t kMaxColumns = std::size_t{1} << 16;  // fields in a record

  /// `name` is for messages.
  CsvReader(std::string_view text, std::string name, const Dialect& dialect);
  CsvReader(std::string_view text, std::string name);  // sniffs the dialect

  /// Reads a record; false at the end of the text. What the reader gave before is gone. Throws
  /// Error (65): encoding, unclosed_quote, invalid_quote, field_too_large, too_many_columns.
  bool next();

  [[nodiscard]] std::size_t size() const { return fields_.size(); }
  [[nodiscard]] std::string_view operator[](std::size_t i) const { return fields_[i]; }
  [[nodiscard]] Place place(std::size_t i) const { return place_of(starts_[i]); }
  [[nodiscard]] Place end() const { return place_of(end_); }  // of the record
  [[nodiscard]] std::size_t line() const { return line_; }    // where the record begins
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Bytes of the text from the record's first one on.
  [[nodiscard]] std::size_t offset() const {
    return static_cast<std::size_t>(begin_ - text_.data());
  }
  /// The lines of this text are rows of a document of another format.
  void count_rows() { rows_ = true; }

  /// Throws Error (65) at a place of this file.
  [[noreturn]] void fail(std::string_view code, std::string_view message, Place place,
                         std::string_view remedy = {}) const;

 private:
  [[nodiscard]] bool at_end() const { return at_ == stop_; }
  [[nodiscard]] Place place_of(const char* at) const;
  bool skip_line_end();
  void read_record();
  void unbox();
  void read_plain();
  void read_quoted();
  [[noreturn]] void fail_nul() const;

  std::string_view text_;
  std::string name_;
  const char* at_;
  const char* stop_;
  const char* begin_;  // of the record
  const char* end_;    // of the record
  std::size_t line_;   // of begin_
  std::size_t here_;   // the line of at_
  char delimiter_;
  bool boxed_, ruled_;
  bool rows_ = false;
  std::vector<std::string_view> fields_;
  std::vector<const char*> starts_;
  std::deque<std::string> copies_;  // of fields with doubled quotes
};

}  // namespace toto::data
