// SPDX-License-Identifier: Apache-2.0
#include "data/csv_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace toto::data {

CsvReader::CsvReader(std::string_view text, std::string name, const Dialect& dialect)
    : text_(text),
      name_(std::move(name)),
      at_(text.data() + dialect.begin),
      stop_(text.data() + text.size()),
      begin_(at_),
      end_(at_),
      line_(dialect.line),
      here_(dialect.line),
      delimiter_(dialect.delimiter),
      boxed_(dialect.boxed),
      ruled_(dialect.ruled) {}

CsvReader::CsvReader(std::string_view text, std::string name)
    : CsvReader(text, std::move(name), sniff(text)) {}

bool CsvReader::skip_line_end() {
  if (*at_ != '\r' && *at_ != '\n') return false;
  const bool carriage_return = *at_ == '\r';
  ++at_;
  if (carriage_return && !at_end() && *at_ == '\n') ++at_;
  ++here_;
  return true;
}

bool CsvReader::next() {
  while (true) {
    do {
      if (at_end()) {
        fields_.clear();
        starts_.clear();
        return false;
      }
    } while (skip_line_end());
    read_record();
    if (!ruled_) return true;
    const std::string_view all(begin_, static_cast<std::size_t>(end_ - begin_));
    if (is_rule(all) || is_row_count(all)) continue;
    if (boxed_) unbox();
    return true;
  }
}

/// The bars on the outside separate nothing.
void CsvReader::unbox() {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  if (fields_.size() > 1 && std::ranges::all_of(fields_.front(), is_blank)) {
    fields_.erase(fields_.begin());
    starts_.erase(starts_.begin());
  }
  if (fields_.size() > 1 && std::ranges::all_of(fields_.back(), is_blank)) {
    fields_.pop_back();
    starts_.pop_back();
  }
}

void CsvReader::read_record() {
  fields_.clear();
  starts_.clear();
  if (!copies_.empty()) copies_.clear();
  begin_ = at_;
  line_ = here_;
  while (true) {
    if (fields_.size() == kMaxColumns) {
      fail("too_many_columns", fmt::format("a record has more than {} fields", kMaxColumns),
           place_of(at_));
    }
    starts_.push_back(at_);
    if (!at_end() && *at_ == '"') {
      read_quoted();
    } else {
      read_plain();
    }
    end_ = at_;
    if (at_end() || skip_line_end()) return;
    ++at_;  // the delimiter
  }
}

void CsvReader::read_plain() {
  const char* const first = at_;
  const char* at = at_;
  while (at != stop_ && *at != delimiter_ && *at != '\n' && *at != '\r' && *at != '\0') ++at;
  at_ = at;
  const auto size = static_cast<std::size_t>(at - first);
  if (size > kMaxField) fail("field_too_large", "a field has more than 1 MiB", place_of(first));
  if (at != stop_ && *at == '\0') fail_nul();
  fields_.emplace_back(first, size);
}

void CsvReader::read_quoted() {
  const char* const opened = at_++;
  const char* const first = at_;
  bool doubled = false;
  std::size_t lines = 0;
  while (true) {
    if (at_end()) {
      fail("unclosed_quote",
           static_cast<std::size_t>(at_ - first) > kMaxField
               ? "no closing quote within 1 MiB"
               : "the file ends inside a quoted field",
           place_of(opened));
    }
    const char c = *at_;
    if (c == '\0') fail_nul();
    if (c == '"') {
      if (at_ + 1 == stop_ || at_[1] != '"') break;
      doubled = true;
      ++at_;
    }
    if (static_cast<std::size_t>(at_ - first) >= kMaxField) {
      fail("unclosed_quote", "no closing quote within 1 MiB", place_of(opened));
    }
    lines += c == '\n' ? 1 : 0;
    ++at_;
  }
  const std::string_view inside(first, static_cast<std::size_t>(at_ - first));
  ++at_;
  if (!at_end() && *at_ != delimiter_ && *at_ != '\n' && *at_ != '\r') {
    fail("invalid_quote", "text follows the closing quote", place_of(at_),
         "a quote inside a quoted field is written twice");
  }
  here_ += lines;
  if (!doubled) {
    fields_.push_back(inside);
    return;
  }
  std::string& copy = copies_.emplace_back();
  for (std::size_t i = 0; i < inside.size(); ++i) {
    copy.push_back(inside[i]);
    if (inside[i] == '"') ++i;
  }
  fields_.emplace_back(copy);
}

Place CsvReader::place_of(const char* at) const {
  const auto lines = static_cast<std::size_t>(std::count(begin_, at, '\n'));
  const char* from = at;
  while (from != begin_ && from[-1] != '\n') --from;
  return {line_ + lines, static_cast<std::size_t>(at - from) + 1};
}

void CsvReader::fail_nul() const {
  fail("encoding", "a NUL byte: the file is not text, or UTF-16", place_of(at_),
       "save it as UTF-8");
}

void CsvReader::fail(std::string_view code, std::string_view message, Place place,
                     std::string_view remedy) const {
  const std::string where = rows_ ? fmt::format("{}: row {}", name_, place.line)
                                  : fmt::format("{}:{}:{}", name_, place.line, place.column);
  throw Error(ExitStatus::bad_data, code, message, where, remedy);
}

}  // namespace toto::data
