// SPDX-License-Identifier: Apache-2.0
#include "data/csv_reader.h"

#include <fmt/format.h>

#include <array>
#include <istream>
#include <utility>

namespace toto::data {
namespace {

// Bytes read at a time. Of the first record, this much decides the delimiter.
constexpr std::size_t kBuffer = std::size_t{1} << 16;

}  // namespace

CsvReader::CsvReader(std::istream& in, std::string name) : in_(&in), name_(std::move(name)) {
  fill();
  if (buffer_.starts_with("\xFF\xFE") || buffer_.starts_with("\xFE\xFF")) {
    fail("encoding", "the file is UTF-16", here_, "save it as UTF-8");
  }
  if (buffer_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  sniff_delimiter();
}

bool CsvReader::fill() {
  buffer_.resize(kBuffer);
  in_->read(buffer_.data(), static_cast<std::streamsize>(kBuffer));
  buffer_.resize(static_cast<std::size_t>(in_->gcount()));
  at_ = 0;
  if (in_->bad()) throw Error(ExitStatus::io, "read_failed", "reading failed", name_);
  return !buffer_.empty();
}

void CsvReader::sniff_delimiter() {
  std::array<std::size_t, 3> counts{};
  constexpr std::string_view kDelimiters = ",;\t";
  bool quoted = false;
  std::size_t i = buffer_.find_first_not_of("\r\n", at_);
  for (; i < buffer_.size(); ++i) {
    const char c = buffer_[i];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '\n' || c == '\r') break;
    if (const std::size_t k = kDelimiters.find(c); k != kDelimiters.npos) ++counts[k];
  }
  std::size_t best = 0;
  for (std::size_t k = 1; k < counts.size(); ++k) {
    if (counts[k] > counts[best]) best = k;
  }
  delimiter_ = kDelimiters[best];
}

bool CsvReader::skip_line_end() {
  if (peek() != '\r' && peek() != '\n') return false;
  const bool carriage_return = peek() == '\r';
  step();
  if (carriage_return && !at_end() && peek() == '\n') step();
  here_ = {here_.line + 1, 1};
  return true;
}

bool CsvReader::next() {
  text_.clear();
  fields_.clear();
  do {
    if (at_end()) return false;
  } while (skip_line_end());

  while (true) {
    if (fields_.size() == kMaxColumns) {
      fail("too_many_columns", fmt::format("a record has more than {} fields", kMaxColumns), here_);
    }
    fields_.push_back({text_.size(), 0, here_});
    read_field();
    fields_.back().size = text_.size() - fields_.back().begin;
    end_ = here_;
    if (at_end() || skip_line_end()) return true;
    step();  // the delimiter
  }
}

void CsvReader::read_field() {
  if (at_end()) return;
  if (peek() == '"') {
    read_quoted();
  } else {
    read_plain();
  }
}

void CsvReader::read_plain() {
  const std::size_t begin = text_.size();
  while (!at_end()) {
    std::size_t stop = at_;
    while (stop < buffer_.size()) {
      const char c = buffer_[stop];
      if (c == delimiter_ || c == '\n' || c == '\r' || c == '\0') break;
      ++stop;
    }
    text_.append(buffer_, at_, stop - at_);
    here_.column += stop - at_;
    at_ = stop;
    if (text_.size() - begin > kMaxField) {
      fail("field_too_large", "a field has more than 1 MiB", fields_.back().place);
    }
    if (stop < buffer_.size()) break;
  }
  if (!at_end() && peek() == '\0') fail_nul();
}

void CsvReader::read_quoted() {
  const std::size_t begin = text_.size();
  const Place opened = here_;
  step();
  while (true) {
    if (at_end()) fail("unclosed_quote", "the file ends inside a quoted field", opened);
    const char c = peek();
    if (c == '\0') fail_nul();
    if (c == '"') {
      step();
      if (at_end() || peek() != '"') break;
    }
    text_.push_back(c);
    if (text_.size() - begin > kMaxField) {
      fail("unclosed_quote", "no closing quote within 1 MiB", opened);
    }
    if (c == '\n') {
      ++at_;
      here_ = {here_.line + 1, 1};
    } else {
      step();
    }
  }
  if (!at_end() && peek() != delimiter_ && peek() != '\n' && peek() != '\r') {
    fail("invalid_quote", "text follows the closing quote", here_,
         "a quote inside a quoted field is written twice");
  }
}

void CsvReader::fail_nul() const {
  fail("encoding", "a NUL byte: the file is not text, or UTF-16", here_, "save it as UTF-8");
}

void CsvReader::fail(std::string_view code, std::string_view message, Place place,
                     std::string_view remedy) const {
  throw Error(ExitStatus::bad_data, code, message,
              fmt::format("{}:{}:{}", name_, place.line, place.column), remedy);
}

}  // namespace toto::data
