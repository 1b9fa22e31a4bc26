// SPDX-License-Identifier: Apache-2.0
// From the rows of a table to series: ids, variates, missing values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/json.h"
#include "core/utf8.h"
#include "data/context.h"
#include "data/fill.h"
#include "data/table.h"
#include "toto/tools/data.hpp"

namespace toto::data {
namespace {

std::string stem_of(std::string_view name) {
  if (name == "<stdin>") return "stdin";
  name = name.substr(name.rfind('/') + 1);
  for (const std::string_view packing : {".gz", ".zst"}) {
    if (name.ends_with(packing) && name.find('.') < name.rfind('.')) {
      name.remove_suffix(packing.size());
    }
  }
  name = name.substr(0, name.rfind('.'));
  const bool usable = !name.empty() && first_invalid_utf8(name) == std::string_view::npos;
  return usable ? std::string(name) : "series";
}

class Assembler {
 public:
  Assembler(Table table, const CsvOptions& options) : table_(std::move(table)), options_(options) {
    out_.layout = table_.layout;
    out_.warnings = std::move(table_.warnings);
    out_.reading = std::move(table_.reading);
    targets_ = table_.columns.size() - table_.covariates;
  }

  Dataset assemble() {
    for (const RowGroup& group : table_.groups) {
      const Context context = make_context(group, table_.style, options_.context);
      note_spacing(group, context);
      if (options_.joint) {
        add(group, context, 0, targets_);
      } else {
        for (std::size_t column = 0; column < targets_; ++column) add(group, context, column, 1);
      }
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
    if (group.times.size() < 2 || context.fill_gaps ||
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

  void add(const RowGroup& group, const Context& context, std::size_t first, std::size_t count) {
    TimeSeries series;
    series.id = id_of(group, first);
    series.group = group.id;
    series.covariates = table_.covariates;
    series.style = context.style;
    series.interval = context.interval;
    series.steps = context.rows.size();
    series.cut = context.begin;
    series.repeated_rows = group.repeated;
    series.values.reserve((count + table_.covariates) * series.steps);
    series.mask.reserve(series.values.capacity());
    series.times = context.times;
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

  void add_variate(TimeSeries& series, const RowGroup& group, const Context& context,
                   std::size_t column) const {
    const std::size_t width = table_.columns.size();
    const auto value_in = [&](std::size_t row) { return group.values[row * width + column]; };
    const std::size_t begin = series.values.size();
    for (const std::size_t row : context.rows) {
      const float value = row == Context::kNoRow ? std::nanf("") : value_in(row);
      series.values.push_back(value);
      series.mask.push_back(std::isnan(value) ? 0 : 1);
    }
    series.variates.push_back(table_.columns[column]);
    const std::span<float> values = std::span(series.values).subspan(begin);
    const std::span<const std::uint8_t> mask = std::span(series.mask).subspan(begin);
    if (column < targets_) check_observed(series, mask);

    std::optional<Earlier> earlier;
    std::size_t row = mask[0] == 0 ? first_row(context) : 0;
    while (row-- > 0 && !earlier) {
      if (std::isnan(value_in(row))) continue;
      earlier = Earlier{value_in(row), context.begin - context.step_of(row)};
    }
    fill_missing(values, mask, options_.missing, earlier);
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
  for (std::size_t i = 0; i < series.size(); ++i) {
    const std::string stem = stem_of(files[i]);
    if (shared.contains(series[i].id) && stem != series[i].id) series[i].id.insert(0, stem + "/");
  }
}

Dataset read_csv(const Text& text, const CsvOptions& options) {
  if (options.context == 0) {
    throw Error(ExitStatus::usage, "invalid_context", "the context must be at least 1 step");
  }
  return Assembler(read_any_table(text, options, Take::targets), options).assemble();
}

Dataset read_csv(std::istream& in, std::string_view name, const CsvOptions& options) {
  return read_csv(read_text(in, name), options);
}

Dataset read_csv(const std::string& path, const CsvOptions& options) {
  return read_csv(read_text(path), options);
}

}  // namespace toto::data
