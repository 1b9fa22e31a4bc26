// SPDX-License-Identifier: Apache-2.0
#include "data/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "core/utf8.h"
#include "data/column_words.h"
#include "data/guess.h"
#include "data/number.h"

namespace toto::data {
namespace {

using Record = std::vector<std::string>;

constexpr std::array<std::string_view, 12> kBinance = {
    "open_time",  "open",         "high",  "low",       "close",       "volume",
    "close_time", "quote_volume", "count", "taker_buy", "taker_quote", "ignore"};
constexpr std::array<std::string_view, 6> kBars = {"time", "open",  "high",
                                                   "low",  "close", "volume"};

Record record_of(const CsvReader& csv) {
  Record record;
  for (std::size_t i = 0; i < csv.size(); ++i) record.emplace_back(trim(csv[i]));
  return record;
}

bool same_kinds(const Record& a, const Record& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Kind one = kind_of(a[i]), other = kind_of(b[i]);
    if (one != other && one != Kind::empty && other != Kind::empty) return false;
  }
  return true;
}

std::size_t count_data(const Record& record) {
  return static_cast<std::size_t>(std::ranges::count_if(record, [](const std::string& field) {
    const Kind kind = kind_of(field);
    return kind == Kind::number || kind == Kind::time;
  }));
}

bool only_data(const Record& record) {
  return count_data(record) > 0 && std::ranges::none_of(record, [](const std::string& field) {
           return kind_of(field) == Kind::text;
         });
}

double number_in(const Record& record, std::size_t i) {
  const Number number = parse_number(record[i]);
  return number.kind == NumberKind::value ? number.exact : 0.0;
}

/// Low, open, close and high in order, in columns 1 to 4 of both rows.
bool looks_like_bars(const Record& record) {
  constexpr std::size_t kOpen = 1, kHigh = 2, kLow = 3, kClose = 4;
  if (record.size() < kClose + 1) return false;
  const double open = number_in(record, kOpen), high = number_in(record, kHigh),
               low = number_in(record, kLow), close = number_in(record, kClose);
  return low > 0.0 && low <= std::min(open, close) && high >= std::max(open, close);
}

bool looks_like_binance(const Record& record) {
  constexpr double kEpochMs = 1e12;
  constexpr std::size_t kCloseTime = 6;
  return record.size() == kBinance.size() && looks_like_bars(record) &&
         number_in(record, 0) >= kEpochMs && number_in(record, kCloseTime) > number_in(record, 0);
}

template <typename Names>
void take_names(Header& header, const Names& names) {
  for (std::size_t i = 0; i < std::min(names.size(), header.names.size()); ++i) {
    header.names[i] = names[i];
  }
}

/// Names for the columns of a table that has none.
Header make_up(const Record& first, const Record& second) {
  Header header;
  header.there = false;
  for (std::size_t i = 0; i < first.size(); ++i) {
    header.names.push_back(fmt::format("column{}", i + 1));
  }
  const bool time_first =
      !first.empty() && (kind_of(first[0]) == Kind::time || number_in(first, 0) >= 1e8);
  if (looks_like_binance(first) && (second.empty() || looks_like_binance(second))) {
    take_names(header, kBinance);
    header.notes.emplace_back("no header: the columns are taken for Binance's klines");
    return header;
  }
  if (first.size() <= 7 && time_first && looks_like_bars(first) &&
      (second.empty() || looks_like_bars(second))) {
    take_names(header, kBars);
    header.notes.emplace_back("no header: the columns are taken for open, high, low and close");
    return header;
  }
  if (first.size() == 1) take_names(header, std::array<std::string_view, 1>{"value"});
  if (first.size() == 2 && time_first) {
    take_names(header, std::array<std::string_view, 2>{"time", "value"});
  }
  std::string names;
  for (const std::string& name : header.names) names += (names.empty() ? "" : ", ") + name;
  if (header.names.size() > 8) names = fmt::format("column1 to column{}", header.names.size());
  header.notes.push_back(fmt::format("no header: the columns are called {}", names));
  return header;
}

/// The three header rows that yfinance and pandas write: fields, tickers, the name of the index.
bool is_three_rows(const Record& fields, const Record& tickers, const Record& index) {
  const auto one_of = [](std::string_view text, std::initializer_list<std::string_view> words) {
    const std::string plain = plain_name(text);
    return std::ranges::find(words, std::string_view(plain)) != words.end();
  };
  if (fields.size() < 2 || fields.size() != tickers.size() || index.empty()) return false;
  if (!one_of(fields[0], {"price", "attributes", ""})) return false;
  if (!one_of(tickers[0], {"ticker", "tickers", "symbol", "symbols", ""})) return false;
  if (!one_of(index[0], {"date", "datetime"})) return false;
  return std::all_of(index.begin() + 1, index.end(),
                     [](const std::string& s) { return s.empty(); });
}

bool names_a_close(const Record& record) {
  return std::ranges::any_of(record,
                             [](const std::string& name) { return plain_name(name) == "close"; });
}

Header join_three_rows(const Record& fields, const Record& tickers, const Record& index) {
  Header header;
  const bool one = std::all_of(tickers.begin() + 1, tickers.end(),
                               [&](const std::string& name) { return name == tickers[1]; });
  header.names.push_back(index[0]);
  for (std::size_t i = 1; i < fields.size(); ++i) {
    const bool close = plain_name(fields[i]) == "close";
    header.names.push_back(one ? fields[i] : close ? tickers[i] : "");
  }
  if (one) {
    header.symbol = tickers[1];
  } else {
    header.notes.emplace_back(
        "columns of several tickers: Close is read, the other prices and volumes are left out");
  }
  return header;
}

/// The rows in which CloudWatch says what its columns are: "Full label", "Label", "Period", ...
/// Each begins with a word, and the data below them with a time. Empty: there are none.
std::vector<Record> labelled_rows(const Record& first, CsvReader csv) {
  constexpr std::size_t kMost = 32;
  const std::string plain = plain_name(first[0]);
  if (first.size() < 2 || (plain != "fulllabel" && plain != "label")) return {};
  std::vector<Record> rows = {first};
  try {
    while (rows.size() <= kMost && csv.next()) {
      Record row = record_of(csv);
      if (row.size() != first.size()) return {};
      if (kind_of(row[0]) == Kind::time) return rows;
      if (kind_of(row[0]) != Kind::text) return {};
      rows.push_back(std::move(row));
    }
  } catch (const Error&) {
    return {};  // whoever reads the rows meets it again
  }
  return {};
}

/// By their labels, or by the full ones where those do not tell the columns apart.
Header name_by_labels(const std::vector<Record>& rows) {
  Header header;
  for (const std::string_view word : {"label", "fulllabel"}) {
    const auto row =
        std::ranges::find_if(rows, [&](const Record& one) { return plain_name(one[0]) == word; });
    if (row == rows.end()) continue;
    header.names = *row;
    std::vector<std::string> sorted(row->begin() + 1, row->end());
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) == sorted.end()) break;
  }
  header.names[0] = "time";
  return header;
}

void check_utf8(const CsvReader& csv) {
  for (std::size_t i = 0; i < csv.size(); ++i) {
    if (first_invalid_utf8(csv[i]) == std::string_view::npos) continue;
    csv.fail("encoding", "the name is not UTF-8", csv.place(i), "save the file as UTF-8");
  }
}

}  // namespace

Header read_header(CsvReader& csv, const Dialect& dialect) {
  const CsvReader before = csv;
  if (!csv.next()) csv.fail("no_rows", "the file is empty", {1, 1});
  check_utf8(csv);
  const Place place = csv.place(0);
  Record first = record_of(csv);
  CsvReader ahead = csv;
  Record second, third;
  bool turned = false, three = false;
  try {
    if (ahead.next()) second = record_of(ahead);
    if (second.size() == first.size() && ahead.next()) third = record_of(ahead);
    turned = is_three_rows(second, first, third) && names_a_close(second) &&
             !names_a_close(first);  // group_by="ticker"
    three = turned || is_three_rows(first, second, third);
  } catch (const Error&) {
    third.clear();  // whoever reads the rows meets the error again
  }
  if (three) {
    for (int row = 1; row < 3; ++row) {
      csv.next();
      check_utf8(csv);
    }
    return turned ? join_three_rows(second, first, third) : join_three_rows(first, second, third);
  }
  if (const std::vector<Record> rows = labelled_rows(first, csv); !rows.empty()) {
    for (std::size_t row = 1; row < rows.size(); ++row) {
      csv.next();
      check_utf8(csv);
    }
    Header header = name_by_labels(rows);
    header.line = place.line;
    return header;
  }
  const bool data =
      count_data(first) > 0 && (second.empty() ? only_data(first) : same_kinds(first, second));
  if (data && !dialect.hash_header) {
    csv = before;
    Header header = make_up(first, second);
    header.line = place.line;
    return header;
  }
  if (only_data(first)) {
    csv.fail("no_header", "the first row holds data, not names, and the second differs from it",
             place, "add a first row with the names of the columns");
  }
  Header header;
  header.line = place.line;
  if (dialect.hash_header) first[0] = trim(std::string_view(first[0]).substr(1));
  header.names = std::move(first);
  return header;
}

}  // namespace toto::data
