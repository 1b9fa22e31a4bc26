// SPDX-License-Identifier: Apache-2.0
// Data: from a CSV file to series that can be forecast, with timestamps that can be continued.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "toto/error.hpp"
#include "toto/forecast.hpp"
#include "toto/tools/times.hpp"

#pragma GCC visibility push(default)
namespace toto::data {

/// How the table is laid out.
enum class Layout {
  automatic,    ///< rows if columns are called by times or numbered, beside names of series; bars
                ///< if there are columns open, high, low and close; else long if there is an id
                ///< column; else wide
  wide,         ///< a timestamp column, every other column of numbers a variate
  long_format,  ///< an id column says which series a row belongs to; series may be interleaved
  bars,         ///< open, high, low, close, volume; close is forecast. May have an id column
  rows,         ///< a series in each row: its id and a column for each step
};

/// What takes the place of a missing value. The mask says 0 there whatever is filled in.
enum class Missing {
  ffill,     ///< the last observed value, even one older than the context; before the first one,
             ///< the first observed value
  linear,    ///< the straight line between the observed values around a gap; as ffill at the ends
  zero,      ///< 0
  error,     ///< missing_value for the series
  seasonal,  ///< gaps of a quarter of a season or more: what was observed a season before and
             ///< after, moved so that it joins what is around the gap; shorter ones, and where
             ///< there is no season: as linear
  model,     ///< as linear; ForecastOptions::gaps_by_model is to fill gaps of 4 steps or more anew
};

/// What becomes of rows that have one time and different values. Rows that are the same in every
/// column that is read are dropped whatever this says, and a warning counts them.
enum class Duplicates {
  error,  ///< duplicate_timestamp
  last,   ///< the last one in the file stays
  first,  ///< the first one in the file stays
  mean,   ///< the mean of what is there, column by column
};

struct CsvOptions {
  Layout layout = Layout::automatic;
  std::string timestamp;        ///< column; empty: found by its name, else by its look
  std::vector<std::string> id;  ///< columns that tell series apart, joined by "/"; empty: found by
                                ///< their names and looks. Implies long_format
  std::vector<std::string> values;  ///< columns; empty: `close` of bars; y, value or target in the
                                    ///< long layout; else every column that starts with a number
  std::vector<std::string> covariates;  ///< columns known ahead (see add_future); never values
                                        ///< unless `values` says so. Need not be in this table
  bool joint = false;  ///< the value columns are variates of one series, not series of their own
  Missing missing = Missing::ffill;
  std::size_t season = 0;  ///< steps, for Missing::seasonal and model; 0: by the interval
                           ///< (seasonal_steps), 1: none
  Duplicates duplicates = Duplicates::error;
  std::string date_format;  ///< as strftime has it (with %q for quarters), or dmy, mdy or ymd
  std::string timezone;     ///< of times written without a zone, as in the tz database; empty: UTC
  char decimal = 0;         ///< '.' or ','; 0: found by its look
  /// Further words and numbers that stand for missing, in any case and however the number is
  /// written: -9999, NA2, <1. "none" among them: no number does that is not named here. Else
  /// -9999 and its like do where nothing else comes near them.
  std::vector<std::string> missing_values;
  /// The step of the rows, as pandas writes it: 15s, 5min, h, D, B, W, MS, ME, QS, YS. Rows are
  /// moved to its grid; empty: inferred, and moved only where they waver about a usual step.
  std::string freq;
  std::string resample;  ///< gathers the rows into steps: 5min, or 5min:sum (mean, sum, last,
                         ///< first, max, min); empty: not. Rows of one time are then no error
  bool rate = false;     ///< values are counters: what is forecast is their rise per second
  std::string calendar;  ///< when a market is open: NYSE, 24x7, or a file (docs/data.md); empty:
                         ///< as the rows look
  /// Where float32 has too few digits for the values of a column (fewer than 4096 values of its
  /// range, or 16 of a usual change), they are kept as differences from an offset
  /// (TimeSeries::value_offsets). false: the values as they are, rounded.
  bool value_offset = true;
  std::size_t context = 4096;  ///< steps kept, the last ones up to the last observation, and what
                               ///< comes after it; at least 1
  std::size_t min_observations = 1;  ///< of every variate in the context; the model's patch size
  std::size_t max_text =
      0;  ///< bytes of text after decompression; more is file_too_large. 0: 8 GiB
};

/// How timestamps are written, so that later ones can be written the same way.
struct TimeStyle {
  enum class Form { index, year, month, date, datetime, epoch };
  enum class Zone { none, z, colon, compact, hours };  ///< (nothing), Z, +01:00, +0100, +01

  Form form = Form::index;
  char date_separator = '-';  ///< '-', '/', or 0 for YYYYMM and YYYYMMDD
  char time_separator = 'T';  ///< or ' '
  bool seconds = true;        ///< false: hh:mm
  int fraction_digits = 0;    ///< of the second, in a date-time or an epoch; at most 9
  int epoch_decimals = 0;     ///< epoch: 0 seconds, 3 milli-, 6 micro-, 9 nanoseconds
  Zone zone = Zone::none;
  int zone_offset_minutes = 0;  ///< east of UTC; where it changes along a series, the last one
  std::string pattern = {};   ///< as strftime has it, with %q for quarters; empty: by what is above
  std::string timezone = {};  ///< of the tz database, for times written without a zone; empty: UTC

  friend bool operator==(const TimeStyle&, const TimeStyle&) = default;
};

/// The step from one timestamp to the next.
struct Interval {
  enum class Unit {
    index,         ///< `count` in the integers of an index
    milliseconds,  ///< `count` ms
    business_day,  ///< Monday to Friday
    month,         ///< `count` months, on `day` or the month's last day if that comes first
  };
  Unit unit = Unit::index;
  std::int64_t count = 1;
  int day = 1;          ///< month: of the month; 31 keeps the end of the month
  bool regular = true;  ///< false: no step fits all rows, `count` is the median step

  friend bool operator==(const Interval&, const Interval&) = default;
};

class Sessions;

/// One series to forecast: V variates over T steps, targets first, covariates last.
struct TimeSeries {
  std::string id;     ///< of the output; wide: the column, or the file's stem if joint; long: the
                      ///< id of the rows; bars without an id column: the file's stem. Where one of
                      ///< the last two has several separate columns, "/column" follows
  std::string group;  ///< the id in the table; empty without an id column
  std::vector<std::string> variates;     ///< [V] column names
  std::size_t covariates = 0;            ///< E: how many of the V are covariates
  std::size_t steps = 0;                 ///< T
  std::size_t cut = 0;                   ///< steps before them that the context left out
  std::size_t repeated_rows = 0;         ///< that were the same as another one, and dropped
  std::vector<float> values;             ///< [V][T] in the user's units, all finite
  std::vector<double> value_offsets;     ///< [V] that values, those of covariates known ahead and
                                         ///< forecasts are differences from; empty: all 0
  std::vector<std::uint8_t> mask;        ///< [V][T] 1 = observed, 0 = filled in
  Times times;                           ///< [T] ms since 1970 UTC; an index: the integer itself
  std::vector<float> future_covariates;  ///< [E][horizon] once add_future has been called
  TimeStyle style;
  Interval interval;
  std::shared_ptr<const Sessions> calendar;  ///< when its market is open; null: it is not said
  std::vector<std::int64_t> times_of_day;    ///< with a calendar: ms of the day at which there are
                                             ///< usually rows, by the clock of the market

  [[nodiscard]] std::size_t targets() const { return variates.size() - covariates; }
  [[nodiscard]] double offset_of(std::size_t variate) const {
    return value_offsets.empty() ? 0.0 : value_offsets[variate];
  }
  /// What the engine takes; valid as long as this object is neither changed nor moved.
  [[nodiscard]] Series view() const {
    Series series;
    series.id = id;
    series.variates = variates.size();
    series.steps = steps;
    series.values = values;
    series.value_offsets = value_offsets;
    series.mask = mask;
    series.exogenous = covariates;
    series.future_exogenous = future_covariates;
    return series;
  }
};

/// A series that cannot be forecast; the others can.
struct SeriesError {
  std::string id;
  Error error;
};

/// What was understood of a table.
struct Reading {
  struct Column {
    std::string name;
    std::string role;  ///< time, time of day, date, id, value, covariate, step, not used, left out
    std::string note;  ///< its unit or why it was left out; may be empty
  };
  std::string file;
  std::string format = "CSV";  ///< or the kind of JSON
  std::string compression;     ///< gzip, zstd, zip, or nothing
  char delimiter = ',';
  char decimal = '.';
  bool has_header = true;
  std::size_t header_line = 1;
  std::size_t skipped_lines = 0;  ///< before the table
  std::size_t skipped_rows = 0;   ///< comments and empty rows among the others
  std::vector<Column> columns;
  std::string time_format;  ///< ISO 8601, YYYYMMDD, epoch in ms, ..., or a pattern
  std::string timezone;
  std::size_t rows = 0;      ///< of data, as they stand in the file
  std::size_t repeated = 0;  ///< of them that were the same as another one, and dropped
  std::size_t merged = 0;    ///< of them that --duplicates settled
  std::string order;         ///< oldest first, newest first, shuffled
};

struct Dataset {
  std::vector<TimeSeries> series;     ///< in the order in which the table names them
  std::vector<SeriesError> errors;    ///< too_short, no_observations, missing_value
  std::vector<std::string> warnings;  ///< a line each: what was guessed, left out or irregular
  Layout layout = Layout::wide;       ///< as found
  Reading reading;
};

/// Reads a table from a stream; `name` is the file name for errors and ids.
///
/// Text with fields between commas, semicolons, tabs or bars, whichever most lines agree on, or as
/// a first line "sep=;" says; JSON (docs/data.md lists its forms); either compressed by gzip,
/// zstd or zip (of one file). RFC 4180 quoting; UTF-8 with or without a byte order mark; LF, CRLF
/// or CR. Lines before the header, comments (#) and empty rows are passed over, and so are columns
/// without a name and, unless asked for, columns of text, dates, parts of dates, row numbers and
/// ids that never change. A table without a header gets names. Missing values: an empty field, -,
/// --, one or two points, :,
/// ***, and in any case NaN, null, nil, NA, N/A, #N/A, None.
///
/// Numbers have a decimal point or comma and thousands in groups; what a column shows decides, and
/// where it does not, ambiguous_number. A currency or unit is passed over if all of a column have
/// the same; K and M count, and units of time, bytes and bits are brought to the first one's.
///
/// Timestamps, one form in a column: dates and date-times of ISO 8601 and its relatives, days
/// first, months first, names of months, quarters, weeks, twelve-hour clocks, YYYYMMDD, years,
/// epochs in seconds to nanoseconds, or an index; date and time of day may be two columns, and
/// year, month and day three. Where day and month could be in either order throughout,
/// ambiguous_timestamp. Without a timestamp column the rows are numbered from 0. Rows may be in any
/// order. Times are kept to the millisecond.
///
/// A row that is missing in a fixed or monthly step becomes a step of missing values. Rows are
/// taken as consecutive observations instead: on business days (holidays), when more than half of
/// the steps would be missing (market hours), and when no step fits; the last two with a warning.
///
/// Throws Error (65, with file:line:column; columns count bytes from 1): no_rows, ragged_row,
/// not_a_number, ambiguous_number, not_finite (also beyond float), unclosed_quote and
/// field_too_large (1 MiB), invalid_quote, too_many_columns (65,536), encoding, unsupported_format,
/// damaged_archive, file_too_large (8 GiB of text), duplicate_timestamp, invalid_timestamp,
/// ambiguous_timestamp, missing_column, duplicate_column, missing_id, no_header; of a table with a
/// series in each row also ambiguous_layout, ambiguous_id; (2) conflicting_flags,
/// invalid_context, invalid_date_format, unknown_timezone; (74) read_failed.
Dataset read_csv(std::istream& in, std::string_view name, const CsvOptions& options = {});
/// Reads a file, or standard input when `path` is "-". Also throws Error file_not_found (66).
Dataset read_csv(const std::string& path, const CsvOptions& options = {});

/// Values of one variate as float32, [T] into [T], as the reader keeps those of a column: where
/// float32 has too few digits for them (CsvOptions::value_offset), as differences from an exact
/// offset, which is returned (for Series::value_offsets); else rounded, with 0. `mask` is [T], 1 =
/// observed, or empty; what is not observed, and NaN, counts for nothing.
double keep_digits(std::span<const double> values, std::span<const std::uint8_t> mask,
                   std::span<float> out);

/// offset + value, with the digits that the value has and no more: to the shortest decimal that
/// gives the float back the offset is added. With 0 the value itself. What is written is this.
double with_offset(double offset, float value);

/// Where series of several tables have one id, the tables' names go before it. `files` names the
/// table of each series.
void tell_apart(std::vector<TimeSeries>& series, const std::vector<std::string>& files);

/// The last steps of a series, at most `limit`; future covariates stay.
TimeSeries last_steps(const TimeSeries& series, std::size_t limit);

/// The files that are named, and for a folder the tables in it, by name: .csv, .tsv, .jsonl and
/// .ndjson, also with .gz or .zst behind. A file need not be there. Throws Error no_input (66) for
/// a folder without any, read_failed (74).
std::vector<std::string> csv_files(const std::vector<std::string>& paths);

/// Covariates known ahead: every column of numbers of a table but its timestamp and id columns.
struct CovariateTable {
  struct Group {
    std::string id;                          ///< empty: for every series
    std::vector<std::int64_t> times;         ///< [rows] as in TimeSeries
    std::vector<std::int16_t> offsets;       ///< [rows] minutes east of UTC
    std::vector<float> values;               ///< [rows][columns]; NaN = missing
    std::vector<double> value_offsets = {};  ///< [columns] that values are differences from; empty:
                                             ///< all 0
  };
  std::string name;
  std::vector<std::string> columns;
  std::vector<Group> groups;
  TimeStyle style;
  std::vector<std::string> warnings;
};

/// Reads such a table. `options` are those of the main table: the timestamp and id columns are
/// called the same here, columns named in `values` are no covariates (so that one file may hold
/// everything), the rest is not looked at. Errors as for read_csv.
CovariateTable read_covariates(std::istream& in, std::string_view name,
                               const CsvOptions& options = {});
CovariateTable read_covariates(const std::string& path, const CsvOptions& options = {});

/// Adds the covariates of `table` to every series as its last variates, in the form the model wants
/// (shift_covariates with its patch size). They take the place of the covariates that read_csv
/// found, so call that with `covariates` = the table's columns. Rows are matched by timestamp (and
/// id). Every series needs a row for each of its next `horizon` timestamps; in the context, what
/// the main table has goes before what `table` has. A series without gets missing_covariate and
/// moves to `errors`. Missing values are filled as `missing` says. Throws Error (2) invalid_horizon
/// (1 to 100,000), (65) duplicate_column (a target of that name).
void add_future(Dataset& dataset, const CovariateTable& table, std::size_t horizon,
                std::size_t patch, Missing missing = Missing::ffill);

/// Adds the covariates of `table` at the times of the series alone, nothing ahead, each at its own
/// time. Throws Error (65) missing_covariate, missing_value as above.
void add_past(TimeSeries& series, const CovariateTable& table, Missing missing = Missing::ffill);

/// Covariates in the form the model was trained with: one patch early, because the model only looks
/// back. For true values u[0 .. C+H): the context holds u[P .. P+C), its last patch is masked out,
/// and the future holds u[C+P ..). Zero where u is not known.
struct ShiftedCovariates {
  std::vector<float> context;      ///< [E][C]
  std::vector<std::uint8_t> mask;  ///< [E][C]
  std::vector<float> future;       ///< [E][H]
};

/// `known` and `observed` are [E][C + H].
ShiftedCovariates shift_covariates(std::span<const float> known,
                                   std::span<const std::uint8_t> observed, std::size_t covariates,
                                   std::size_t context, std::size_t horizon, std::size_t patch);

/// The `horizon` timestamps after the last one; with a calendar those at which the market is open
/// (of steps up to a day). Throws Error (65) timestamp_overflow beyond the
/// year 9999 (an index: beyond 64 bits).
std::vector<std::int64_t> future_times(const TimeSeries& series, std::size_t horizon);

/// A timestamp in the form in which the table has them.
std::string format_time(std::int64_t time, const TimeStyle& style);

/// For people: "15 minutes", "business days", "3 months, at their end", "irregular (median 4 s)".
std::string describe(const Interval& interval);
/// Steps of a season by interval: 5 business days, 7 days, 52 weeks, a year of months, a day of
/// shorter steps. 1: there is none.
std::size_t seasonal_steps(const Interval& interval);
/// Missing::seasonal of one variate, whose gaps are filled as Missing::linear does. `season`:
/// steps; below 2 nothing is done.
void fill_seasonal(std::span<float> values, std::span<const std::uint8_t> mask, std::size_t season);
/// For people: "YYYY-MM-DD", "epoch in milliseconds", "%d/%m/%Y".
std::string describe(const TimeStyle& style);

}  // namespace toto::data
#pragma GCC visibility pop
