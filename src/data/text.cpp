// SPDX-License-Identifier: Apache-2.0
#include "data/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "data/csv_reader.h"
#include "data/decompress.h"
#include "data/table.h"
#include "toto/error.hpp"

namespace toto::data {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;

struct Format {
  std::string_view head;
  std::string_view name;
  std::string_view remedy;
};

constexpr std::string_view kExport = "export it as CSV";
constexpr std::string_view kUnpack = "unpack it first, or compress it with gzip or zstd";
constexpr std::array<Format, 12> kFormats = {
    {{"PAR1", "Parquet", "read it in Python, or write it as CSV, gzip and zstd are fine"},
     {"ARROW1", "Arrow (Feather)", "read it in Python, or write it as CSV"},
     {"PK\x03\x04", "a zip archive or an Excel workbook", "unpack it, or export the sheet as CSV"},
     {"\xD0\xCF\x11\xE0", "an old Excel workbook", kExport},
     {"\xFD"
      "7zXZ",
      "compressed with xz", kUnpack},
     {"BZh", "compressed with bzip2", kUnpack},
     {"7z\xBC\xAF", "a 7-Zip archive", kUnpack},
     {"\x89HDF", "HDF5", kExport},
     {"SQLite format 3", "an SQLite database", kExport},
     {"%PDF", "a PDF document", kExport},
     {"<!DOCTYPE", "a web page", "the download was most likely refused; look at it in a browser"},
     {"<html", "a web page", "the download was most likely refused; look at it in a browser"}}};

void refuse_other_formats(std::string_view head, const std::string& name) {
  if (head.starts_with("\xFF\xFE") || head.starts_with("\xFE\xFF")) {
    throw Error(ExitStatus::bad_data, "encoding", "the file is UTF-16", name + ":1:1",
                "save it as UTF-8");
  }
  for (const Format& format : kFormats) {
    if (!head.starts_with(format.head)) continue;
    throw Error(ExitStatus::bad_data, "unsupported_format",
                fmt::format("the file is {}, not text", format.name), name, format.remedy);
  }
}

/// Takes the pieces of a text until nothing that follows could make it a table.
class Collector {
 public:
  Collector(Text& text, std::size_t max_text) : text_(text), max_text_(max_text) {}

  bool take(std::string_view piece) {
    if (text_.bytes.size() == 0 && !piece.empty()) refuse_other_formats(piece, text_.name);
    const std::size_t nul = piece.find('\0');
    if (nul != piece.npos) {
      text_.bytes.append(piece.substr(0, nul + 1));
      return false;
    }
    text_.bytes.append(piece);
    if (text_.bytes.size() > max_text_) {
      throw Error(ExitStatus::bad_data, "file_too_large",
                  max_text_ == kMaxText ? fmt::format("more than {} GiB of text", kMaxText >> 30)
                                        : fmt::format("more than {} bytes of text", max_text_),
                  text_.name, "read a part of it");
    }
    const std::size_t last = piece.find_last_of(",;\t|\n\r");
    unbroken_ = last == piece.npos ? unbroken_ + piece.size() : piece.size() - last - 1;
    return unbroken_ <= CsvReader::kMaxField + 1;
  }

 private:
  Text& text_;
  const std::size_t max_text_;
  std::size_t unbroken_ = 0;  // bytes since a field or line could have ended
};

std::size_t read_piece(std::istream& in, std::span<char> room, const std::string& name) {
  in.read(room.data(), static_cast<std::streamsize>(room.size()));
  if (in.bad()) throw Error(ExitStatus::io, "read_failed", "reading failed", name);
  return static_cast<std::size_t>(in.gcount());
}

}  // namespace

Text read_text(std::istream& in, std::string_view name, std::size_t max_text) {
  Text text;
  text.name = name;
  Collector collector(text, max_text);
  std::vector<char> buffer(kPiece);
  std::unique_ptr<Decompressor> unpacker;
  const TakePiece take = [&](std::string_view piece) { return collector.take(piece); };
  bool first = true, more = true;
  while (more) {
    const std::size_t size = read_piece(in, buffer, text.name);
    if (size == 0) break;
    const std::string_view piece(buffer.data(), size);
    if (first) {
      text.compression = compression_of(piece);
      if (!text.compression.empty()) unpacker = make_decompressor(text.compression, text.name);
    }
    first = false;
    more = unpacker ? unpacker->feed(piece, take) : take(piece);
  }
  if (unpacker && more) unpacker->finish();
  return text;
}

Text read_text(const std::string& path, std::size_t max_text) {
  Input input(path);
  return read_text(input.stream(), input.name(), max_text);
}

}  // namespace toto::data
