// SPDX-License-Identifier: Apache-2.0
// Covariates that are known ahead: reading them, matching them to series, shifting them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "core/json.h"
#include "data/calendar.h"
#include "data/fill.h"
#include "data/table.h"
#include "data/value_offset.h"
#include "toto/tools/data.hpp"

namespace toto::data {
namespace {

constexpr std::size_t kMaxHorizon = 100'000;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// A few years alone may look like an index, and the rest of the same index like years.
void adopt_form(CovariateTable& table, TimeStyle::Form form) {
  using Form = TimeStyle::Form;
  const bool to_index = table.style.form == Form::year && form == Form::index;
  const bool to_year = table.style.form == Form::index && form == Form::year;
  if (!to_index && !to_year) return;
  const auto is_year = [](std::int64_t time) { return time >= 1 && time <= 9999; };
  for (CovariateTable::Group& group : table.groups) {
    if (to_year && !std::ranges::all_of(group.times, is_year)) continue;
    for (std::int64_t& time : group.times) {
      time = to_index ? month_number(date_of(time / kDayMs)) / 12
                      : day_of(date_in_month(time * 12, 1)) * kDayMs;
    }
  }
}

class Joiner {
 public:
  Joiner(const CovariateTable& table, std::size_t horizon, std::size_t patch, Missing missing)
      : table_(table), horizon_(horizon), patch_(patch), missing_(missing) {
    for (const CovariateTable::Group& group : table.groups) groups_.emplace(group.id, &group);
  }

  /// Throws Error missing_covariate or missing_value; the series is then as it was.
  void join(TimeSeries& series) const {
    const CovariateTable::Group& group = group_of(series);
    std::vector<std::int64_t> times = series.times;
    const std::vector<std::int64_t> future = future_times(series, horizon_);
    times.insert(times.end(), future.begin(), future.end());
    const std::vector<std::size_t> rows = match(series, group, times);

    std::unordered_map<std::string_view, std::size_t> in_main;
    for (std::size_t v = series.targets(); v < series.variates.size(); ++v) {
      in_main.emplace(series.variates[v], v);
    }
    const std::size_t width = table_.columns.size();
    std::vector<float> known(width * times.size(), kNaN);
    std::vector<std::uint8_t> observed(known.size());
    std::vector<double> offsets(width);
    for (std::size_t e = 0; e < width; ++e) {
      const auto values = std::span(known).subspan(e * times.size(), times.size());
      const auto mask = std::span(observed).subspan(e * times.size(), times.size());
      const auto past = in_main.find(table_.columns[e]);
      // One offset for the past and the future of a covariate: that of the main table, if any.
      const double own = offset_at(group.value_offsets, e);
      const double main = past == in_main.end() ? 0.0 : series.offset_of(past->second);
      offsets[e] = main != 0 ? main : own;
      for (std::size_t i = 0; i < times.size(); ++i) {
        if (rows[i] == kNoRow) continue;
        values[i] = moved(group.values[rows[i] * width + e], own, offsets[e]);
      }
      if (past != in_main.end()) take_context(series, past->second, values, offsets[e]);
      for (std::size_t i = 0; i < times.size(); ++i) mask[i] = std::isnan(values[i]) ? 0 : 1;
      check(series, table_.columns[e], times, mask);
      fill_missing(values, mask, missing_, std::nullopt,
                   offsets[e] == 0 ? 0.0F : static_cast<float>(-offsets[e]));
    }
    put(series, shift_covariates(known, observed, width, series.steps, horizon_, patch_), offsets);
  }

 private:
  static constexpr std::size_t kNoRow = static_cast<std::size_t>(-1);

  const CovariateTable::Group& group_of(const TimeSeries& series) const {
    auto found = groups_.find(series.group);
    if (found == groups_.end()) found = groups_.find("");  // a table without ids is for all
    if (found != groups_.end()) return *found->second;
    fail(series, "missing_covariate", "no covariates for this series", table_.name);
  }

  /// Rows are matched by their time; where a step is a day or more and both tables say their
  /// offset, by the clock on the wall, which days begin by.
  bool by_the_wall(const TimeSeries& series) const {
    const auto has_offset = [](const TimeStyle& style) {
      return style.zone != TimeStyle::Zone::none && style.zone != TimeStyle::Zone::z;
    };
    const Interval& interval = series.interval;
    const bool days = interval.unit != Interval::Unit::milliseconds || interval.count % kDayMs == 0;
    return days && has_offset(series.style) && has_offset(table_.style);
  }

  /// The row at each time. Both run in order.
  std::vector<std::size_t> match(const TimeSeries& series, const CovariateTable::Group& group,
                                 const std::vector<std::int64_t>& times) const {
    std::vector<std::size_t> rows(times.size(), kNoRow);
    const bool wall = by_the_wall(series);
    const auto key_of = [&](std::size_t row) {
      const bool shifted = wall && !group.offsets.empty();
      return group.times[row] + (shifted ? group.offsets[row] * std::int64_t{60'000} : 0);
    };
    const std::int64_t offset = wall ? series.style.zone_offset_minutes * std::int64_t{60'000} : 0;
    std::size_t row = 0;
    for (std::size_t i = 0; i < times.size(); ++i) {
      const std::int64_t wanted = times[i] + offset;
      while (row < group.times.size() && key_of(row) < wanted) ++row;
      if (row < group.times.size() && key_of(row) == wanted) rows[i] = row;
      if (i >= series.steps && rows[i] == kNoRow) {
        fail(series, "missing_covariate",
             fmt::format("no row for {}, step {} of the horizon",
                         format_time(times[i], series.style), i - series.steps + 1),
             table_.name, "give a row for every step of the horizon");
      }
    }
    return rows;
  }

  /// What the main table has observed goes before what this one says about the past.
  static void take_context(const TimeSeries& series, std::size_t variate, std::span<float> values,
                           double offset) {
    const std::size_t begin = variate * series.steps;
    for (std::size_t t = 0; t < series.steps; ++t) {
      if (series.mask[begin + t] == 0) continue;
      values[t] = moved(series.values[begin + t], series.offset_of(variate), offset);
    }
  }

  void check(const TimeSeries& series, const std::string& name,
             const std::vector<std::int64_t>& times, std::span<const std::uint8_t> mask) const {
    if (std::ranges::count(mask.first(series.steps), 1) == 0) {
      fail(series, "missing_covariate",
           fmt::format("no value of {} at any step of the context", quote(name)), table_.name,
           "give the past of the column in the main table or in this one");
    }
    if (missing_ != Missing::error) return;
    const auto at = static_cast<std::size_t>(std::ranges::find(mask, 0) - mask.begin());
    if (at == mask.size()) return;
    fail(series, "missing_value",
         fmt::format("no value of {} at {}", quote(name), format_time(times[at], series.style)),
         table_.name);
  }

  void put(TimeSeries& series, ShiftedCovariates shifted, std::span<const double> offsets) const {
    const std::size_t targets = series.targets();
    series.variates.resize(targets);
    series.values.resize(targets * series.steps);
    series.mask.resize(targets * series.steps);
    series.variates.insert(series.variates.end(), table_.columns.begin(), table_.columns.end());
    series.values.insert(series.values.end(), shifted.context.begin(), shifted.context.end());
    series.mask.insert(series.mask.end(), shifted.mask.begin(), shifted.mask.end());
    series.covariates = table_.columns.size();
    if (!series.value_offsets.empty() ||
        std::ranges::any_of(offsets, [](double x) { return x != 0; })) {
      series.value_offsets.resize(targets, 0.0);
      series.value_offsets.insert(series.value_offsets.end(), offsets.begin(), offsets.end());
    }
    series.future_covariates = std::move(shifted.future);
  }

  [[noreturn]] static void fail(const TimeSeries& series, std::string_view code,
                                std::string_view message, const std::string& name,
                                std::string_view remedy = {}) {
    throw Error(ExitStatus::bad_data, code, message,
                fmt::format("{}: series {}", name, quote(series.id)), remedy);
  }

  const CovariateTable& table_;
  std::unordered_map<std::string_view, const CovariateTable::Group*> groups_;
  std::size_t horizon_;
  std::size_t patch_;
  Missing missing_;
};

}  // namespace

CovariateTable read_covariates(std::istream& in, std::string_view name, const CsvOptions& options) {
  CsvOptions own;
  own.timestamp = options.timestamp;
  own.id = options.id;
  own.values = options.values;
  own.duplicates = options.duplicates;
  own.date_format = options.date_format;
  own.timezone = options.timezone;
  own.decimal = options.decimal;
  own.missing_values = options.missing_values;
  own.freq = options.freq;
  own.value_offset = options.value_offset;
  Table table = read_any_table(read_text(in, name), own, Take::covariates);
  CovariateTable out;
  out.name = std::move(table.name);
  out.columns = std::move(table.columns);
  out.style = table.style;
  out.warnings = std::move(table.warnings);
  for (RowGroup& group : table.groups) {
    out.groups.push_back({std::move(group.id), group.times.vector(), std::move(group.offsets),
                          std::move(group.values), std::move(group.value_offsets)});
  }
  return out;
}

CovariateTable read_covariates(const std::string& path, const CsvOptions& options) {
  Input input(path);
  return read_covariates(input.stream(), input.name(), options);
}

ShiftedCovariates shift_covariates(std::span<const float> known,
                                   std::span<const std::uint8_t> observed, std::size_t covariates,
                                   std::size_t context, std::size_t horizon, std::size_t patch) {
  const std::size_t all = context + horizon;
  ShiftedCovariates out;
  out.context.resize(covariates * context);
  out.mask.resize(covariates * context);
  out.future.resize(covariates * horizon);
  for (std::size_t e = 0; e < covariates; ++e) {
    for (std::size_t t = 0; t < all; ++t) {
      const bool is_known = t + patch < all;
      const float value = is_known ? known[e * all + t + patch] : 0.0F;
      if (t >= context) {
        out.future[e * horizon + t - context] = value;
        continue;
      }
      out.context[e * context + t] = value;
      const bool last_patch = t + patch >= context;
      out.mask[e * context + t] = last_patch ? 0 : observed[e * all + t + patch];
    }
  }
  return out;
}

void add_future(Dataset& dataset, const CovariateTable& table, std::size_t horizon,
                std::size_t patch, Missing missing) {
  if (horizon == 0 || horizon > kMaxHorizon) {
    throw Error(ExitStatus::usage, "invalid_horizon",
                fmt::format("the horizon must be 1 to {} steps, not {}", kMaxHorizon, horizon));
  }
  if (dataset.series.empty()) return;
  CovariateTable own = table;
  adopt_form(own, dataset.series.front().style.form);
  const Joiner joiner(own, horizon, patch, missing);
  std::vector<TimeSeries> good;
  for (TimeSeries& series : dataset.series) {
    for (std::size_t v = 0; v < series.targets(); ++v) {
      if (std::ranges::find(own.columns, series.variates[v]) == own.columns.end()) continue;
      throw Error(ExitStatus::bad_data, "duplicate_column",
                  fmt::format("{} is a value column and a covariate", quote(series.variates[v])),
                  own.name, "pass the covariates when reading the main table");
    }
    try {
      joiner.join(series);
      good.push_back(std::move(series));
    } catch (const Error& error) {
      dataset.errors.push_back({series.id, error});
    }
  }
  dataset.series = std::move(good);
}

void add_past(TimeSeries& series, const CovariateTable& table, Missing missing) {
  CovariateTable own = table;
  adopt_form(own, series.style.form);
  Joiner(own, 0, 0, missing).join(series);
}

}  // namespace toto::data
