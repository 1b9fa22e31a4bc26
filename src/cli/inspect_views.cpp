// SPDX-License-Identifier: Apache-2.0
#include "cli/inspect_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/json_text.h"
#include "core/printable.h"
#include "data/value_offset.h"

namespace toto::cli {
namespace {

using nlohmann::ordered_json;

std::string shown(std::string_view text) { return to_utf8(printable(text)); }

std::string plural(std::size_t count, std::string_view word) {
  return fmt::format("{} {}{}", grouped(static_cast<double>(count), 0), word,
                     count == 1 || word == "series" ? "" : "s");
}

std::string_view delimiter_name(char delimiter) {
  switch (delimiter) {
    case ';':
      return "semicolons";
    case '\t':
      return "tabs";
    case '|':
      return "bars";
    default:
      return "commas";
  }
}

std::string_view layout_name(data::Layout layout) {
  switch (layout) {
    case data::Layout::long_format:
      return "long";
    case data::Layout::bars:
      return "bars";
    case data::Layout::rows:
      return "rows";
    default:
      return "wide";
  }
}

/// Counts of a series' targets.
struct Values {
  std::size_t missing = 0;
  std::size_t observed = 0;
  std::size_t lowest = 0, highest = 0;  // where they are
};

/// The double of fewest digits that is this value: 98.4, not 98.4000015.
double value_at(const data::TimeSeries& series, std::size_t i) {
  const double offset = series.offset_of(i / series.steps);
  const float value = series.values[i];
  return offset == 0 ? std::stod(fmt::format("{}", value)) : data::with_offset(offset, value);
}

std::string text_at(const data::TimeSeries& series, std::size_t i) {
  if (series.offset_of(i / series.steps) == 0) return fmt::format("{}", series.values[i]);
  return fmt::format("{}", value_at(series, i));
}

Values values_of(const data::TimeSeries& series) {
  const auto at = [&](std::size_t i) {
    return series.offset_of(i / series.steps) + static_cast<double>(series.values[i]);
  };
  Values out;
  for (std::size_t i = 0; i < series.targets() * series.steps; ++i) {
    if (series.mask[i] == 0) {
      ++out.missing;
      continue;
    }
    const double value = at(i);
    if (out.observed == 0 || value < at(out.lowest)) out.lowest = i;
    if (out.observed == 0 || value > at(out.highest)) out.highest = i;
    ++out.observed;
  }
  return out;
}

std::string names_with(const data::Reading& reading, std::string_view role) {
  constexpr std::size_t kShown = 8;
  std::string out;
  std::size_t count = 0;
  for (const data::Reading::Column& column : reading.columns) {
    if (column.role != role || column.name.empty()) continue;
    if (++count > kShown) continue;
    out += (out.empty() ? "" : ", ") + shown(column.name);
    if (!column.note.empty()) out += " (" + shown(column.note) + ")";
  }
  if (count > kShown) out += fmt::format(" and {} more", count - kShown);
  return out;
}

void line(std::string& out, std::string_view label, const std::string& text) {
  if (!text.empty()) out += fmt::format("  {:<11}{}\n", label, text);
}

std::string format_line(const data::Reading& reading) {
  std::string out = reading.format;
  if (!reading.compression.empty()) out += " in " + reading.compression;
  if (reading.format == "CSV") {
    out += fmt::format(", {}, decimal {}", delimiter_name(reading.delimiter),
                       reading.decimal == ',' ? "comma" : "point");
    out += reading.has_header ? fmt::format(", header in line {}", reading.header_line)
                              : std::string(", no header");
  }
  if (reading.skipped_lines > 0) {
    out += ", " + plural(reading.skipped_lines, "line") + " before the table left out";
  }
  return out;
}

/// Of a table whose columns are steps.
std::string steps_line(const data::Reading& reading) {
  std::string first, last;
  std::size_t count = 0;
  for (const data::Reading::Column& column : reading.columns) {
    if (column.role != "step") continue;
    if (count++ == 0) first = shown(column.name);
    last = shown(column.name);
  }
  return count == 0 ? "" : fmt::format("{}, {} to {}", plural(count, "column"), first, last);
}

std::string time_line(const data::Reading& reading) {
  if (!steps_line(reading).empty()) {
    return reading.time_format.empty() ? "none: the steps are numbered"
                                       : "names of columns, " + reading.time_format;
  }
  std::string columns = names_with(reading, "time");
  for (const std::string_view role : {"time of day", "date"}) {
    const std::string more = names_with(reading, role);
    if (!more.empty()) columns += (columns.empty() ? "" : " + ") + more;
  }
  if (columns.empty()) return "none: the rows are numbered from 0";
  std::string out = fmt::format("{}, {}", columns, reading.time_format);
  if (!reading.timezone.empty()) out += ", in " + reading.timezone;
  return out;
}

std::string rows_line(const data::Reading& reading) {
  std::string out = plural(reading.rows, "row") + ", " + reading.order;
  if (reading.order != "oldest first") out += ": put in order";
  if (reading.repeated > 0) out += ", " + plural(reading.repeated, "repeated row") + " dropped";
  if (reading.merged > 0) out += ", " + plural(reading.merged, "row") + " of a time twice settled";
  if (reading.skipped_rows > 0) {
    out += ", " + plural(reading.skipped_rows, "empty row or comment") + " left out";
  }
  return out;
}

std::string series_line(const data::TimeSeries& series) {
  const Values values = values_of(series);
  std::string out = fmt::format(
      "    {}: {} from {} to {}, {}", shown(series.id), plural(series.steps, "step"),
      data::format_time(series.times.front(), series.style),
      data::format_time(series.times.back(), series.style), data::describe(series.interval));
  if (values.observed > 0) {
    out +=
        fmt::format(", {} to {}", text_at(series, values.lowest), text_at(series, values.highest));
  }
  if (values.missing > 0) out += fmt::format(", {} missing", values.missing);
  if (series.repeated_rows > 0) out += fmt::format(", {} repeated", series.repeated_rows);
  if (series.cut > 0) {
    out +=
        fmt::format(", {} earlier beyond the context", grouped(static_cast<double>(series.cut), 0));
  }
  return out + "\n";
}

ordered_json series_as_json(const data::TimeSeries& series) {
  const Values values = values_of(series);
  ordered_json out = {{"id", series.id},
                      {"variates", series.variates},
                      {"first", data::format_time(series.times.front(), series.style)},
                      {"last", data::format_time(series.times.back(), series.style)},
                      {"next", nullptr},
                      {"interval", data::describe(series.interval)},
                      {"regular", series.interval.regular},
                      {"steps", series.steps},
                      {"steps_before_context", series.cut},
                      {"missing", values.missing},
                      {"repeated_rows", series.repeated_rows},
                      {"first_value", value_at(series, 0)},
                      {"last_value", value_at(series, series.steps - 1)},
                      {"lowest", nullptr},
                      {"highest", nullptr}};
  if (!series.value_offsets.empty()) out["value_offset"] = series.value_offsets;
  try {
    out["next"] = data::format_time(data::future_times(series, 1).front(), series.style);
  } catch (const Error&) {
    out["next"] = nullptr;  // beyond the last date that can be written
  }
  if (values.observed > 0) {
    out["lowest"] = value_at(series, values.lowest);
    out["highest"] = value_at(series, values.highest);
  }
  return out;
}

ordered_json error_as_json(const Error& error) {
  return {{"code", error.code()},
          {"message", error.message()},
          {"where", error.where()},
          {"remedy", error.remedy()}};
}

ordered_json reading_as_json(const data::Reading& reading) {
  ordered_json columns = ordered_json::array();
  for (const data::Reading::Column& column : reading.columns) {
    columns.push_back({{"name", column.name}, {"role", column.role}, {"note", column.note}});
  }
  return {{"format", reading.format},
          {"compression", reading.compression},
          {"delimiter", std::string(1, reading.delimiter)},
          {"decimal", std::string(1, reading.decimal)},
          {"has_header", reading.has_header},
          {"header_line", reading.header_line},
          {"skipped_lines", reading.skipped_lines},
          {"skipped_rows", reading.skipped_rows},
          {"time_format", reading.time_format},
          {"timezone", reading.timezone},
          {"rows", reading.rows},
          {"repeated_rows", reading.repeated},
          {"settled_rows", reading.merged},
          {"order", reading.order},
          {"columns", std::move(columns)}};
}

}  // namespace

std::string inspected_as_text(const Inspected& file, std::size_t series) {
  std::string out = shown(file.path) + "\n";
  if (file.error) {
    line(out, "refused", shown(file.error->code() + ": " + file.error->message()));
    return out;
  }
  const data::Reading& reading = file.data.reading;
  line(out, "format", format_line(reading));
  line(out, "layout", std::string(layout_name(file.data.layout)));
  line(out, "time", time_line(reading));
  line(out, "steps", steps_line(reading));
  line(out, "id", names_with(reading, "id"));
  line(out, "values", names_with(reading, "value"));
  line(out, "left out", names_with(reading, "left out"));
  line(out, "not used", names_with(reading, "not used"));
  line(out, "rows", rows_line(reading));
  const std::size_t count = file.data.series.size();
  line(out, "series",
       plural(count, "series") + (file.data.errors.empty() ? ""
                                                           : fmt::format(", {} cannot be forecast",
                                                                         file.data.errors.size())));
  for (std::size_t i = 0; i < std::min(count, series); ++i) {
    out += series_line(file.data.series[i]);
  }
  if (count > series) out += fmt::format("    and {} more (--series)\n", count - series);
  for (const std::string& warning : file.data.warnings) line(out, "note", shown(warning));
  return out;
}

std::string inspected_as_json(std::span<const Inspected> files) {
  ordered_json all = ordered_json::array();
  for (const Inspected& file : files) {
    ordered_json one = {{"file", file.path}};
    if (file.error) {
      one["error"] = error_as_json(*file.error);
      all.push_back(std::move(one));
      continue;
    }
    one.update(reading_as_json(file.data.reading));
    one["layout"] = layout_name(file.data.layout);
    one["series"] = ordered_json::array();
    for (const data::TimeSeries& series : file.data.series) {
      one["series"].push_back(series_as_json(series));
    }
    one["errors"] = ordered_json::array();
    for (const data::SeriesError& failed : file.data.errors) {
      one["errors"].push_back(error_as_json(failed.error));
    }
    one["notes"] = file.data.warnings;
    all.push_back(std::move(one));
  }
  return json_text({{"files", std::move(all)}});
}

}  // namespace toto::cli
