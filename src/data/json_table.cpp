// SPDX-License-Identifier: Apache-2.0
#include "data/json_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "data/json_rows.h"
#include "data/number.h"
#include "toto/error.hpp"

namespace toto::data {
namespace {

constexpr std::size_t kRowsForColumns = 1000;
constexpr std::string_view kBlank = " \t\r\n";

std::string_view without_mark(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::size_t first = text.find_first_not_of(kBlank);
  return first == text.npos ? std::string_view() : text.substr(first);
}

/// The line at the front, taken off.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

bool is_lines(std::string_view text) {
  const std::string_view first = take_line(text);
  text = without_mark(text);
  if (!text.starts_with('{') && !text.starts_with('[')) return false;
  return nlohmann::json::accept(first);
}

class Converter {
 public:
  explicit Converter(const Text& text) : source_(without_mark(text.view())), name_(text.name) {
    lines_ = is_lines(source_);
  }

  JsonTable convert() {
    parse([this](const JsonRow& row) { return look_at(row); });
    if (rows_ == 0) {
      throw Error(ExitStatus::bad_data, "no_rows",
                  "nothing in this JSON looks like rows of a table", name_,
                  "expected [[time, value], ...] or [{\"time\": ..., \"value\": ...}, ...]");
    }
    JsonTable out;
    out.text.name = name_;
    out.text.rows = true;
    out.format = lines_ ? "JSON lines" : "JSON";
    out_ = &out.text.bytes;
    write_header();
    parse([this](const JsonRow& row) { return write(row); });
    if (has_series_) out.ids = std::move(labels_);
    tell_apart(out.ids);
    if (infinite_ > 0) {
      out.notes.push_back(fmt::format(
          "{}: {} values that are no finite number are taken as missing", name_, infinite_));
    }
    if (passed_ > 0) {
      out.notes.push_back(
          fmt::format("{}: {} parts that are no row like the first were left out", name_, passed_));
    }
    return out;
  }

 private:
  void parse(const JsonRows::Take& take) {
    labels_.clear();
    if (!lines_) {
      parse_document(source_, take, 0);
      return;
    }
    std::string_view rest = source_;
    bool more = true;
    for (std::size_t line = 1; more && !rest.empty(); ++line) {
      const std::string_view one = take_line(rest);
      if (one.find_first_not_of(kBlank) == one.npos) continue;
      more = parse_document(one, take, line);
    }
  }

  bool parse_document(std::string_view text, const JsonRows::Take& take, std::size_t line) {
    JsonRows rows(take);
    rows.labels() = std::move(labels_);
    const bool whole = nlohmann::json::sax_parse(text.begin(), text.end(), &rows);
    labels_ = std::move(rows.labels());
    if (whole) return true;
    if (rows.stopped()) return false;
    throw Error(ExitStatus::bad_data, "invalid_json", rows.error(),
                line > 0 ? fmt::format("{}:{}:{}", name_, line, rows.error_at())
                         : fmt::format("{}: byte {}", name_, rows.error_at()));
  }

  /// Finds the columns; enough after some rows.
  bool look_at(const JsonRow& row) {
    if (rows_ == 0) {
      by_name_ = row.by_name;
      has_series_ = row.series != JsonRow::kNone;
      width_ = row.fields.size();
      if (!by_name_ && width_ == 2) value_first_ = is_epoch(row, 1) && !is_epoch(row, 0);
    }
    ++rows_;
    if (by_name_ && row.by_name) {
      for (const auto& [name, text] : row.fields) {
        if (columns_.emplace(name, columns_.size()).second) names_.push_back(name);
      }
    }
    return rows_ < kRowsForColumns;
  }

  static bool is_epoch(const JsonRow& row, std::size_t i) {
    constexpr double kSmallest = 1e8;
    const Number number = parse_number(row.fields[i].second);
    return number.kind == NumberKind::value && number.exact >= kSmallest;
  }

  void write_header() {
    std::vector<std::string> names = names_;
    if (!by_name_) {
      // Without names the rows tell what they are, unless there are two columns alone.
      if (width_ != 2) {
        if (!has_series_) return;
        for (std::size_t i = 0; i < width_; ++i) names.push_back(fmt::format("column{}", i + 1));
      } else {
        names = value_first_ ? std::vector<std::string>{"value", "time"}
                             : std::vector<std::string>{"time", "value"};
      }
    }
    if (has_series_) names.insert(names.begin(), "id");
    for (std::size_t i = 0; i < names.size(); ++i) put(names[i], i);
    out_->append("\n");
  }

  bool write(const JsonRow& row) {
    if (row.by_name != by_name_ || (!by_name_ && row.fields.size() != width_)) {
      ++passed_;
      return true;
    }
    std::size_t at = 0;
    if (has_series_) put(fmt::format("{}", row.series), at++);
    if (!by_name_) {
      for (const auto& field : row.fields) put(finite(field.second), at++);
    } else {
      fields_.assign(names_.size(), {});
      for (const auto& [name, text] : row.fields) {
        if (const auto column = columns_.find(name); column != columns_.end()) {
          fields_[column->second] = finite(text);
        }
      }
      for (const std::string_view field : fields_) put(field, at++);
    }
    out_->append("\n");
    return true;
  }

  std::string_view finite(std::string_view text) {
    const Number number = parse_number(text);
    if (number.kind != NumberKind::not_finite) return text;
    ++infinite_;
    return {};
  }

  void put(std::string_view field, std::size_t at) {
    if (at > 0) out_->append(",");
    if (field.find_first_of(",;\t|\"\r\n#") == field.npos) {
      out_->append(field);
      return;
    }
    std::string quoted = "\"";
    for (const char c : field) {
      if (c == '\0') continue;
      quoted.append(c == '"' ? 2 : 1, c);
    }
    out_->append(quoted.append("\""));
  }

  /// Two series of the same labels get numbers.
  static void tell_apart(std::vector<std::string>& ids) {
    std::unordered_map<std::string, std::size_t> seen;
    for (std::string& id : ids) {
      const std::size_t before = seen[id]++;
      if (before > 0) id += fmt::format("/{}", before + 1);
    }
  }

  std::string_view source_;
  std::string name_;
  bool lines_ = false;
  bool by_name_ = false, has_series_ = false, value_first_ = false;
  std::size_t width_ = 0;
  std::size_t rows_ = 0, passed_ = 0, infinite_ = 0;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> columns_;
  std::vector<std::string_view> fields_;
  std::vector<std::string> labels_;
  Bytes* out_ = nullptr;
};

}  // namespace

bool looks_like_json(std::string_view text) {
  text = without_mark(text);
  if (text.starts_with('{')) return true;
  if (!text.starts_with('[')) return false;
  const std::string_view inside = without_mark(text.substr(1));
  return inside.starts_with('{') || inside.starts_with('[');
}

JsonTable read_json_table(const Text& text) { return Converter(text).convert(); }

}  // namespace toto::data
