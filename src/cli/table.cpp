// SPDX-License-Identifier: Apache-2.0
// Lays out the forecast table: numbers of a series share their decimals and end in one column.
#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/printable.h"

namespace toto::cli {
namespace {

constexpr std::size_t kMaxSeries = 8;
constexpr std::size_t kRowsAlone = 12;  // steps shown of a single series
constexpr std::size_t kRowsOfMany = 5;  // ... of each of several
constexpr std::size_t kLastRows = 2;    // ... of which at the end
constexpr std::size_t kSparkHistory = 30;
constexpr std::size_t kSparkForecast = 15;
constexpr std::size_t kGap = 3;  // columns between columns

std::size_t columns_of(char32_t c) {
  if (c >= 0x0300 && c <= 0x036F) return 0;
  const bool wide = (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) ||
                    (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
                    (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
                    (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1FAFF) ||
                    (c >= 0x20000 && c <= 0x3FFFD);
  return wide ? 2 : 1;
}

std::size_t columns_of(std::u32string_view text) {
  std::size_t columns = 0;
  for (const char32_t c : text) columns += columns_of(c);
  return columns;
}

// `text` in at most `columns`, cut with an ellipsis.
std::u32string fit(std::u32string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::u32string(text);
  std::u32string kept;
  std::size_t used = 1;
  for (const char32_t c : text) {
    used += columns_of(c);
    if (used > columns) break;
    kept.push_back(c);
  }
  kept.push_back(0x2026);
  return kept;
}

// How the numbers of one series are written: five significant digits of the largest in the middle,
// for the limits may lie far out; and two of the width of the interval, where that takes more.
class NumberFormat {
 public:
  explicit NumberFormat(const TableSeries& series) {
    double largest = 0.0;
    for (const double value : series.centre) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
    scientific_ = largest >= 1e15 || (largest > 0 && largest < 1e-4);
    if (largest > 0) decimals_ = std::clamp(4 - static_cast<int>(std::log10(largest)), 0, 8);
    double narrowest = HUGE_VAL;
    for (std::size_t i = 0; i < std::min(series.lower.size(), series.upper.size()); ++i) {
      const double width = series.upper[i] - series.lower[i];
      if (width > 0) narrowest = std::min(narrowest, width);
    }
    // Five digits of 10,000,000.3 do not tell its limits apart.
    if (!(narrowest < largest * kNarrow)) return;
    decimals_ = std::clamp(1 - static_cast<int>(std::floor(std::log10(narrowest))), decimals_, 8);
  }
  [[nodiscard]] std::string operator()(double value) const {
    if (!std::isfinite(value)) return fmt::format("{}", value);
    return scientific_ ? fmt::format("{:.4e}", value) : grouped(value, decimals_);
  }

 private:
  static constexpr double kNarrow = 1e-4;
  bool scientific_ = false;
  int decimals_ = 0;
};

// Means over `cells` stretches of equal length; gaps are left out of them.
std::vector<double> condensed(std::span<const double> values, std::size_t cells) {
  cells = std::min(cells, values.size());
  std::vector<double> means(cells, std::nan(""));
  for (std::size_t cell = 0; cell < cells; ++cell) {
    const std::size_t begin = cell * values.size() / cells;
    const std::size_t end = (cell + 1) * values.size() / cells;
    double sum = 0.0;
    double count = 0.0;
    for (std::size_t i = begin; i < end; ++i) {
      if (!std::isfinite(values[i])) continue;
      sum += values[i];
      count += 1.0;
    }
    if (count > 0) means[cell] = sum / count;
  }
  return means;
}

std::u32string blocks(std::span<const double> values, double low, double high) {
  std::u32string text;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      text.push_back(' ');
      continue;
    }
    const double share = high > low ? (value - low) / (high - low) : 0.5;
    text.push_back(0x2581 + static_cast<char32_t>(std::clamp(std::floor(share * 8), 0.0, 7.0)));
  }
  return text;
}

// Recent history, an arrow, and the forecast; a step of the one is as wide as a step of the other.
std::u32string sparkline(const TableSeries& series) {
  const std::size_t horizon = series.centre.size();
  const std::vector<double> after = condensed(series.centre, kSparkForecast);
  if (after.empty() || series.history.empty()) return {};
  const std::size_t shown = std::min(series.history.size(), kSparkHistory * horizon / after.size());
  const std::span<const double> recent = std::span(series.history).last(shown);
  const std::vector<double> before = condensed(recent, kSparkHistory);
  double low = HUGE_VAL;
  double high = -HUGE_VAL;
  for (const auto* values : {&before, &after}) {
    for (const double value : *values) {
      if (!std::isfinite(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  // Noise far below the values is no picture: the height is at least a thousandth of them.
  constexpr double kLeast = 1e-3;
  const double middle = low + (high - low) / 2;
  const double height = std::max(high - low, kLeast * std::max(std::abs(low), std::abs(high)));
  low = middle - height / 2;
  high = middle + height / 2;
  return blocks(before, low, high) + U" \u2192 " + blocks(after, low, high);
}

// The first rows and the last ones of `count`.
std::vector<std::size_t> chosen_steps(std::size_t count, std::size_t rows) {
  std::vector<std::size_t> steps;
  for (std::size_t i = 0; i < count; ++i) {
    if (count <= rows || i < rows - kLastRows || i >= count - kLastRows) steps.push_back(i);
  }
  return steps;
}

std::string heading(const TableSeries& series, std::size_t width) {
  const std::u32string name = printable(series.name);
  const std::u32string spark = sparkline(series);
  const std::size_t spark_columns = columns_of(spark) + kGap;
  if (spark.empty() || columns_of(name) + spark_columns > width) {
    return to_utf8(fit(name, width)) + '\n';
  }
  return to_utf8(name) + std::string(kGap, ' ') + to_utf8(spark) + '\n';
}

/// One column of an interval: its limits as they are written.
struct Limits {
  std::string name;
  std::vector<std::string> lower, upper;
  std::size_t lower_width = 0, upper_width = 0;

  Limits(std::string heading, std::span<const double> low, std::span<const double> high,
         std::span<const std::size_t> steps, const NumberFormat& number)
      : name(std::move(heading)) {
    for (const std::size_t i : steps) {
      lower.push_back(number(low[i]));
      upper.push_back(number(high[i]));
      lower_width = std::max(lower_width, lower.back().size());
      upper_width = std::max(upper_width, upper.back().size());
    }
  }
  [[nodiscard]] std::size_t width() const {
    return std::max(lower_width + upper_width + 3, columns_of(printable(name)));
  }
  /// Padded to the width where another column follows.
  [[nodiscard]] std::string cell(std::size_t row, bool last) const {
    std::string text =
        fmt::format("{:>{}} \u2026 {:>{}}", lower[row], lower_width, upper[row], upper_width);
    if (!last) text.append(width() - (lower_width + upper_width + 3), ' ');
    return text;
  }
};

/// The intervals that fit beside what takes `used` columns.
std::vector<Limits> intervals_of(const TableSeries& series, std::span<const std::size_t> steps,
                                 const NumberFormat& number, const TableLook& look,
                                 std::size_t used) {
  std::vector<Limits> shown;
  const auto add = [&](const std::string& name, std::span<const double> low,
                       std::span<const double> high) {
    const Limits one(name, low, high, steps, number);
    if (used + kGap + one.width() > look.width) return false;
    used += kGap + one.width();
    shown.push_back(one);
    return true;
  };
  if (series.lower.empty() || !add(look.interval_name, series.lower, series.upper)) return shown;
  for (const TableInterval& one : series.more) {
    if (!add(one.name, one.lower, one.upper)) break;
  }
  return shown;
}

std::string block(const TableSeries& series, std::size_t rows, const TableLook& look) {
  const NumberFormat number(series);
  std::size_t time_width = 4;
  std::size_t centre_width = look.centre_name.size();
  const std::vector<std::size_t> steps = chosen_steps(series.centre.size(), rows);
  for (const std::size_t i : steps) {
    time_width = std::max(time_width, series.times[i].size());
    centre_width = std::max(centre_width, number(series.centre[i]).size());
  }
  const std::vector<Limits> intervals =
      intervals_of(series, steps, number, look, 2 + time_width + kGap + centre_width);
  const std::string gap(kGap, ' ');

  std::string text = heading(series, look.width);
  text += fmt::format("  {:<{}}{}{:>{}}", "time", time_width, gap, look.centre_name, centre_width);
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    text += gap + intervals[i].name;
    if (i + 1 == intervals.size()) break;
    text.append(intervals[i].width() - columns_of(printable(intervals[i].name)), ' ');
  }
  text += '\n';
  for (std::size_t k = 0; k < steps.size(); ++k) {
    if (k > 0 && steps[k] != steps[k - 1] + 1) {
      text += fmt::format("  \u2026 {} more\n", steps[k] - steps[k - 1] - 1);
    }
    text += fmt::format("  {:<{}}{}{:>{}}", series.times[steps[k]], time_width, gap,
                        number(series.centre[steps[k]]), centre_width);
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      text += gap + intervals[i].cell(k, i + 1 == intervals.size());
    }
    text += '\n';
  }
  return text;
}

}  // namespace

std::string forecast_table(std::span<const TableSeries> series, const TableLook& look) {
  const std::size_t shown = std::min(series.size(), kMaxSeries);
  const std::size_t rows = series.size() == 1 ? kRowsAlone : kRowsOfMany;
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += '\n';
    text += block(series[i], rows, look);
  }
  if (shown < series.size()) {
    text += fmt::format("\nand {} more series\n", series.size() - shown);
  }
  return text;
}

}  // namespace toto::cli
