// SPDX-License-Identifier: Apache-2.0
// The text of one input: read whole, decompressed, and refused by name if it is something else.
#pragma once

#include <cstddef>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "data/bytes.h"
#include "toto/tools/data.hpp"

namespace toto::data {

struct Text {
  std::string name;         // for messages
  std::string compression;  // "gzip", "zstd" or nothing
  bool rows = false;        // made from another format: its lines are rows of that
  Bytes bytes;

  [[nodiscard]] std::string_view view() const { return bytes.view(); }
};

inline constexpr std::size_t kMaxText = std::size_t{1} << 33;

/// Reads a stream to its end, or to a byte after which nothing can be read as a table: a NUL, or
/// more than a field may hold without a comma, tab, semicolon or line end. So devices without an
/// end are not read for ever; whoever parses the text says what is wrong at its end. Throws Error
/// (65): encoding (UTF-16), unsupported_format (Parquet, Excel, a web page, ...), damaged_archive,
/// file_too_large (more than `max_text` bytes); (74) read_failed.
Text read_text(std::istream& in, std::string_view name, std::size_t max_text = kMaxText);

/// The same of a file, or of standard input for "-". Throws Error also file_not_found (66).
Text read_text(const std::string& path, std::size_t max_text = kMaxText);

/// The same text may be read more than once; names are for messages and ids.
Dataset read_csv(const Text& text, const CsvOptions& options);

/// The names of the columns, as read_csv sees them. Errors as for its header.
std::vector<std::string> column_names(const Text& text);

}  // namespace toto::data
