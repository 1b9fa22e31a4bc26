// SPDX-License-Identifier: Apache-2.0
// How a CSV text is written: where its table begins and what separates fields.
#pragma once

#include <cstddef>
#include <string_view>

namespace toto::data {

struct Dialect {
  char delimiter = ',';
  bool told = false;         // by a line "sep=;"
  std::size_t begin = 0;     // byte of the first record of the table
  std::size_t line = 1;      // its line, from 1
  std::size_t skipped = 0;   // lines before it that are no part of the table
  bool hash_header = false;  // the first record is a comment that names the columns
  bool boxed = false;        // | a | b |, as Markdown and MySQL have it: bars on the outside too
  bool ruled = false;        // |---|---| or ----+---- stands between names and rows
};

/// Looks at the first 64 KiB. The delimiter is the one of comma, semicolon, tab and bar by which
/// most lines have as many fields as their neighbours. Lines before the first one of the usual
/// width are a preamble if that one holds names; lines that begin with # are comments. Between bars
/// a rule under the names makes it a printed table (Markdown, MySQL, psql).
Dialect sniff(std::string_view text);

/// Dashes, at least three of them together, among plus signs, bars and colons alone.
bool is_rule(std::string_view line);
/// "(12 rows)", which psql writes under a table.
bool is_row_count(std::string_view line);

}  // namespace toto::data
