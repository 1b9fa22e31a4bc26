// SPDX-License-Identifier: Apache-2.0
#include "data/value_offset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/json.h"
#include "data/rows.h"
#include "toto/tools/data.hpp"

namespace toto::data {
namespace {

constexpr std::size_t kMost = 1024;  // values that an offset is near

/// The last values of a column in time.
std::vector<float> last_values(const RowGroup& group, std::size_t column, std::size_t width) {
  std::vector<float> out;
  const std::size_t rows = group.times.size();
  const bool newest_first = group.times.front() > group.times.back();
  for (std::size_t i = 0; i < rows && out.size() < kMost; ++i) {
    const std::size_t row = newest_first ? i : rows - 1 - i;
    const float value = group.values[row * width + column];
    if (!std::isnan(value)) out.push_back(value);
  }
  return out;
}

double median_of(std::vector<float> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// What offsets are multiples of: a power of two of 8 to 16 usual changes.
double unit_of(const Rounding& rounding) {
  constexpr int kMoves = 4;
  return std::ldexp(1.0, std::ilogb(rounding.move()) + kMoves);
}

double multiple_near(double value, double unit) { return std::nearbyint(value / unit) * unit; }

/// What a column whose last values are `last` is to be a difference from; 0: it stays as it is.
double first_offset(const Rounding& rounding, std::vector<float> last) {
  constexpr double kWidest = std::numeric_limits<float>::max() / 4;  // of differences
  if (!rounding.loses_digits() || rounding.range() > kWidest) return 0;
  const double offset = multiple_near(median_of(std::move(last)), unit_of(rounding));
  return std::isfinite(offset) ? offset : 0;
}

/// How far an offset is to move whose last differences are `last`; 0: it stays.
double move_of(const Rounding& rounding, std::vector<float> last) {
  constexpr double kFar = 8;  // units
  const double unit = unit_of(rounding);
  const double middle = median_of(std::move(last));
  return std::abs(middle) > kFar * unit ? multiple_near(middle, unit) : 0;
}

std::string name_of(const Table& table, const RowGroup& group, std::size_t column) {
  return quote(group.id.empty() ? table.columns[column] : group.id);
}

std::string describe(const Table& table, const RowGroup& group, std::size_t column,
                     const Rounding& rounding) {
  return fmt::format(
      "{}: {} varies by {:.6g} around {}, where float32 tells steps of {:.3g} "
      "apart",
      table.name, name_of(table, group, column), rounding.range(), rounding.level(),
      rounding.step());
}

}  // namespace

double with_offset(double offset, float value) {
  if (offset == 0 || !std::isfinite(value)) return double{value};
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  double exact = 0.0;
  std::from_chars(digits.data(), end, exact);
  return offset + exact;
}

std::vector<double> plus_offset(std::span<const float> values, double offset) {
  std::vector<double> sums(values.begin(), values.end());
  if (offset == 0) return sums;  // -0 stays
  for (double& sum : sums) sum += offset;
  return sums;
}

float moved(float value, double from, double to) {
  return from == to ? value : static_cast<float>(double{value} + (from - to));
}

double keep_digits(std::span<const double> values, std::span<const std::uint8_t> mask,
                   std::span<float> out) {
  const auto observed = [&](std::size_t i) {
    return (mask.empty() || mask[i] != 0) && std::isfinite(out[i]);
  };
  const auto last = [&] {
    std::vector<float> found;
    for (std::size_t i = out.size(); i-- > 0 && found.size() < kMost;) {
      if (observed(i)) found.push_back(out[i]);
    }
    return found;
  };
  Rounding rounding;
  for (std::size_t i = 0; i < values.size(); ++i) {
    out[i] = static_cast<float>(values[i]);
    if (observed(i)) rounding.add({NumberKind::value, out[i], values[i]});
  }
  double offset = 0;
  if (!rounding.loses_digits()) return offset;
  double by = first_offset(rounding, last());
  while (by != 0) {
    offset += by;
    for (std::size_t i = 0; i < values.size(); ++i) out[i] = static_cast<float>(values[i] - offset);
    by = move_of(rounding, last());
  }
  return offset;
}

bool choose_offsets(Table& table, std::span<const Rounding> rounding, std::size_t first) {
  const std::size_t width = table.columns.size();
  bool any = false;
  for (std::size_t i = 0; i < rounding.size(); ++i) {
    const std::size_t column = i % width;
    if (column < first || !rounding[i].loses_digits()) continue;
    RowGroup& group = table.groups[i / width];
    const double offset = first_offset(rounding[i], last_values(group, column, width));
    if (offset == 0) continue;
    group.value_offsets.resize(width, 0.0);
    group.value_offsets[column] = offset;
    any = true;
  }
  return any;
}

bool centre_offsets(Table& table, std::span<const Rounding> rounding) {
  const std::size_t width = table.columns.size();
  bool moved = false;
  for (std::size_t i = 0; i < rounding.size(); ++i) {
    RowGroup& group = table.groups[i / width];
    if (offset_at(group.value_offsets, i % width) == 0) continue;
    const double by = move_of(rounding[i], last_values(group, i % width, width));
    if (by == 0) continue;
    group.value_offsets[i % width] += by;
    moved = true;
  }
  return moved;
}

void tell_offsets(Table& table, std::span<const Rounding> rounding) {
  const std::size_t width = table.columns.size();
  std::string told;
  std::size_t count = 0;
  for (std::size_t i = 0; i < rounding.size(); ++i) {
    const RowGroup& group = table.groups[i / width];
    const double offset = offset_at(group.value_offsets, i % width);
    if (offset == 0 || count++ > 0) continue;
    told = fmt::format(
        "{}: kept as differences from {}, which is added to results "
        "(--value-offset none: rounded)",
        describe(table, group, i % width, rounding[i]), offset);
  }
  if (count > 1) told += fmt::format(" (and {} more)", count - 1);
  table.warnings.push_back(std::move(told));
}

void tell_lost_digits(Table& table, std::span<const Rounding> rounding, std::size_t first) {
  const std::size_t width = table.columns.size();
  for (std::size_t i = 0; i < rounding.size(); ++i) {
    if (i % width < first || !rounding[i].blurs()) continue;
    table.warnings.push_back(
        fmt::format("{}; leave out --value-offset none, or subtract a constant from the values",
                    describe(table, table.groups[i / width], i % width, rounding[i])));
    return;
  }
}

namespace {

/// Reads the rows once more, in the order of the file: calls visit(group, column, value, number)
/// for numbers that the table has as well.
template <typename Wanted, typename Visit>
void read_again(RowsOfTable& rows, Table& table, const Wanted& wanted, const Visit& visit) {
  std::unordered_map<std::string_view, std::size_t> by_id;
  for (std::size_t g = 0; g < table.groups.size(); ++g) by_id.emplace(table.groups[g].id, g);
  std::vector<std::size_t> row_of(table.groups.size(), 0);
  std::string buffer;
  while (rows.csv.next()) {
    if (!is_row(rows.csv, rows.named, rows.width)) continue;
    const std::size_t g =
        rows.columns.ids.empty() ? 0 : by_id.at(id_text(rows.csv, rows.columns, buffer));
    const std::size_t row = row_of[g]++;
    for (std::size_t i = 0; i < rows.numbers.size(); ++i) {
      if (!wanted(g, i)) continue;
      float& value = table.groups[g].values[row * rows.numbers.size() + i];
      if (std::isnan(value)) continue;  // a code for missing
      const Number number = rows.parsers[i].read(rows.csv[rows.numbers[i]]);
      if (number.kind == NumberKind::value) visit(g, i, value, number);
    }
  }
}

}  // namespace

void read_differences(RowsOfTable rows, Table& table) {
  const auto offset = [&](std::size_t g, std::size_t i) {
    return offset_at(table.groups[g].value_offsets, i);
  };
  read_again(
      rows, table, [&](std::size_t g, std::size_t i) { return offset(g, i) != 0; },
      [&](std::size_t g, std::size_t i, float& value, const Number& number) {
        value = static_cast<float>(number.exact - offset(g, i));
      });
}

void read_rounding(RowsOfTable rows, Table& table, std::span<Rounding> rounding) {
  std::ranges::fill(rounding, Rounding());
  read_again(
      rows, table, [](std::size_t, std::size_t) { return true; },
      [&](std::size_t g, std::size_t i, float&, const Number& number) {
        rounding[g * rows.numbers.size() + i].add(number);
      });
}

}  // namespace toto::data
