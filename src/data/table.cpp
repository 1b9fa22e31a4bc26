// SPDX-License-Identifier: Apache-2.0
#include "data/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <unordered_map>
#include <utility>

#include "core/json.h"
#include "core/utf8.h"
#include "data/bad_number.h"
#include "data/csv_reader.h"
#include "data/header.h"
#include "data/missing_codes.h"
#include "data/number.h"
#include "data/order.h"
#include "data/regular.h"
#include "data/row_series.h"
#include "data/rows.h"
#include "data/sample.h"
#include "data/short_months.h"
#include "data/timestamp.h"
#include "data/told_missing.h"
#include "data/value_column.h"
#include "data/value_offset.h"

namespace toto::data {
namespace {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

class TableReader {
 public:
  TableReader(const Text& text, const CsvOptions& options, Take take)
      : text_(text),
        dialect_(sniff(text_.view())),
        csv_(text_.view(), text_.name, dialect_),
        options_(options),
        take_(take),
        told_missing_(options.missing_values) {
    table_.name = text_.name;
    if (text_.rows) csv_.count_rows();
  }

  Table read() {
    read_header_of_table();
    if (!next_row()) csv_.fail("no_rows", "the table has no rows", {1, 1});
    const Sample sample(before_first_row_, text_.view(), named_, told_missing_);
    columns_ = find_columns(header_.names, sample, csv_, options_, take_);
    adopt_columns(sample);
    settle_times();
    reserve(sample);
    do {
      read_row();
    } while (next_row());
    const bool dropped = told_missing_.guesses() && drop_missing_codes(table_);
    if (dropped) read_rounding(rows(), table_, rounding_);
    keep_digits();
    finish_times();
    order();
    regulate();
    tell_columns();
    return std::move(table_);
  }

 private:
  void read_header_of_table() {
    header_ = read_header(csv_, dialect_);
    before_first_row_ = csv_;
    table_.symbol = header_.symbol;
    table_.warnings = header_.notes;
    named_ = header_.names.size();
    while (named_ > 1 && header_.names[named_ - 1].empty()) --named_;
    Reading& reading = table_.reading;
    reading.file = text_.name;
    reading.compression = text_.compression;
    reading.delimiter = dialect_.delimiter;
    reading.has_header = header_.there;
    reading.header_line = header_.line;
    reading.skipped_lines = dialect_.skipped;
  }

  /// Goes to the next row of data; false at the end.
  bool next_row() {
    while (csv_.next()) {
      if (is_row(csv_, named_, header_.names.size())) return true;
      ++table_.reading.skipped_rows;
    }
    return false;
  }

  void adopt_columns(const Sample& sample) {
    table_.layout = columns_.layout;
    table_.has_ids = !columns_.ids.empty();
    std::ranges::move(columns_.warnings, std::back_inserter(table_.warnings));
    table_.covariates = columns_.covariates.size();
    numbers_ = columns_.values;
    numbers_.insert(numbers_.end(), columns_.covariates.begin(), columns_.covariates.end());
    DecimalVotes votes;
    for (const std::size_t column : numbers_) {
      table_.columns.push_back(header_.names[column]);
      ValueColumn& values = parsers_.emplace_back();
      values.set_missing(told_missing_);
      values.look(sample.column(column));
      votes.add(values.votes());
    }
    for (std::size_t i = 0; i < numbers_.size(); ++i) settle_decimal(i, votes);
  }

  /// The decimal mark of a column: as told, as its numbers show, else as those of the others do.
  void settle_decimal(std::size_t i, const DecimalVotes& all) {
    const DecimalVotes& own = parsers_[i].votes();
    char decimal = '.';
    if (options_.decimal != 0) {
      decimal = options_.decimal;
    } else if (own.comma > 0 || own.point > 0) {
      decimal = own.comma > own.point ? ',' : '.';
    } else if (all.comma > 0 && all.point == 0) {
      decimal = ',';
    } else if (parsers_[i].unclear() && dialect_.delimiter != ',' && all.point == 0) {
      const std::string& name = header_.names[numbers_[i]];
      csv_.fail("ambiguous_number",
                fmt::format("{} in column {} may be thousands or a decimal comma",
                            quote(csv_[numbers_[i]]), quote(name)),
                csv_.place(numbers_[i]), "say --decimal , or --decimal .");
    }
    parsers_[i].set_decimal(decimal);
    if (decimal == ',') table_.reading.decimal = ',';
  }

  [[nodiscard]] bool has_times() const {
    return columns_.timestamp.has_value() || !columns_.date_parts.empty();
  }

  /// Where day and month may be in either order, all times are looked at before one is read.
  void settle_times() {
    if (!has_times()) return;
    times_ = TimeReader(options_.date_format, options_.timezone);
    TimeReader scout = times_;
    CsvReader ahead = before_first_row_;
    std::string text;
    do {
      if (!ahead.next()) fail_ambiguous(scout);
      if (ahead.size() < named_ || !is_row(ahead, named_, header_.names.size())) continue;
      text = std::string(time_text(ahead, columns_, time_buffer_));
      if (!scout.read(text)) return;  // the reader itself will say so
    } while (scout.ambiguous());
    if (scout.pattern().empty()) return;
    times_ = TimeReader(scout.pattern(), options_.timezone);
    if (options_.date_format.empty() && may_be_days(scout.pattern())) check_months();
  }

  void check_months() const {
    TimeReader reader(times_);
    CsvReader ahead = before_first_row_;
    std::unordered_map<std::string, ShortMonths> months;  // of each series
    std::string buffer, id;
    while (ahead.next()) {
      if (ahead.size() < named_ || !is_row(ahead, named_, header_.names.size())) continue;
      const auto stamp = reader.read(time_text(ahead, columns_, buffer));
      if (!stamp) return;  // the reader itself will say so
      if (!columns_.ids.empty()) id = id_text(ahead, columns_, buffer);
      months[id].add(stamp->time);
    }
    if (std::ranges::all_of(months, [](const auto& one) { return one.second.clear(); })) return;
    csv_.fail("ambiguous_timestamp",
              fmt::format("{} may be a month of a year, or a day whose year is not said",
                          quote(csv_[time_column(columns_)])),
              csv_.place(time_column(columns_)), kMonthOrDay);
  }

  [[noreturn]] void fail_ambiguous(const TimeReader& scout) const {
    csv_.fail("ambiguous_timestamp",
              fmt::format("{} and all the others may have the day or the month first",
                          quote(csv_[time_column(columns_)])),
              csv_.place(time_column(columns_)),
              fmt::format("say --date-format dmy or --date-format mdy (or --date-format '{}')",
                          scout.pattern()));
  }

  /// Where there is one series, its memory is asked for at once.
  void reserve(const Sample& sample) {
    if (!columns_.ids.empty() || sample.size() < Sample::kMaxRows) return;
    const std::size_t left = text_.view().size() - csv_.offset();
    RowGroup& group = only_group();
    CsvReader ahead = before_first_row_;
    const std::size_t begin = csv_.offset();
    for (std::size_t i = 0; i <= sample.size() && ahead.next();) ++i;
    const std::size_t bytes = std::max<std::size_t>(ahead.offset() - begin, 1);
    const std::size_t rows = left / bytes * sample.size() + left % bytes * sample.size() / bytes;
    const std::size_t spare = rows / 32;
    group.times.edit().reserve(rows + spare);
    group.values.reserve((rows + spare) * numbers_.size());
  }

  void read_row() {
    RowGroup& group = columns_.ids.empty() ? only_group() : group_of_row();
    rounding_.resize(table_.groups.size() * numbers_.size());
    Rounding* const rounding = &rounding_[latest_ * numbers_.size()];
    if (has_times()) {
      read_time(group);
    } else {
      group.times.edit().push_back(static_cast<std::int64_t>(group.times.size()));
    }
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      const Number number = read_number(i);
      group.values.push_back(number.value);
      rounding[i].add(number);
      if (options_.rate) group.low.push_back(static_cast<float>(number.exact - number.value));
    }
    ++table_.reading.rows;
  }

  RowGroup& only_group() {
    if (table_.groups.empty()) table_.groups.emplace_back();
    return table_.groups.front();
  }

  RowGroup& group_of_row() {
    const std::string_view id = id_text(csv_, columns_, id_buffer_);
    if (!table_.groups.empty() && table_.groups[latest_].id == id) return table_.groups[latest_];
    if (const auto known = by_id_.find(id); known != by_id_.end()) {
      latest_ = known->second;
      return table_.groups[latest_];
    }
    const std::size_t column = columns_.ids.front();
    if (id.empty()) csv_.fail("missing_id", "the id is empty", csv_.place(column));
    if (first_invalid_utf8(id) != std::string_view::npos) {
      csv_.fail("encoding", "the name is not UTF-8", csv_.place(column), "save the file as UTF-8");
    }
    latest_ = table_.groups.size();
    table_.groups.emplace_back().id = id;
    by_id_.emplace(id, latest_);
    return table_.groups.back();
  }

  void read_time(RowGroup& group) {
    const std::string_view text = time_text(csv_, columns_, time_buffer_);
    auto stamp = times_.read(text);
    if (!stamp) {
      csv_.fail("invalid_timestamp",
                fmt::format("{} is not a timestamp; expected {}", quote(text), times_.expected()),
                csv_.place(time_column(columns_)));
    }
    if (stamp->again_after != 0) tell_the_hour(group, *stamp);
    group.times.edit().push_back(stamp->time);
    if (stamp->offset_minutes != 0 || !group.offsets.empty()) {
      group.offsets.resize(group.times.size() - 1);
      group.offsets.push_back(stamp->offset_minutes);
      has_offsets_ = true;
    }
    lowest_ = std::min(lowest_, stamp->time);
    highest_ = std::max(highest_, stamp->time);
  }

  /// At the end of summer time the clock shows an hour twice: which of both a row means follows
  /// from the rows before it.
  static void tell_the_hour(const RowGroup& group, Timestamp& stamp) {
    if (group.times.empty()) return;
    const std::int64_t before = group.times.back();
    const std::int64_t later = stamp.time + stamp.again_after * std::int64_t{60'000};
    const bool newest_first = group.times.size() > 1 && group.times.front() > before;
    const bool second = newest_first ? later < before : stamp.time <= before;
    if (!second) return;
    stamp.time = later;
    stamp.offset_minutes = static_cast<std::int16_t>(stamp.offset_minutes - stamp.again_after);
  }

  [[nodiscard]] Number read_number(std::size_t i) const {
    const std::size_t column = numbers_[i];
    const Number number = parsers_[i].read(csv_[column]);
    if (number.kind == NumberKind::value || number.kind == NumberKind::missing) return number;
    fail_number(csv_, column, header_.names[column], parsers_[i], number.kind);
  }

  [[nodiscard]] RowsOfTable rows() const {
    return {before_first_row_, named_, header_.names.size(), columns_, numbers_, parsers_};
  }

  /// What rates are formed of has its digits in RowGroup::low.
  void keep_digits() {
    const std::size_t first = options_.rate ? columns_.values.size() : 0;
    if (!options_.value_offset) return tell_lost_digits(table_, rounding_, first);
    if (!choose_offsets(table_, rounding_, first)) return;
    do {
      read_differences(rows(), table_);
    } while (centre_offsets(table_, rounding_));
    tell_offsets(table_, rounding_);
  }

  void finish_times() {
    if (!has_times()) return;
    times_.finish(lowest_, highest_);
    table_.style = times_.style();
    for (RowGroup& group : table_.groups) {
      for (std::int64_t& time : group.times.edit()) time = times_.convert(time);
      if (has_offsets_) group.offsets.resize(group.times.size());
    }
  }

  void order() {
    const bool keep_all = !options_.resample.empty() && options_.duplicates == Duplicates::error;
    const Ordered done = put_in_order(table_, options_.duplicates, keep_all);
    if (done.refused) fail_duplicate(done);
    Reading& reading = table_.reading;
    reading.repeated = done.identical;
    reading.merged = done.merged;
    reading.order = done.sorted > 0   ? "shuffled"
                    : done.turned > 0 ? "newest first"
                                      : "oldest first";
    const auto note = [&](std::string_view text) {
      table_.warnings.push_back(fmt::format("{}: {}", table_.name, text));
    };
    if (done.sorted > 0) note("rows are not in the order of time; they were sorted");
    if (done.identical > 0) note(fmt::format("{} repeated rows were dropped", done.identical));
    if (done.merged > 0) {
      note(fmt::format("{} rows of a time that another row has: --duplicates settled them",
                       done.merged));
    }
  }

  /// The places of two rows of a group, which are counted from 0 in the order of the file.
  std::pair<Place, Place> places_of(const Ordered& rows) const {
    CsvReader csv = before_first_row_;
    std::string buffer;
    std::pair<Place, Place> places;
    const std::size_t column = has_times() ? time_column(columns_) : 0;
    for (std::size_t row = 0; csv.next();) {
      if (!is_row(csv, named_, header_.names.size())) continue;
      if (!columns_.ids.empty() && id_text(csv, columns_, buffer) != table_.groups[rows.group].id) {
        continue;
      }
      if (row == rows.first_row) places.first = csv.place(column);
      if (row == rows.second_row) {
        places.second = csv.place(column);
        break;
      }
      ++row;
    }
    return places;
  }

  [[noreturn]] void fail_duplicate(const Ordered& rows) const {
    const RowGroup& group = table_.groups[rows.group];
    const std::string of = group.id.empty() ? "" : fmt::format(" of series {}", quote(group.id));
    const std::string time = format_time(rows.time, table_.style);
    if (table_.style.epoch_decimals > 3) {
      throw Error(ExitStatus::bad_data, "duplicate_timestamp",
                  fmt::format("two rows{} are in the same millisecond {}", of, time), table_.name,
                  "times are kept to the millisecond");
    }
    const auto [first, second] = places_of(rows);
    std::string remedy = "say --duplicates last, first or mean";
    if (columns_.ids.empty()) remedy += ", or --id COLUMN if the table holds several series";
    if (hour_may_repeat(rows.time)) {
      remedy += "; if this is the end of summer time, name the zone: --timezone Europe/Berlin";
    }
    csv_.fail("duplicate_timestamp",
              fmt::format("{}{} has been in line {} already, with other values", quote(time), of,
                          first.line),
              second, remedy);
  }

  /// A naive time in an hour of the night in which clocks are put back somewhere.
  [[nodiscard]] bool hour_may_repeat(std::int64_t time) const {
    constexpr std::int64_t kHour = 3'600'000, kDay = 24 * kHour, kLatest = 4 * kHour;
    const TimeStyle& style = table_.style;
    return style.form == TimeStyle::Form::datetime && style.zone == TimeStyle::Zone::none &&
           style.timezone.empty() && time % kDay < kLatest;
  }

  /// Covariates known ahead are put on the same grid and keep their values.
  void regulate() {
    if (take_ == Take::targets) return make_regular(table_, options_);
    CsvOptions own = options_;
    own.rate = false;
    own.resample.clear();
    if (!own.freq.empty()) make_regular(table_, own);
  }

  void tell_columns() {
    std::vector<Reading::Column>& told = table_.reading.columns;
    for (const std::string& name : header_.names) told.push_back({name, "not used", ""});
    for (const Columns::LeftOut& one : columns_.left_out) {
      told[one.column].role = "left out";
      told[one.column].note = one.why;
    }
    if (columns_.timestamp) told[*columns_.timestamp].role = "time";
    if (columns_.clock) told[*columns_.clock].role = "time of day";
    for (const std::size_t i : columns_.date_parts) told[i].role = "date";
    for (const std::size_t i : columns_.ids) told[i].role = "id";
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      Reading::Column& column = told[numbers_[i]];
      column.role = i < columns_.values.size() ? "value" : "covariate";
      const std::string& unit = parsers_[i].unit().name();
      if (!unit.empty()) column.note = "in " + unit;
      if (parsers_[i].unit().mixed() && !unit.empty()) {
        table_.warnings.push_back(fmt::format("column {} has several units; all are taken to {}",
                                              quote(column.name), unit));
      }
    }
    table_.reading.timezone = table_.style.timezone;
    table_.reading.time_format = has_times() ? describe(table_.style) : "";
  }

  const Text& text_;
  Dialect dialect_;
  CsvReader csv_;
  const CsvOptions& options_;
  Take take_;
  ToldMissing told_missing_;
  CsvReader before_first_row_ = csv_;
  Header header_;
  std::size_t named_ = 0;  // one more than the last column with a name
  Columns columns_;
  std::vector<std::size_t> numbers_;  // columns that are parsed, values then covariates
  std::vector<ValueColumn> parsers_;  // of them
  Table table_;
  std::unordered_map<std::string, std::size_t, TextHash, std::equal_to<>> by_id_;
  std::size_t latest_ = 0;          // the group of the row before
  std::vector<Rounding> rounding_;  // [groups][numbers]
  TimeReader times_;
  bool has_offsets_ = false;
  std::string time_buffer_, id_buffer_;
  std::int64_t lowest_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t highest_ = std::numeric_limits<std::int64_t>::min();
};

}  // namespace

Table read_table(const Text& text, const CsvOptions& options, Take take, Bytes* spent) {
  if (take == Take::targets && !text.rows) {
    if (auto table = read_row_series(text, options, spent)) return std::move(*table);
  }
  return TableReader(text, options, take).read();
}

}  // namespace toto::data
