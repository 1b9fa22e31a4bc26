// SPDX-License-Identifier: Apache-2.0
#include "data/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "core/json.h"
#include "data/column_checks.h"
#include "data/column_words.h"
#include "data/look.h"
#include "data/number.h"

namespace toto::data {
namespace {

class Finder {
 public:
  Finder(const std::vector<std::string>& header, const Sample& sample, const CsvReader& csv,
         const CsvOptions& options, Take take)
      : header_(header),
        sample_(sample),
        csv_(csv),
        options_(options),
        take_(take),
        used_(header.size()),
        looks_(header.size()) {
    for (std::size_t i = 0; i < header.size(); ++i) {
      by_name_[header[i]].push_back(i);
      plain_.push_back(plain_name(header[i]));
    }
  }

  Columns find() {
    if (!options_.timestamp.empty()) out_.timestamp = use(require(options_.timestamp));
    for (const std::string& id : options_.id) out_.ids.push_back(use(require(id)));
    if (take_ == Take::targets) {
      for (const std::string& name : options_.values) out_.values.push_back(use(require(name)));
      find_covariates();
    } else {
      leave_out_targets();
    }
    // What was asked for is no longer free, so it is not taken for something else.
    if (!out_.timestamp) find_timestamp();
    if (out_.timestamp) find_clock();
    find_layout();
    if (out_.values.empty()) find_values();
    tell_months();
    tell_perhaps_times();
    check_names();
    return std::move(out_);
  }

 private:
  std::size_t use(std::size_t column) {
    used_[column] = true;
    return column;
  }

  const Look& look(std::size_t column) {
    std::optional<Look>& look = looks_[column];
    if (!look) look = look_at(sample_.column(column));
    return *look;
  }

  /// The first of `names` that a free column has.
  std::optional<std::size_t> find_named(Words names) const {
    for (const std::string_view name : names) {
      for (std::size_t i = 0; i < header_.size(); ++i) {
        if (!used_[i] && plain_[i] == name) return i;
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
    const auto same = std::ranges::find(plain_, plain_name(name));
    if (same == plain_.end()) return std::nullopt;
    return static_cast<std::size_t>(same - plain_.begin());
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
    csv_.fail("missing_column", message, {1, 1}, remedy);
  }

  [[noreturn]] void fail_duplicate(const std::string& name) const {
    csv_.fail("duplicate_column", fmt::format("two columns are called {}", quote(name)), {1, 1},
              "rename one of them, or name the columns to use");
  }

  void find_timestamp() {
    out_.timestamp = find_named(time_words());
    // What pandas calls its index when the index has no name.
    if (!out_.timestamp && header_[0].empty() && !used_[0]) out_.timestamp = 0;
    // A name that means a part of a date, or a row, gives way to a column of dates.
    const bool weak = !out_.timestamp || is_calendar_word(plain_[*out_.timestamp]) ||
                      look(*out_.timestamp).clocks || header_[*out_.timestamp].empty() ||
                      plain_[*out_.timestamp] == "index" || plain_[*out_.timestamp] == "unnamed:0";
    if (weak) {
      if (find_date_parts()) return;
      for (std::size_t i = 0; i < header_.size(); ++i) {
        if (used_[i] || !look(i).dates) continue;
        out_.timestamp = i;
        break;
      }
    }
    for (std::size_t i = 0; !out_.timestamp && i < header_.size(); ++i) {
      if (!used_[i] && sounds_like_time(plain_[i]) && (look(i).epochs || look(i).day_numbers)) {
        out_.timestamp = i;
      }
    }
    for (std::size_t i = 0; !out_.timestamp && i < header_.size(); ++i) {
      if (!used_[i] && is_likely_time(i) && !is_last_number(i)) out_.timestamp = i;
    }
    if (out_.timestamp) {
      use(*out_.timestamp);
    } else {
      out_.warnings.emplace_back("no timestamp column: the rows are numbered from 0");
    }
  }

  /// Year, month and perhaps day in columns of their own.
  bool find_date_parts() {
    if (take_ == Take::covariates && out_.timestamp) return false;
    const auto find = [&](std::string_view name) { return find_named(std::array{name}); };
    const auto year = find("year"), month = find("month"), day = find("day");
    if (!year || !month || !look(*year).whole || !look(*month).whole) return false;
    if (std::ranges::any_of(look_range(), [](const Look& one) { return one.dates; })) return false;
    out_.timestamp.reset();
    out_.date_parts = {use(*year), use(*month)};
    if (day && look(*day).whole) out_.date_parts.push_back(use(*day));
    return true;
  }

  std::vector<Look> look_range() {
    std::vector<Look> all;
    for (std::size_t i = 0; i < header_.size(); ++i) {
      if (!used_[i]) all.push_back(look(i));
    }
    return all;
  }

  void find_clock() {
    if (!out_.timestamp) return;
    const std::size_t timestamp = *out_.timestamp;
    const Look& date = look(timestamp);
    if (!date.dates && !date.day_numbers) return;
    if (date.dates && sample_.size() > 0 &&
        sample_.at(0, timestamp).find(':') != std::string_view::npos) {
      return;
    }
    for (std::size_t i = 0; i < header_.size(); ++i) {
      if (used_[i] || !is_clock_word(plain_[i])) continue;
      if (!look(i).clocks && !look(i).clock_numbers) continue;
      // A column "hour" of whole numbers tells no minutes.
      if (plain_[i] == "hour" && look(i).whole) continue;
      // 000000 in every row of daily bars says nothing.
      const bool midnight = look(i).constant && sample_.size() > 1 &&
                            sample_.at(0, i).find_first_not_of("0: ") == std::string_view::npos;
      if (midnight) {
        use(i);
      } else {
        out_.clock = use(i);
      }
      return;
    }
  }

  void find_layout() {
    out_.layout = options_.layout;
    const bool automatic = out_.layout == Layout::automatic;
    const bool bars = std::ranges::all_of(
        bar_words(), [&](std::string_view name) { return bar_column(name).has_value(); });
    if (automatic && bars) out_.layout = Layout::bars;
    if (out_.ids.empty() && out_.layout != Layout::wide) find_ids();
    if (out_.layout == Layout::long_format && out_.ids.empty()) {
      fail_missing("there is no id column");
    }
    if (out_.layout == Layout::automatic) {
      out_.layout = out_.ids.empty() ? Layout::wide : Layout::long_format;
    }
  }

  /// By its name, or by its first letter beside the other three.
  std::optional<std::size_t> bar_column(std::string_view word) const {
    const auto whole = std::ranges::find(plain_, word);
    if (whole != plain_.end()) return static_cast<std::size_t>(whole - plain_.begin());
    if (word == "close") {
      for (const std::string_view other : {"close/last", "closelast", "price", "last"}) {
        const auto at = std::ranges::find(plain_, other);
        if (at != plain_.end()) return static_cast<std::size_t>(at - plain_.begin());
      }
    }
    const auto letter = std::ranges::find(plain_, word.substr(0, 1));
    if (letter == plain_.end()) return std::nullopt;
    return static_cast<std::size_t>(letter - plain_.begin());
  }

  void find_ids() {
    if (const auto id = find_named(id_words())) {
      if (!look(*id).counting || plain_[*id] != "id") {
        out_.ids.push_back(use(*id));
        return;
      }
      leave_out(*id, "it numbers the rows");
    }
    const bool automatic = options_.layout == Layout::automatic;
    for (std::size_t i = 0; automatic && i < header_.size(); ++i) {
      if (!used_[i] && is_group_word(plain_[i]) && may_be_id(i)) out_.ids.push_back(i);
    }
    if (automatic || out_.ids.empty()) find_ids_of_repeated_times();
    if (out_.ids.empty() || free_numbers() == 0) {
      out_.ids.clear();
      return;
    }
    std::string names;
    for (const std::size_t i : out_.ids) {
      use(i);
      names += (names.empty() ? "" : ", ") + quote(header_[i]);
    }
    out_.warnings.push_back(fmt::format("series are told apart by {}", names));
  }

  bool may_be_id(std::size_t column) {
    const Look& one = look(column);
    if (one.empty || one.dates || one.clocks) return false;
    if (one.text) return one.repeating || one.constant || sample_.size() < kRowsForRule;
    if (!one.whole || sample_.size() < kRowsForRule / 2) return false;
    return one.constant ? !stays_the_same(csv_, sample_, column) : one.repeating;
  }

  /// Columns left that hold numbers and are no ids.
  std::size_t free_numbers() {
    std::size_t count = 0;
    for (std::size_t i = 0; i < header_.size(); ++i) {
      const bool id = std::ranges::find(out_.ids, i) != out_.ids.end();
      count += !used_[i] && !id && !look(i).text && !header_[i].empty() ? 1 : 0;
    }
    return count + out_.values.size();
  }

  /// Where times repeat, the column of words by which they no longer do, else all of them.
  void find_ids_of_repeated_times() {
    if (!out_.timestamp || !repeat_times(sample_, out_, out_.ids)) return;
    std::vector<std::size_t> all = out_.ids;
    std::vector<std::size_t> words;
    for (std::size_t i = 0; i < header_.size(); ++i) {
      const bool id = std::ranges::find(out_.ids, i) != out_.ids.end();
      if (used_[i] || id || !look(i).text || look(i).dates || !look(i).repeating) continue;
      words.push_back(i);
      all.push_back(i);
    }
    for (const std::size_t one : words) {
      std::vector<std::size_t> more = out_.ids;
      more.push_back(one);
      if (repeat_times(sample_, out_, more)) continue;
      out_.ids = std::move(more);
      return;
    }
    if (words.size() > 1 && !repeat_times(sample_, out_, all)) out_.ids = std::move(all);
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

  void leave_out(std::size_t column, std::string why) {
    out_.left_out.push_back({use(column), std::move(why)});
  }

  void find_values() {
    if (take_ == Take::targets && out_.layout == Layout::bars) {
      const auto close = bar_column("close");
      out_.values.push_back(use(close ? *close : require("close")));
      return;
    }
    if (take_ == Take::targets && out_.layout == Layout::long_format) {
      if (const auto value = find_named(value_words())) {
        out_.values.push_back(use(*value));
        return;
      }
    }
    std::vector<Columns::LeftOut> kept_out;
    for (std::size_t i = 0; i < header_.size(); ++i) {
      if (used_[i] || header_[i].empty()) continue;
      const std::string_view why = why_not(i);
      if (why.empty()) {
        out_.values.push_back(use(i));
      } else {
        kept_out.push_back({i, std::string(why)});
      }
    }
    // A table with nothing else is forecast all the same: of dates, words and ids nothing is.
    if (out_.values.empty() && take_ == Take::targets) {
      for (auto at = kept_out.begin(); at != kept_out.end();) {
        const Look& one = look(at->column);
        const bool number = !one.text && !one.dates && !is_date_column(at->column);
        if (number) out_.values.push_back(use(at->column));
        at = number ? kept_out.erase(at) : at + 1;
      }
    }
    for (Columns::LeftOut& one : kept_out) {
      out_.warnings.push_back(
          fmt::format("column {} {} and is left out", quote(header_[one.column]), one.why));
      out_.left_out.push_back(std::move(one));
    }
    if (!out_.values.empty()) return;
    const auto words = std::ranges::find_if(
        out_.left_out, [&](const Columns::LeftOut& one) { return look(one.column).text; });
    if (words == out_.left_out.end() || sample_.size() == 0) {
      fail_missing(
          "there is no column left for values",
          out_.covariates.empty() ? "" : "the others are covariates; name the value columns");
    }
    csv_.fail("not_a_number",
              fmt::format("{} in column {}", quote(sample_.at(0, words->column)),
                          quote(header_[words->column])),
              sample_.place(words->column));
  }

  /// A year in each row and its months beside it: one series, which is read as twelve.
  void tell_months() {
    const auto months = std::ranges::count_if(
        out_.values, [&](std::size_t column) { return is_month_word(plain_[column]); });
    if (months < 12) return;
    out_.warnings.emplace_back(
        "columns are called as months: each is a series of its own, from year to year; for one "
        "series from month to month write a row for each month");
  }

  /// Large whole numbers that go on by even steps, and are not called as values are.
  bool is_likely_time(std::size_t column) {
    return look(column).likely_epochs && !is_value_word(plain_[column]);
  }

  /// No other free column holds numbers.
  bool is_last_number(std::size_t column) {
    const bool counted = !look(column).text && !header_[column].empty();
    return free_numbers() <= (counted ? 1U : 0U);
  }

  bool is_date_column(std::size_t column) {
    const Look& one = look(column);
    const std::string& plain = plain_[column];
    if (one.dates) return true;
    return is_likely_time(column) || (sounds_like_time(plain) && !one.constant &&
                                      (one.day_numbers || one.epochs || one.clocks));
  }

  /// Whole numbers that may be times and may be a counter are forecast, and not silently.
  void tell_perhaps_times() {
    if (options_.rate || !options_.values.empty() || take_ == Take::covariates) return;
    for (const std::size_t i : out_.values) {
      const std::string& plain = plain_[i];
      if (!look(i).perhaps_epochs || is_value_word(plain) || is_counter_word(plain)) continue;
      out_.warnings.push_back(
          fmt::format("column {} may hold times since 1970 and is forecast as values; if it does, "
                      "say --timestamp, or name the value columns",
                      quote(header_[i])));
    }
  }

  /// Why a column of the table is no value; empty: it is one.
  std::string_view why_not(std::size_t column) {
    const Look& one = look(column);
    const std::string& plain = plain_[column];
    if (one.text || one.dates) return "holds no numbers";
    if (is_date_column(column)) return "holds dates";
    if (take_ == Take::covariates) return {};
    // A wide table has a series there, whose error is told; here each series would have one.
    if (one.empty && !out_.ids.empty() && stays_empty(column)) {
      return "has no value in any row";
    }
    if (options_.layout == Layout::wide) return {};
    const bool times = out_.timestamp || !out_.date_parts.empty();
    if (times && one.whole && is_calendar_word(plain)) return "is a part of the date";
    if (one.counting && std::ranges::find(value_words(), plain) == value_words().end()) {
      return "numbers the rows";
    }
    // Kaggle's onpromotion counts the articles.
    const bool known_ahead = one.flags || (one.whole && plain == "onpromotion");
    if (known_ahead && sample_.size() >= kRowsForRule && is_flag_word(plain)) {
      return "is known ahead (--future takes it)";
    }
    if (one.constant && one.whole && sample_.size() >= kRowsForRule && is_group_word(plain)) {
      return "is an id that never changes";
    }
    if (!look(column).constant && belongs_to_ids(sample_, out_.ids, column))
      return "is the same in all rows of a series";
    return {};
  }

  /// One look at all rows says it of every column.
  bool stays_empty(std::size_t column) {
    if (with_values_.empty()) with_values_ = columns_with_values(csv_, header_.size());
    return !with_values_[column];
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
  const Sample& sample_;
  const CsvReader& csv_;
  const CsvOptions& options_;
  Take take_;
  std::vector<std::string> plain_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> by_name_;
  std::vector<bool> used_;
  std::vector<bool> with_values_;  // below the first row; empty: not looked yet
  std::vector<std::optional<Look>> looks_;
  Columns out_;
};

}  // namespace

Columns find_columns(const std::vector<std::string>& header, const Sample& sample,
                     const CsvReader& csv, const CsvOptions& options, Take take) {
  return Finder(header, sample, csv, options, take).find();
}

}  // namespace toto::data
