// SPDX-License-Identifier: Apache-2.0
#include "data/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>
#include <utility>

#include "core/json.h"
#include "data/number.h"
#include "data/timestamp.h"

namespace toto::data {
namespace {

using Names = std::span<const std::string_view>;

// In order of preference, as plain() writes them.
constexpr auto kTimestamp = std::to_array<std::string_view>(
    {"ds",     "timestamp", "datetime", "date",    "time",  "ts",          "opentime",
     "period", "month",     "week",     "quarter", "year",  "day",         "hour",
     "index",  "step",      "unixtime", "unix",    "epoch", "timestampms", "unnamed:0"});
constexpr auto kId = std::to_array<std::string_view>(
    {"uniqueid", "itemid", "seriesid", "tsid", "id", "symbol", "ticker", "series"});
constexpr auto kValue = std::to_array<std::string_view>({"y", "value", "values", "target"});
constexpr auto kBars = std::to_array<std::string_view>({"open", "high", "low", "close"});

/// Small letters, without blanks and the marks that join words: "Open Time" is "opentime".
std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == ' ' || c == '_' || c == '-' || c == '.') continue;
    out.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  return out;
}

class Finder {
 public:
  Finder(const std::vector<std::string>& header, const CsvReader& first, const CsvOptions& options,
         Take take)
      : header_(header), first_(first), options_(options), take_(take), used_(header.size()) {
    for (std::size_t i = 0; i < header.size(); ++i) by_name_[header[i]].push_back(i);
  }

  Columns find() {
    if (!options_.timestamp.empty()) out_.timestamp = use(require(options_.timestamp));
    if (!options_.id.empty()) out_.id = use(require(options_.id));
    if (take_ == Take::targets) {
      for (const std::string& name : options_.values) out_.values.push_back(use(require(name)));
      find_covariates();
    } else {
      leave_out_targets();
    }
    // What was asked for is no longer free, so it is not taken for something else.
    if (!out_.timestamp) find_timestamp();
    find_layout();
    if (out_.values.empty()) find_values();
    check_names();
    return std::move(out_);
  }

 private:
  std::size_t use(std::size_t column) {
    used_[column] = true;
    return column;
  }

  /// The first of `names` that a free column has.
  std::optional<std::size_t> find_named(Names names) const {
    for (const std::string_view name : names) {
      for (std::size_t i = 0; i < header_.size(); ++i) {
        if (!used_[i] && plain(header_[i]) == name) return i;
      }
    }
    return std::nullopt;
  }

  /// The column of a name as written, else whatever the case.
  std::optional<std::size_t> find_asked(const std::string& name) const {
    if (const auto exact = by_name_.find(name); exact != by_name_.end()) {
      if (exact->second.size() > 1) fail_duplicate(name);
      return exact->second.front();
    }
    const auto same = std::ranges::find(header_, plain(name), plain);
    if (same == header_.end()) return std::nullopt;
    return static_cast<std::size_t>(same - header_.begin());
  }

  std::size_t require(const std::string& name) const {
    if (const auto column = find_asked(name)) return *column;
    fail_missing(fmt::format("there is no column {}", quote(name)));
  }

  [[noreturn]] void fail_missing(std::string message, std::string_view remedy = {}) const {
    constexpr std::size_t kShown = 20;
    message += "; the columns are";
    for (std::size_t i = 0; i < std::min(header_.size(), kShown); ++i) {
      message += fmt::format("{} {}", i == 0 ? "" : ",", quote(header_[i]));
    }
    if (header_.size() > kShown) message += fmt::format(" and {} more", header_.size() - kShown);
    first_.fail("missing_column", message, {1, 1}, remedy);
  }

  [[noreturn]] void fail_duplicate(const std::string& name) const {
    first_.fail("duplicate_column", fmt::format("two columns are called {}", quote(name)), {1, 1},
                "rename one of them, or name the columns to use");
  }

  void find_timestamp() {
    out_.timestamp = find_named(kTimestamp);
    // What pandas calls its index when the index has no name.
    if (!out_.timestamp && header_[0].empty() && !used_[0]) out_.timestamp = 0;
    for (std::size_t i = 0; !out_.timestamp && i < header_.size(); ++i) {
      if (!used_[i] && looks_like_time(first_[i])) out_.timestamp = i;
    }
    if (out_.timestamp) {
      use(*out_.timestamp);
    } else {
      out_.warnings.push_back("no timestamp column: the rows are numbered from 0");
    }
  }

  void find_layout() {
    out_.layout = options_.layout;
    const bool automatic = out_.layout == Layout::automatic;
    const bool bars = std::ranges::all_of(kBars, [&](std::string_view name) {
      return std::ranges::find(header_, name, plain) != header_.end();
    });
    if (automatic && bars) out_.layout = Layout::bars;
    if (!out_.id && out_.layout != Layout::wide) {
      out_.id = find_named(kId);
      if (out_.id) use(*out_.id);
    }
    if (out_.layout == Layout::long_format && !out_.id) fail_missing("there is no id column");
    if (out_.layout == Layout::automatic) {
      out_.layout = out_.id ? Layout::long_format : Layout::wide;
    }
  }

  void find_covariates() {
    for (const std::string& name : options_.covariates) {
      if (!by_name_.contains(name)) continue;
      const std::size_t column = require(name);
      if (!used_[column]) out_.covariates.push_back(use(column));
    }
  }

  void leave_out_targets() {
    for (const std::string& name : options_.values) {
      if (const auto column = find_asked(name)) use(*column);
    }
  }

  void find_values() {
    if (take_ == Take::targets && out_.layout == Layout::bars) {
      out_.values.push_back(use(require("close")));
      return;
    }
    if (take_ == Take::targets && out_.layout == Layout::long_format) {
      if (const auto value = find_named(kValue)) {
        out_.values.push_back(use(*value));
        return;
      }
    }
    std::optional<std::size_t> text;
    for (std::size_t i = 0; i < header_.size(); ++i) {
      if (used_[i] || header_[i].empty()) continue;
      if (is_text(i)) {
        text = text.value_or(i);
        out_.warnings.push_back(
            fmt::format("column {} holds no numbers and is left out", quote(header_[i])));
      } else {
        out_.values.push_back(use(i));
      }
    }
    if (!out_.values.empty()) return;
    if (!text) {
      fail_missing(
          "there is no column left for values",
          out_.covariates.empty() ? "" : "the others are covariates; name the value columns");
    }
    first_.fail("not_a_number",
                fmt::format("{} in column {}", quote(first_[*text]), quote(header_[*text])),
                first_.place(*text));
  }

  /// Text that starts like a number was meant to be one; its reader will say what is wrong with it.
  bool is_text(std::size_t column) const {
    const std::string_view field = first_[column];
    if (parse_number(field).kind != NumberKind::not_a_number) return false;
    return !starts_like_number(field) || looks_like_time(field);
  }

  void check_names() const {
    std::vector<std::size_t> columns = out_.values;
    columns.insert(columns.end(), out_.covariates.begin(), out_.covariates.end());
    std::ranges::sort(columns, {}, [&](std::size_t i) -> const std::string& { return header_[i]; });
    for (std::size_t i = 1; i < columns.size(); ++i) {
      if (header_[columns[i]] == header_[columns[i - 1]]) fail_duplicate(header_[columns[i]]);
    }
  }

  const std::vector<std::string>& header_;
  const CsvReader& first_;
  const CsvOptions& options_;
  Take take_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> by_name_;
  std::vector<bool> used_;
  Columns out_;
};

}  // namespace

Columns find_columns(const std::vector<std::string>& header, const CsvReader& first,
                     const CsvOptions& options, Take take) {
  return Finder(header, first, options, take).find();
}

}  // namespace toto::data
