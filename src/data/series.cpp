// SPDX-License-Identifier: Apache-2.0
// From the rows of a table to series: ids, variates, missing values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/json.h"
#include "data/context.h"
#include "data/file_name.h"
#include "data/fill.h"
#include "data/sessions.h"
#include "data/table.h"
#include "data/value_offset.h"
#include "toto/tools/data.hpp"

namespace toto::data {
namespace {

class Assembler {
 public:
  Assembler(Table table, const CsvOptions& options) : table_(std::move(table)), options_(options) {
    out_.layout = table_.layout;
    out_.warnings = std::move(table_.warnings);
    out_.reading = std::move(table_.reading);
    targets_ = table_.columns.size() - table_.covariates;
    if (!options.calendar.empty()) calendar_ = Sessions::find(options.calendar);
  }

  Dataset assemble() {
    out_.series.reserve(table_.groups.size() * (options_.joint ? 1 : targets_));
    for (RowGroup& group : table_.groups) {
      const Context context = make_context(group, table_.style, options_.context, calendar_.get());
      times_of_day_.clear();
      if (calendar_) {
        times_of_day_ = usual_times_of_day(market_clock(context.times, context.style, *calendar_));
      }
      note_spacing(group, context);
      if (options_.joint) {
        add(group, context, 0, targets_);
      } else {
        for (std::size_t column = 0; column < targets_; ++column) add(group, context, column, 1);
      }
      group = {};  // its memory is for the next series
    }
    warn_of_spacing(irregular_, "not evenly spaced");
    warn_of_spacing(sparse_, "more than half of the steps are missing");
    return std::move(out_);
  }

 private:
  struct Spacing {
    std::size_t count = 0;
    std::string first;
  };

  void note_spacing(const RowGroup& group, const Context& context) {
    const bool by_calendar = calendar_ && !calendar_->always();
    if (group.times.size() < 2 || context.fill_gaps || by_calendar ||
        context.interval.unit == Interval::Unit::business_day) {
      return;
    }
    Spacing& spacing = context.interval.regular ? sparse_ : irregular_;
    if (++spacing.count > 1) return;
    spacing.first =
        fmt::format("{} ({})", table_.has_ids ? "series " + quote(group.id) : table_.name,
                    describe(context.interval));
  }

  void warn_of_spacing(const Spacing& spacing, std::string_view what) {
    if (spacing.count == 0) return;
    std::string warning =
        fmt::format("{}: {}; rows are taken as consecutive steps", spacing.first, what);
    if (spacing.count > 1) warning += fmt::format(" (and {} series more)", spacing.count - 1);
    out_.warnings.push_back(std::move(warning));
  }

  std::string id_of(const RowGroup& group, std::size_t column) const {
    if (!table_.has_ids && table_.layout != Layout::bars && !options_.joint) {
      return table_.columns[column];
    }
    std::string id = table_.has_ids           ? group.id
                     : !table_.symbol.empty() ? table_.symbol
                                              : stem_of(table_.name);
    if (!options_.joint && targets_ > 1) id.append("/").append(table_.columns[column]);
    return id;
  }

  /// The context ends with an observation: what is missing after it comes on top.
  void add(RowGroup& group, const Context& shared, std::size_t first, std::size_t count) {
    const std::size_t missing = missing_end(group, shared, first, count);
    if (missing == 0) {
      add_from(group, shared, first, count);
    } else {
      add_from(group,
               make_context(group, table_.style, options_.context + missing, calendar_.get()),
               first, count);
    }
  }

  /// Steps after the last row in which one of these columns has a value.
  std::size_t missing_end(const RowGroup& group, const Context& context, std::size_t first,
                          std::size_t count) const {
    const std::size_t width = table_.columns.size();
    const std::size_t last = group.times.size() - 1;
    for (std::size_t row = group.times.size(); row-- > 0;) {
      const auto from = group.values.begin() + static_cast<std::ptrdiff_t>(row * width + first);
      if (std::all_of(from, from + static_cast<std::ptrdiff_t>(count),
                      [](float x) { return std::isnan(x); })) {
        continue;
      }
      return context.step_of(last) - context.step_of(row);
    }
    return 0;
  }

  void add_from(RowGroup& group, const Context& context, std::size_t first, std::size_t count) {
    TimeSeries series;
    series.id = id_of(group, first);
    series.group = group.id;
    series.covariates = table_.covariates;
    series.style = context.style;
    series.interval = context.interval;
    series.calendar = calendar_;
    series.times_of_day = times_of_day_;
    series.steps = context.rows.size();
    series.cut = context.begin;
    series.repeated_rows = group.repeated;
    const std::size_t cells = (count + table_.covariates) * series.steps;
    if (!is_whole(group, context)) series.values.reserve(cells);
    series.mask.reserve(cells);
    Times& times = times_of_[context.times.size()];
    if (times != context.times) times = context.times;
    series.times = times;
    try {
      for (std::size_t i = 0; i < count; ++i) add_variate(series, group, context, first + i);
      for (std::size_t i = targets_; i < table_.columns.size(); ++i) {
        add_variate(series, group, context, i);
      }
      if (group.times.size() < 2) fail(series, "too_short", "one row does not tell the time step");
    } catch (const Error& error) {
      out_.errors.push_back({series.id, error});
      return;
    }
    out_.series.push_back(std::move(series));
  }

  /// Whether the values of the context are those of the group, as they lie there.
  [[nodiscard]] bool is_whole(const RowGroup& group, const Context& context) const {
    if (table_.columns.size() != 1 || context.rows.size() != group.values.size()) return false;
    if (group.values.capacity() > group.values.size() * 9 / 8) return false;  // room for more
    for (std::size_t i = 0; i < context.rows.size(); ++i) {
      if (context.rows[i] != i) return false;
    }
    return true;
  }

  /// Takes the values of the group where they are all that the context has.
  void add_variate(TimeSeries& series, RowGroup& group, const Context& context,
                   std::size_t column) const {
    const std::size_t width = table_.columns.size();
    const auto value_in = [&](std::size_t row) { return group.values[row * width + column]; };
    const std::size_t begin = series.values.size();
    if (is_whole(group, context)) {
      series.values = std::exchange(group.values, {});
    } else {
      for (const std::size_t row : context.rows) {
        series.values.push_back(row == Context::kNoRow ? std::nanf("") : value_in(row));
      }
    }
    for (std::size_t i = begin; i < series.values.size(); ++i) {
      series.mask.push_back(std::isnan(series.values[i]) ? 0 : 1);
    }
    series.variates.push_back(table_.columns[column]);
    const double offset = offset_at(group.value_offsets, column);
    if (offset != 0) series.value_offsets.resize(series.variates.size() - 1, 0.0);
    if (offset != 0 || !series.value_offsets.empty()) series.value_offsets.push_back(offset);
    const std::span<float> values = std::span(series.values).subspan(begin);
    const std::span<const std::uint8_t> mask = std::span(series.mask).subspan(begin);
    if (column < targets_) check_observed(series, mask);

    std::optional<Earlier> earlier;
    std::size_t row = mask[0] == 0 ? first_row(context) : 0;
    while (row-- > 0 && !earlier) {
      if (std::isnan(value_in(row))) continue;
      earlier = Earlier{value_in(row), context.begin - context.step_of(row)};
    }
    fill_missing(values, mask, options_.missing, earlier,
                 offset == 0 ? 0.0F : static_cast<float>(-offset),
                 options_.season != 0 ? options_.season : seasonal_steps(series.interval));
  }

  /// The first row of the group that the context has.
  static std::size_t first_row(const Context& context) {
    return *std::ranges::find_if(context.rows,
                                 [](std::size_t row) { return row != Context::kNoRow; });
  }

  void check_observed(const TimeSeries& series, std::span<const std::uint8_t> mask) const {
    const auto observed = static_cast<std::size_t>(std::ranges::count(mask, 1));
    const std::string of =
        series.variates.size() > 1 || options_.joint ? " of " + quote(series.variates.back()) : "";
    if (observed == 0) {
      fail(series, "no_observations",
           fmt::format("none of the last {} values{} is observed", mask.size(), of));
    }
    if (observed < options_.min_observations) {
      fail(series, "too_short",
           fmt::format("{} observed values{} in the last {} steps, at least {} are needed",
                       observed, of, mask.size(), options_.min_observations));
    }
    if (options_.missing != Missing::error || observed == mask.size()) return;
    const auto at = static_cast<std::size_t>(std::ranges::find(mask, 0) - mask.begin());
    fail(series, "missing_value",
         fmt::format("no value{} at {}", of, format_time(series.times[at], series.style)));
  }

  [[noreturn]] void fail(const TimeSeries& series, std::string_view code,
                         const std::string& message) const {
    throw Error(ExitStatus::bad_data, code, message,
                fmt::format("{}: series {}", table_.name, quote(series.id)));
  }

  Table table_;
  const CsvOptions& options_;
  std::size_t targets_ = 0;
  std::shared_ptr<const Sessions> calendar_;
  std::vector<std::int64_t> times_of_day_;  // of the group
  std::map<std::size_t, Times>
      times_of_;  // the last ones of a length: series of a table share them
  Spacing irregular_, sparse_;
  Dataset out_;
};

}  // namespace

void tell_apart(std::vector<TimeSeries>& series, const std::vector<std::string>& files) {
  std::unordered_map<std::string, std::string_view> first;  // the table of each id
  std::unordered_set<std::string> shared;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const auto [at, fresh] = first.emplace(series[i].id, files[i]);
    if (!fresh && at->second != files[i]) shared.insert(series[i].id);
  }
  std::unordered_map<std::string, std::string_view> file_of;  // of each stem
  std::unordered_set<std::string> same_stem;
  for (const std::string& file : files) {
    const auto [at, fresh] = file_of.emplace(stem_of(file), file);
    if (!fresh && at->second != file) same_stem.insert(at->first);
  }
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (!shared.contains(series[i].id)) continue;
    const std::string stem = stem_of(files[i]);
    if (stem != series[i].id) series[i].id.insert(0, stem + "/");
    if (!same_stem.contains(stem)) continue;
    if (const std::string folder = folder_of(files[i]); !folder.empty()) {
      series[i].id.insert(0, folder + "/");
    }
  }
}

namespace {

void check(const CsvOptions& options) {
  if (options.context > 0) return;
  throw Error(ExitStatus::usage, "invalid_context", "the context must be at least 1 step");
}

std::size_t max_text(const CsvOptions& options) {
  return options.max_text == 0 ? kMaxText : options.max_text;
}

/// Lets go of the text before series are formed of what was read.
Dataset take(Text text, const CsvOptions& options) {
  check(options);
  Table table = read_any_table(text, options, Take::targets, &text.bytes);
  text = {};
  return Assembler(std::move(table), options).assemble();
}

}  // namespace

Dataset read_csv(const Text& text, const CsvOptions& options) {
  check(options);
  return Assembler(read_any_table(text, options, Take::targets), options).assemble();
}

Dataset read_csv(std::istream& in, std::string_view name, const CsvOptions& options) {
  return take(read_text(in, name, max_text(options)), options);
}

Dataset read_csv(const std::string& path, const CsvOptions& options) {
  return take(read_text(path, max_text(options)), options);
}

}  // namespace toto::data
