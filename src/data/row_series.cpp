// SPDX-License-Identifier: Apache-2.0
#include "data/row_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/json.h"
#include "core/utf8.h"
#include "data/bad_number.h"
#include "data/csv_reader.h"
#include "data/guess.h"
#include "data/missing_codes.h"
#include "data/order.h"
#include "data/regular.h"
#include "data/row_ids.h"
#include "data/row_layout.h"
#include "data/short_months.h"
#include "data/step_columns.h"
#include "data/timestamp.h"
#include "data/told_missing.h"
#include "data/value_column.h"
#include "data/value_offset.h"

namespace toto::data {
namespace {

std::vector<std::string> fields_of(const CsvReader& csv) {
  std::vector<std::string> out;
  out.reserve(csv.size());
  for (std::size_t i = 0; i < csv.size(); ++i) out.emplace_back(trim(csv[i]));
  return out;
}

class RowReader {
 public:
  RowReader(const Text& text, const CsvOptions& options, Bytes* spent)
      : text_(text),
        spent_(spent),
        dialect_(sniff(text.view())),
        csv_(text.view(), text.name, dialect_),
        options_(options),
        told_missing_(options.missing_values) {
    table_.name = text.name;
    numbers_.set_missing(told_missing_);
  }

  /// Whether this is such a table; `csv_` stands behind the header.
  bool begin() {
    const bool told = options_.layout == Layout::rows;
    if (told) check_flags();
    if (!told && (options_.layout != Layout::automatic || !options_.timestamp.empty() ||
                  !options_.values.empty())) {
      return false;
    }
    if (!read_names()) return false;
    auto found = find_step_columns(names_);
    // Steps begin with 0 or 1; these are numbers of a row.
    if (found && !found->times && found->prefix.empty() && found->first > 1) found.reset();
    if (told && !found && dialect_.skipped > 0) {
      // Rows of many lengths: a short first one is no preamble.
      dialect_.begin = text_.view().starts_with("\xEF\xBB\xBF") ? 3 : 0;
      dialect_.line = 1;
      dialect_.skipped = 0;
      csv_ = CsvReader(text_.view(), text_.name, dialect_);
      read_names();
    }
    if (!found && !told) return false;
    if (found) steps_ = *found;
    if (found && !found->times) leave_out_words();
    if (!found) steps_.columns = columns_behind_words();
    sample_ = sample_rows(csv_, names_, steps_, told_missing_);
    if (told) return true;
    const RowsLook look = look_at_rows(names_, steps_, sample_);
    if (look == RowsLook::unclear) fail_unclear();
    return look == RowsLook::yes;
  }

  Table read() {
    table_.layout = Layout::rows;
    table_.has_ids = true;
    table_.columns = {"value"};
    read_times();
    settle_numbers();
    RowIds ids(csv_, names_, sample_.attributes, options_.id);
    while (csv_.next()) {
      if (!holds_row(csv_)) {
        ++table_.reading.skipped_rows;
        continue;
      }
      if (table_.groups.empty()) reserve_rows();
      ids.add(csv_);
      read_row();
      spend_row();
    }
    if (table_.groups.empty()) csv_.fail("no_rows", "the table has no rows", {1, 1});
    std::vector<std::string> names = ids.settle();
    for (std::size_t i = 0; i < names.size(); ++i) table_.groups[i].id = std::move(names[i]);
    if (told_missing_.guesses() && drop_missing_codes(table_)) read_rounding();
    if (!options_.rate) keep_digits();
    put_in_order(table_, Duplicates::error);
    make_regular(table_, options_);
    tell(ids.by());
    return std::move(table_);
  }

 private:
  void check_flags() const {
    const char* flag = !options_.timestamp.empty() ? "--timestamp"
                       : !options_.values.empty()  ? "--values"
                                                   : nullptr;
    if (flag == nullptr) return;
    throw Error(
        ExitStatus::usage, "conflicting_flags",
        fmt::format("{} names a column, and with --layout rows the columns are steps", flag), flag,
        "leave it out");
  }

  bool read_names() {
    header_at_ = csv_;
    if (!csv_.next()) return false;
    names_ = fields_of(csv_);
    if (dialect_.hash_header) names_[0] = trim(std::string_view(names_[0]).substr(1));
    while (names_.size() > 1 && names_.back().empty()) names_.pop_back();
    return std::ranges::all_of(names_, [](const std::string& name) {
      return first_invalid_utf8(name) == std::string::npos;
    });
  }

  /// V1 of V1, V2, V3, ... is the id.
  void leave_out_words() {
    CsvReader ahead = csv_;
    if (!ahead.next()) return;
    std::vector<std::size_t>& columns = steps_.columns;
    while (columns.size() > 1 && columns.front() < ahead.size() &&
           is_word(ahead[columns.front()])) {
      columns.erase(columns.begin());
      ++steps_.first;
    }
  }

  /// Told that rows are series, and by names that say nothing: the columns from the first number
  /// on. Where the first record has numbers there too, it is the first row.
  std::vector<std::size_t> columns_behind_words() {
    CsvReader ahead = csv_;
    std::vector<std::string> row;
    if (ahead.next()) row = fields_of(ahead);
    const auto is_number = [](const std::string& field) { return kind_of(field) == Kind::number; };
    const auto numbers = std::ranges::count_if(names_, is_number);
    has_header_ = numbers < 2;
    const std::vector<std::string>& first = has_header_ ? row : names_;
    const auto from =
        static_cast<std::size_t>(std::ranges::find_if(first, is_number) - first.begin());
    if (!has_header_) {
      csv_ = header_at_;
      names_.clear();
      CsvReader longest = csv_;
      std::size_t width = 0;
      while (longest.next()) width = std::max(width, longest.size());
      for (std::size_t i = 0; i < width; ++i) names_.push_back(fmt::format("column{}", i + 1));
    }
    std::vector<std::size_t> columns;
    for (std::size_t i = from; i < names_.size(); ++i) columns.push_back(i);
    if (columns.empty()) {
      csv_.fail("not_a_number", "no column of the first row holds a number", {1, 1});
    }
    return columns;
  }

  [[noreturn]] void fail_unclear() const {
    const std::vector<std::size_t>& at = steps_.columns;
    csv_.fail(
        "ambiguous_layout",
        fmt::format("the columns {} to {} may be the steps of a series in each row, or series",
                    quote(names_[at.front()]), quote(names_[at.back()])),
        {1, 1}, "say --layout rows, or --layout wide");
  }

  void read_times() {
    const std::size_t count = steps_.columns.size();
    if (!steps_.times) {
      // d_1 is step 1; V2 is nothing but the second column.
      const bool numbered = has_header_ && !steps_.prefix.starts_with('V') &&
                            !steps_.prefix.starts_with('X') && !names_.empty();
      const std::int64_t first = numbered ? steps_.first : 0;
      for (std::size_t i = 0; i < count; ++i)
        times_.push_back(first + static_cast<std::int64_t>(i));
      return;
    }
    TimeReader reader(options_.date_format, options_.timezone);
    read_header_times(reader);
    if (reader.ambiguous()) {
      csv_.fail("ambiguous_timestamp", "the columns' names may have the day or the month first",
                {1, 1},
                fmt::format("say --date-format dmy or --date-format mdy (or --date-format '{}')",
                            reader.pattern()));
    }
    if (!reader.pattern().empty()) {  // what came before the first clear one is read once more
      reader = TimeReader(reader.pattern(), options_.timezone);
      read_header_times(reader);
    }
    if (options_.date_format.empty() && may_be_days(reader.pattern())) check_months();
    const auto [lowest, highest] = std::ranges::minmax(times_);
    reader.finish(lowest, highest);
    for (std::int64_t& time : times_) time = reader.convert(time);
    table_.style = reader.style();
    std::vector<std::int64_t> sorted = times_;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end()) {
      csv_.fail("duplicate_timestamp", "two columns are called by one time", {1, 1},
                "leave one of them out");
    }
  }

  void check_months() const {
    ShortMonths months;
    for (const std::int64_t time : times_) months.add(time);
    if (months.clear()) return;
    csv_.fail(
        "ambiguous_timestamp",
        fmt::format("the column {} may be called by a month of a year, or by a day whose year "
                    "is not said",
                    quote(names_[steps_.columns.front()])),
        {1, 1}, kMonthOrDay);
  }

  void read_header_times(TimeReader& reader) {
    times_.clear();
    offsets_.clear();
    for (const std::size_t column : steps_.columns) {
      const auto stamp = reader.read(time_in_name(names_[column]));
      if (!stamp) {
        csv_.fail("invalid_timestamp",
                  fmt::format("the column {} is not called by a time; expected {}",
                              quote(names_[column]), reader.expected()),
                  {1, 1});
      }
      times_.push_back(stamp->time);
      offsets_.push_back(stamp->offset_minutes);
    }
    if (std::ranges::all_of(offsets_, [](std::int16_t x) { return x == 0; })) offsets_.clear();
  }

  void settle_numbers() {
    flagged_ = names_[0].find('\\') != std::string::npos;
    std::vector<std::string_view> cells;
    cells.reserve(sample_.cells.size());
    for (const std::string& cell : sample_.cells) cells.push_back(without_flag(cell));
    numbers_.look(cells);
    const DecimalVotes& votes = numbers_.votes();
    char decimal = '.';
    if (options_.decimal != 0) {
      decimal = options_.decimal;
    } else if (votes.comma > 0 || votes.point > 0) {
      decimal = votes.comma > votes.point ? ',' : '.';
    } else if (numbers_.unclear() && dialect_.delimiter != ',') {
      csv_.fail("ambiguous_number", "the numbers may have thousands or a decimal comma", {1, 1},
                "say --decimal , or --decimal .");
    }
    numbers_.set_decimal(decimal);
    table_.reading.decimal = decimal;
  }

  /// Room for as many rows as there are if all are as long as the first, at most of the text's
  /// size.
  void reserve_rows() {
    const std::size_t begin = csv_.offset();
    const std::size_t left = text_.view().size() - begin;
    CsvReader ahead = csv_;
    const std::size_t bytes = ahead.next() ? ahead.offset() - begin : left;
    const std::size_t rows = left / std::max<std::size_t>(bytes, 1);
    const std::size_t room = std::min(rows + rows / 16, left / sizeof(RowGroup));
    table_.groups.reserve(room);
    rounding_.reserve(room);
  }

  void read_row() {
    for (std::size_t i = names_.size(); i < csv_.size(); ++i) {
      if (trim(csv_[i]).empty()) continue;
      csv_.fail("ragged_row",
                fmt::format("expected at most {} fields as in the header, found {}", names_.size(),
                            csv_.size()),
                csv_.place(names_.size()));
    }
    RowGroup& group = table_.groups.emplace_back();
    std::size_t count = steps_.columns.size();
    if (!steps_.times) {
      while (count > 1 && is_missing(steps_.columns[count - 1])) --count;
      if (count < steps_.columns.size()) ++short_;
    }
    Times& times = times_of_[count];  // rows of one length share theirs
    if (times.empty())
      times = Times::Vector(times_.begin(), times_.begin() + static_cast<std::ptrdiff_t>(count));
    group.times = times;
    if (!offsets_.empty()) group.offsets = offsets_;
    group.values.reserve(count);
    Rounding& rounding = rounding_.emplace_back();
    if (options_.rate) group.low.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const Number number = read_number(steps_.columns[i]);
      group.values.push_back(number.value);
      rounding.add(number);
      if (options_.rate) group.low.push_back(static_cast<float>(number.exact - number.value));
    }
    ++table_.reading.rows;
  }

  /// Rows that float32 holds exactly are not read again, as far as no other one is before them.
  void spend_row() {
    const std::size_t row = table_.groups.size() - 1;
    if (row != exact_) return;
    rest_.begin = csv_.offset();
    rest_.line = csv_.line();
    if (!rounding_[row].exact()) return;
    ++exact_;
    if (spent_ != nullptr) spent_->spend(csv_.offset());
  }

  /// Reads the rows from the first inexact one on once more: calls visit(row, value, number) for
  /// numbers that the table has too.
  template <typename Visit>
  void read_again(const Visit& visit) {
    if (exact_ == table_.groups.size()) return;
    csv_ = CsvReader(text_.view(), text_.name, rest_);
    for (std::size_t row = exact_; csv_.next();) {
      if (!holds_row(csv_)) continue;
      std::vector<float>& values = table_.groups[row].values;
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (std::isnan(values[i])) continue;  // missing, perhaps by a code
        const Number number = read_number(steps_.columns[i]);
        if (number.kind == NumberKind::value) visit(row, values[i], number);
      }
      ++row;
    }
  }

  void read_rounding() {
    std::fill(rounding_.begin() + static_cast<std::ptrdiff_t>(exact_), rounding_.end(), Rounding());
    read_again([&](std::size_t row, float&, const Number& number) { rounding_[row].add(number); });
  }

  /// Values that float32 has too few digits for become differences from an offset of their row.
  void keep_digits() {
    if (!options_.value_offset) return tell_lost_digits(table_, rounding_, 0);
    if (!choose_offsets(table_, rounding_, 0)) return;
    do {
      read_again([&](std::size_t row, float& value, const Number& number) {
        const double offset = offset_at(table_.groups[row].value_offsets, 0);
        if (offset != 0) value = static_cast<float>(number.exact - offset);
      });
    } while (centre_offsets(table_, rounding_));
    tell_offsets(table_, rounding_);
  }

  /// Eurostat's tables, whose first column is called "unit,geo\\TIME_PERIOD", have letters behind a
  /// blank that say how good a number is: "12.3 p", ": c".
  [[nodiscard]] std::string_view without_flag(std::string_view field) const {
    if (!flagged_) return field;
    field = trim(field);
    const std::size_t blank = field.find(' ');
    const std::size_t letter = field.find_first_of("0123456789.,-:", std::min(blank, field.size()));
    return letter == field.npos ? field.substr(0, blank) : field;
  }

  [[nodiscard]] bool is_missing(std::size_t column) const {
    return column >= csv_.size() ||
           numbers_.read(without_flag(csv_[column])).kind == NumberKind::missing;
  }

  [[nodiscard]] Number read_number(std::size_t column) const {
    if (column >= csv_.size()) {
      return {NumberKind::missing, std::numeric_limits<float>::quiet_NaN()};
    }
    const Number number = numbers_.read(without_flag(csv_[column]));
    if (number.kind == NumberKind::value || number.kind == NumberKind::missing) return number;
    fail_number(csv_, column, names_[column], numbers_, number.kind);
  }

  void tell(const std::vector<std::size_t>& ids) {
    Reading& reading = table_.reading;
    reading.file = text_.name;
    reading.compression = text_.compression;
    reading.delimiter = dialect_.delimiter;
    reading.has_header = has_header_;
    reading.header_line = dialect_.line;
    reading.skipped_lines = dialect_.skipped;
    reading.order =
        times_.size() > 1 && times_.front() > times_.back() ? "newest first" : "oldest first";
    reading.timezone = table_.style.timezone;
    reading.time_format = steps_.times ? describe(table_.style) : "";
    for (const std::string& name : names_) reading.columns.push_back({name, "not used", ""});
    for (const std::size_t i : ids) reading.columns[i].role = "id";
    for (const std::size_t i : steps_.columns) reading.columns[i].role = "step";
    const auto note = [&](const std::string& text) {
      table_.warnings.push_back(fmt::format("{}: {}", table_.name, text));
    };
    if (options_.layout != Layout::rows) {
      note(fmt::format("each row is a series, and the columns {} to {} are its steps",
                       quote(names_[steps_.columns.front()]),
                       quote(names_[steps_.columns.back()])));
    }
    if (short_ > 0) {
      note(fmt::format("{} of {} series end before the last column", short_, table_.groups.size()));
    }
  }

  const Text& text_;
  Bytes* spent_;
  Dialect dialect_;
  CsvReader csv_;
  const CsvOptions& options_;
  ToldMissing told_missing_;
  CsvReader header_at_ = csv_;
  std::vector<std::string> names_;
  bool has_header_ = true;
  StepColumns steps_;
  RowsSample sample_;
  std::vector<std::int64_t> times_;        // of the steps
  std::map<std::size_t, Times> times_of_;  // by the number of the first ones
  std::vector<std::int16_t> offsets_;      // of them; empty: all 0
  ValueColumn numbers_;
  bool flagged_ = false;
  std::vector<Rounding> rounding_;  // of each row
  std::size_t exact_ = 0;           // rows before the first one that float32 rounds
  Dialect rest_ = dialect_;         // where that one begins
  std::size_t short_ = 0;           // series that end before the last column
  Table table_;
};

}  // namespace

std::optional<Table> read_row_series(const Text& text, const CsvOptions& options, Bytes* spent) {
  RowReader reader(text, options, spent);
  if (!reader.begin()) return std::nullopt;
  return reader.read();
}

}  // namespace toto::data
