// SPDX-License-Identifier: Apache-2.0
#include "data/regular.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/json.h"
#include "data/buckets.h"
#include "data/calendar.h"
#include "data/frequency.h"
#include "data/interval.h"
#include "data/rates.h"
#include "data/style.h"

namespace toto::data {
namespace {

constexpr std::int64_t kMinuteMs = 60'000;

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

/// Where the rows of a group go; two neighbours may meet.
struct Moves {
  std::vector<std::int64_t> to;   // by the clock that the grid is on
  std::vector<std::int64_t> off;  // |to - from|
  std::int64_t furthest = 0;      // ms
  std::size_t met = 0;            // rows that were dropped
};

template <typename Target>
Moves plan(const std::vector<std::int64_t>& local, const Target& target) {
  Moves out;
  out.to.reserve(local.size());
  out.off.reserve(local.size());
  for (const std::int64_t time : local) {
    const std::int64_t at = target(time);
    if (!out.to.empty() && out.to.back() == at) ++out.met;
    out.to.push_back(at);
    out.off.push_back(std::abs(time - at));
    out.furthest = std::max(out.furthest, out.off.back());
  }
  return out;
}

/// Of two rows that meet, the one that is nearer stays. `offsets`: local less UTC; empty: 0.
void apply(RowGroup& group, std::size_t width, const Moves& moves,
           const std::vector<std::int64_t>& offsets) {
  std::size_t kept = 0, before = 0;
  Times::Vector& times = group.times.edit();
  for (std::size_t row = 0; row < moves.to.size(); ++row) {
    const bool meets = row > 0 && moves.to[before] == moves.to[row];
    if (meets && moves.off[row] >= moves.off[before]) continue;
    const std::size_t to = meets ? kept - 1 : kept++;
    before = row;
    times[to] = moves.to[row] - (offsets.empty() ? 0 : offsets[row]);
    if (!group.offsets.empty()) group.offsets[to] = group.offsets[row];
    std::copy_n(group.values.begin() + static_cast<std::ptrdiff_t>(row * width), width,
                group.values.begin() + static_cast<std::ptrdiff_t>(to * width));
  }
  times.resize(kept);
  group.values.resize(kept * width);
  if (!group.offsets.empty()) group.offsets.resize(kept);
}

/// A usual step of less than a day near the median one, where the times are not on a grid already.
std::optional<std::int64_t> wavering_step(const RowGroup& group) {
  constexpr auto kUsual = std::to_array<std::int64_t>(
      {1'000, 2'000, 5'000, 10'000, 15'000, 20'000, 30'000, 60'000, 120'000, 300'000, 600'000,
       900'000, 1'200'000, 1'800'000, 3'600'000, 7'200'000, 14'400'000, 21'600'000, 43'200'000});
  constexpr std::size_t kRows = 8;
  if (group.times.size() < kRows) return std::nullopt;
  const std::vector<std::int64_t>& times = group.times;
  std::int64_t shortest = times[1] - times[0];
  for (std::size_t i = 1; i < times.size(); ++i) {
    shortest = std::min(shortest, times[i] - times[i - 1]);
  }
  bool even = true;
  for (std::size_t i = 1; even && i < times.size(); ++i) {
    even = (times[i] - times[i - 1]) % shortest == 0;
  }
  if (even) return std::nullopt;
  std::vector<std::int64_t> steps(times.size() - 1);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = times[i + 1] - times[i];
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
    if (freq && resample) {
      throw Error(ExitStatus::usage, "conflicting_flags",
                  "--resample says the step already, --freq says it again", "--freq");
    }
    if ((freq || resample || options_.rate) && index) {
      throw Error(ExitStatus::bad_data, "frequency_mismatch", "the rows have numbers and no times",
                  table_.name, "name the column of times with --timestamp");
    }
    if (!options_.rate) look_for_counters(width);
    for (RowGroup& group : table_.groups) {
      if (options_.rate) resets_ += to_rates(group, width - table_.covariates, width);
      if (resample) {
        require_sparse(group, resample->step);
        cut_off_ += gather_rows(group, width, *resample);
        group.step = resample->step;
      }
      if (freq) put_on(group, width, *freq);
      if (!freq && !resample && !index) steady(group, width);
    }
    if (resample && (resample->step.unit != Interval::Unit::milliseconds ||
                     resample->step.count % kDayMs == 0)) {
      as_dates();
    }
    if (freq) tell_steps_apart(table_.style, *freq);
    if (resample) tell_steps_apart(table_.style, resample->step);
    tell();
  }

 private:
  /// Offsets by which rows are local: of days each its own, within days the last one.
  static std::vector<std::int64_t> offsets_of(const RowGroup& group, bool days) {
    std::vector<std::int64_t> out(group.times.size(), 0);
    for (std::size_t row = 0; row < group.offsets.size(); ++row) {
      out[row] = (days ? group.offsets[row] : group.offsets.back()) * kMinuteMs;
    }
    return out;
  }

  void put_on(RowGroup& group, std::size_t width, const Interval& freq) {
    if (group.times.empty()) return;
    require_sparse(group, freq);
    group.step = freq;
    if (freq.unit == Interval::Unit::business_day) return;
    const bool days = freq.unit != Interval::Unit::milliseconds || freq.count % kDayMs == 0;
    const std::vector<std::int64_t> offsets = offsets_of(group, days);
    std::vector<std::int64_t> local(group.times);
    for (std::size_t row = 0; row < local.size(); ++row) local[row] += offsets[row];
    Moves moves;
    if (freq.unit == Interval::Unit::month) {
      moves = plan(local, [&](std::int64_t time) { return begin_of_step(time, freq); });
    } else {
      const Grid grid = fit(local, freq.count);
      moves = plan(local, [&](std::int64_t time) { return grid.nearest(time); });
    }
    if (moves.met * 2 > group.times.size()) {
      throw Error(
          ExitStatus::bad_data, "frequency_mismatch",
          fmt::format("more than half of the rows would share a step of {} with another one",
                      describe(freq)),
          where(group), fmt::format("gather them: --resample {}", options_.freq));
    }
    apply(group, width, moves, offsets);
    note(moves, describe(freq));
  }

  /// Steps that nobody has rows for take memory and say nothing.
  void require_sparse(const RowGroup& group, const Interval& step) const {
    if (step.unit != Interval::Unit::milliseconds || group.times.empty()) return;
    const std::int64_t span = group.times.back() - group.times.front();
    const auto rows = static_cast<std::int64_t>(group.times.size());
    if (span / step.count <= 100 * rows + 10'000) return;
    throw Error(ExitStatus::bad_data, "frequency_mismatch",
                fmt::format("{} rows would become {} steps of {}", rows, span / step.count + 1,
                            describe(step)),
                where(group), "say a longer step");
  }

  void steady(RowGroup& group, std::size_t width) {
    constexpr std::int64_t kQuarter = 4;
    const std::optional<std::int64_t> step = wavering_step(group);
    if (!step) return;
    const Grid grid = fit(group.times, *step);
    const Moves moves = plan(group.times, [&](std::int64_t time) { return grid.nearest(time); });
    if (moves.met > 0 || moves.furthest * kQuarter > *step) return;
    apply(group, width, moves, {});
    note(moves, describe(Interval{Interval::Unit::milliseconds, *step, 1, true}));
  }

  void look_for_counters(std::size_t width) {
    for (const RowGroup& group : table_.groups) {
      for (std::size_t column = 0; column + table_.covariates < width; ++column) {
        const std::string& name = table_.columns[column];
        if (!looks_like_counter(group, column, width, name) &&
            !looks_like_counter(group, column, width, group.id)) {
          continue;
        }
        table_.warnings.push_back(
            fmt::format("{}: {} looks like a counter; --rate forecasts its rise per second",
                        table_.name, quote(group.id.empty() ? name : group.id)));
        return;
      }
    }
  }

  void note(const Moves& moves, const std::string& step) {
    if (moves.furthest == 0 && moves.met == 0) return;
    furthest_ = std::max(furthest_, moves.furthest);
    met_ += moves.met;
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
    if (resets_ > 0) {
      table_.warnings.push_back(
          fmt::format("{}: counters fell {} times; they are taken to have begun anew at 0",
                      table_.name, resets_));
    }
    if (cut_off_ > 0) {
      table_.warnings.push_back(
          fmt::format("{}: {} first and last steps are not whole and have no sum; left out",
                      table_.name, cut_off_));
    }
    if (moved_ == 0) return;
    std::string text = fmt::format("{}: times were moved to steps of {}, by up to {} ms",
                                   table_.name, step_, furthest_);
    if (met_ > 0) text += fmt::format("; {} rows shared a step, the nearer one stays", met_);
    table_.warnings.push_back(std::move(text));
  }

  Table& table_;
  const CsvOptions& options_;
  std::size_t resets_ = 0, cut_off_ = 0, moved_ = 0, met_ = 0;
  std::int64_t furthest_ = 0;
  std::string step_;
};

}  // namespace

void make_regular(Table& table, const CsvOptions& options) { Regulator(table, options).run(); }

}  // namespace toto::data
