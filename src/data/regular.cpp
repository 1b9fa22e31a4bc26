// SPDX-License-Identifier: Apache-2.0
#include "data/regular.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "core/json.h"
#include "data/calendar.h"
#include "data/frequency.h"
#include "data/interval.h"

namespace toto::data {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kMinuteMs = 60'000;

enum class Gather { mean, sum, last, first, max, min };

struct Resample {
  Interval step;
  Gather gather = Gather::mean;
};

Resample parse_resample(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, Gather>, 6> kWords = {{{"mean", Gather::mean},
                                                                          {"sum", Gather::sum},
                                                                          {"last", Gather::last},
                                                                          {"first", Gather::first},
                                                                          {"max", Gather::max},
                                                                          {"min", Gather::min}}};
  const std::size_t colon = text.find(':');
  Resample out;
  out.step = parse_frequency(std::string_view(text).substr(0, colon), "--resample");
  if (colon == std::string::npos) return out;
  const std::string_view word = std::string_view(text).substr(colon + 1);
  const auto* const found =
      std::ranges::find(kWords, word, &std::pair<std::string_view, Gather>::first);
  if (found == kWords.end()) {
    throw Error(ExitStatus::usage, "invalid_resample", quote(word) + " is no way to gather values",
                "--resample", "one of mean, sum, last, first, max, min: 5min:sum");
  }
  out.gather = found->second;
  return out;
}

std::int64_t offset_of(const RowGroup& group, std::size_t row) {
  return group.offsets.empty() ? 0 : group.offsets[row] * kMinuteMs;
}

/// A counter's rise per second since the last value before; where it falls it began anew at 0. The
/// first row says nothing.
void to_rates(RowGroup& group, std::size_t targets, std::size_t width, std::size_t& resets) {
  const std::size_t rows = group.times.size();
  std::vector<float> rates(group.values);
  for (std::size_t column = 0; column < targets; ++column) {
    std::optional<std::size_t> before;
    for (std::size_t row = 0; row < rows; ++row) {
      const double now = group.values[row * width + column];
      float& rate = rates[row * width + column];
      rate = kNaN;
      if (std::isnan(now)) continue;
      if (before) {
        const double then = group.values[*before * width + column];
        const double seconds =
            static_cast<double>(group.times[row] - group.times[*before]) / 1000.0;
        resets += now < then ? 1 : 0;
        rate = static_cast<float>((now < then ? now : now - then) / seconds);
      }
      before = row;
    }
  }
  if (rows < 2) return;
  group.values.assign(rates.begin() + static_cast<std::ptrdiff_t>(width), rates.end());
  group.times.erase(group.times.begin());
  if (!group.offsets.empty()) group.offsets.erase(group.offsets.begin());
}

/// Where the step begins that a time lies in, by the clock on the wall.
std::int64_t begin_of_step(std::int64_t local, const Interval& step) {
  if (step.unit == Interval::Unit::milliseconds) {
    // Weeks begin on Mondays; 1970-01-01 was a Thursday.
    const std::int64_t origin = step.count % (7 * kDayMs) == 0 ? 4 * kDayMs : 0;
    return floor_div(local - origin, step.count) * step.count + origin;
  }
  const std::int64_t day = floor_div(local, kDayMs);
  if (step.unit == Interval::Unit::business_day) {
    return business_day(business_day_number(day)) * kDayMs;
  }
  const std::int64_t month = floor_div(month_number(date_of(day)), step.count) * step.count;
  const std::int64_t stamp = step.day == 1 ? month : month + step.count - 1;
  return day_of(date_in_month(stamp, step.day)) * kDayMs;
}

class Bucket {
 public:
  explicit Bucket(Gather gather) : gather_(gather) {}
  void add(float value) {
    if (std::isnan(value)) return;
    ++count_;
    sum_ += value;
    if (count_ == 1) first_ = lowest_ = highest_ = value;
    last_ = value;
    lowest_ = std::min(lowest_, value);
    highest_ = std::max(highest_, value);
  }
  [[nodiscard]] float value() const {
    if (count_ == 0) return kNaN;
    switch (gather_) {
      case Gather::mean:
        return static_cast<float>(sum_ / static_cast<double>(count_));
      case Gather::sum:
        return static_cast<float>(sum_);
      case Gather::last:
        return last_;
      case Gather::first:
        return first_;
      case Gather::max:
        return highest_;
      default:
        return lowest_;
    }
  }

 private:
  Gather gather_;
  std::size_t count_ = 0;
  double sum_ = 0.0;
  float first_ = 0.0F, last_ = 0.0F, lowest_ = 0.0F, highest_ = 0.0F;
};

void gather(RowGroup& group, std::size_t width, const Resample& resample) {
  RowGroup out;
  out.id = std::move(group.id);
  out.repeated = group.repeated;
  for (std::size_t row = 0; row < group.times.size();) {
    const std::int64_t begin =
        begin_of_step(group.times[row] + offset_of(group, row), resample.step);
    std::vector<Bucket> buckets(width, Bucket(resample.gather));
    const std::int64_t offset = offset_of(group, row);
    for (; row < group.times.size() &&
           begin_of_step(group.times[row] + offset_of(group, row), resample.step) == begin;
         ++row) {
      for (std::size_t i = 0; i < width; ++i) buckets[i].add(group.values[row * width + i]);
    }
    const std::int64_t time = begin - offset;
    // The hour that the clock shows twice is two hours, of which the second one comes later.
    if (!out.times.empty() && time <= out.times.back()) continue;
    out.times.push_back(time);
    if (!group.offsets.empty()) {
      out.offsets.push_back(static_cast<std::int16_t>(offset / kMinuteMs));
    }
    for (const Bucket& bucket : buckets) out.values.push_back(bucket.value());
  }
  group = std::move(out);
}

struct Grid {
  std::int64_t origin = 0;
  std::int64_t step = 1;

  [[nodiscard]] std::int64_t nearest(std::int64_t time) const {
    return origin + floor_div(time - origin + step / 2, step) * step;
  }
};

/// The grid of a step that the times lie nearest to; on multiples of the step if they nearly do.
Grid fit(const std::vector<std::int64_t>& times, std::int64_t step) {
  const Grid from_first{times.front(), step};
  std::vector<std::int64_t> rest(times.size());
  std::ranges::transform(times, rest.begin(),
                         [&](std::int64_t time) { return time - from_first.nearest(time); });
  const auto middle = rest.begin() + static_cast<std::ptrdiff_t>(rest.size() / 2);
  std::ranges::nth_element(rest, middle);
  Grid grid{times.front() + *middle, step};
  const Grid whole{0, step};
  const std::int64_t off = grid.origin - whole.nearest(grid.origin);
  if (std::abs(off) * 10 <= step) grid.origin = whole.nearest(grid.origin);
  return grid;
}

/// Moves the rows to the grid; of two rows that meet, the one that is nearer stays.
struct Moved {
  std::int64_t furthest = 0;  // ms
  std::size_t met = 0;        // rows that were dropped
};

Moved measure(const RowGroup& group, const Grid& grid) {
  Moved out;
  std::optional<std::int64_t> before;
  for (const std::int64_t time : group.times) {
    const std::int64_t at = grid.nearest(time);
    out.furthest = std::max(out.furthest, std::abs(time - at));
    out.met += before == at ? 1 : 0;
    before = at;
  }
  return out;
}

void move(RowGroup& group, std::size_t width, const Grid& grid) {
  std::size_t kept = 0;
  std::int64_t off_before = 0;
  for (std::size_t row = 0; row < group.times.size(); ++row) {
    const std::int64_t at = grid.nearest(group.times[row]);
    const std::int64_t off = std::abs(group.times[row] - at);
    const bool meets = kept > 0 && group.times[kept - 1] == at;
    if (meets && off >= off_before) continue;
    const std::size_t to = meets ? kept - 1 : kept++;
    group.times[to] = at;
    if (!group.offsets.empty()) group.offsets[to] = group.offsets[row];
    std::copy_n(group.values.begin() + static_cast<std::ptrdiff_t>(row * width), width,
                group.values.begin() + static_cast<std::ptrdiff_t>(to * width));
    off_before = off;
  }
  group.times.resize(kept);
  group.values.resize(kept * width);
  if (!group.offsets.empty()) group.offsets.resize(kept);
}

/// The usual step near the median one, where the times are not on a grid already.
std::optional<std::int64_t> wavering_step(const RowGroup& group) {
  constexpr auto kUsual = std::to_array<std::int64_t>(
      {1'000,     2'000,     5'000,      10'000,     15'000,     20'000,    30'000,
       60'000,    120'000,   300'000,    600'000,    900'000,    1'200'000, 1'800'000,
       3'600'000, 7'200'000, 14'400'000, 21'600'000, 43'200'000, 86'400'000});
  constexpr std::size_t kRows = 8;
  if (group.times.size() < kRows) return std::nullopt;
  std::vector<std::int64_t> steps(group.times.size() - 1);
  bool same = true;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i] = group.times[i + 1] - group.times[i];
    same = same && steps[i] % steps[0] == 0;
  }
  if (same) return std::nullopt;
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::ranges::nth_element(steps, middle);
  for (const std::int64_t usual : kUsual) {
    if (std::abs(*middle - usual) * 50 <= usual) return usual;
  }
  return std::nullopt;
}

class Regulator {
 public:
  Regulator(Table& table, const CsvOptions& options) : table_(table), options_(options) {}

  void run() {
    const std::size_t width = table_.columns.size();
    const bool index = table_.style.form == TimeStyle::Form::index;
    std::optional<Resample> resample;
    std::optional<Interval> freq;
    if (!options_.resample.empty()) resample = parse_resample(options_.resample);
    if (!options_.freq.empty()) freq = parse_frequency(options_.freq, "--freq");
    if ((freq || resample || options_.rate) && index) {
      throw Error(ExitStatus::bad_data, "frequency_mismatch", "the rows have numbers and no times",
                  table_.name, "name the column of times with --timestamp");
    }
    for (RowGroup& group : table_.groups) {
      if (options_.rate) to_rates(group, width - table_.covariates, width, resets_);
      if (resample) {
        gather(group, width, *resample);
        group.step = resample->step;
      }
      if (freq) put_on(group, width, *freq);
      if (!freq && !resample && !index) steady(group, width);
    }
    if (resample && (resample->step.unit != Interval::Unit::milliseconds ||
                     resample->step.count % kDayMs == 0)) {
      as_dates();
    }
    tell();
  }

 private:
  void put_on(RowGroup& group, std::size_t width, const Interval& freq) {
    if (group.times.empty()) return;
    group.step = freq;
    if (freq.unit != Interval::Unit::milliseconds) return;
    const bool by_the_wall = freq.count % kDayMs == 0 && has_clock_changes(group);
    if (by_the_wall) return;  // days begin by the clock on the wall: nothing to move
    const std::int64_t span = group.times.back() - group.times.front();
    const auto rows = static_cast<std::int64_t>(group.times.size());
    if (span / freq.count > 100 * rows + 10'000) {
      throw Error(ExitStatus::bad_data, "frequency_mismatch",
                  fmt::format("{} rows would become {} steps of {}", rows, span / freq.count + 1,
                              describe(freq)),
                  where(group), "say a longer step with --freq");
    }
    const Grid grid = fit(group.times, freq.count);
    const Moved moved = measure(group, grid);
    if (moved.met * 2 > group.times.size()) {
      throw Error(
          ExitStatus::bad_data, "frequency_mismatch",
          fmt::format("more than half of the rows would share a step of {} with another one",
                      describe(freq)),
          where(group), fmt::format("gather them: --resample {}", options_.freq));
    }
    move(group, width, grid);
    note(moved, describe(freq));
  }

  static bool has_clock_changes(const RowGroup& group) {
    return std::ranges::adjacent_find(group.offsets, std::not_equal_to{}) != group.offsets.end();
  }

  void steady(RowGroup& group, std::size_t width) {
    constexpr std::int64_t kQuarter = 4;
    const std::optional<std::int64_t> step = wavering_step(group);
    if (!step) return;
    const Grid grid = fit(group.times, *step);
    const Moved moved = measure(group, grid);
    if (moved.met > 0 || moved.furthest * kQuarter > *step) return;
    move(group, width, grid);
    note(moved, describe(Interval{Interval::Unit::milliseconds, *step, 1, true}));
  }

  void note(const Moved& moved, const std::string& step) {
    if (moved.furthest == 0 && moved.met == 0) return;
    furthest_ = std::max(furthest_, moved.furthest);
    met_ += moved.met;
    ++moved_;
    step_ = step;
  }

  /// Whole days are written as dates.
  void as_dates() {
    TimeStyle& style = table_.style;
    if (style.form != TimeStyle::Form::datetime || !style.pattern.empty()) return;
    if (style.zone != TimeStyle::Zone::none) return;
    style.form = TimeStyle::Form::date;
  }

  std::string where(const RowGroup& group) const {
    return group.id.empty() ? table_.name
                            : fmt::format("{}: series {}", table_.name, quote(group.id));
  }

  void tell() {
    if (options_.rate && resets_ > 0) {
      table_.warnings.push_back(
          fmt::format("{}: counters fell {} times; they are taken to have begun anew at 0",
                      table_.name, resets_));
    }
    if (moved_ == 0) return;
    std::string text = fmt::format("{}: times were moved to steps of {}, by up to {} ms",
                                   table_.name, step_, furthest_);
    if (met_ > 0) text += fmt::format("; {} rows shared a step, the nearer one stays", met_);
    table_.warnings.push_back(std::move(text));
  }

  Table& table_;
  const CsvOptions& options_;
  std::size_t resets_ = 0, moved_ = 0, met_ = 0;
  std::int64_t furthest_ = 0;
  std::string step_;
};

}  // namespace

void make_regular(Table& table, const CsvOptions& options) { Regulator(table, options).run(); }

}  // namespace toto::data
