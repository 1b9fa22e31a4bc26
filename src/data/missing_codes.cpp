// SPDX-License-Identifier: Apache-2.0
#include "data/missing_codes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/json.h"

namespace toto::data {
namespace {

constexpr auto kBelow = std::to_array<float>(
    {-999.0F, -999.9F, -999.99F, -9999.0F, -9999.9F, -9999.99F, -99999.0F, -99999.9F});
constexpr auto kAbove = std::to_array<float>({99.99F, 999.9F, 999.99F, 9999.9F, 9999.99F});
constexpr float kFar = 0.1F;  // of the code, at most, is what other values may be

/// The values of a column in all series.
template <typename Each>
void for_values(Table& table, std::size_t column, const Each& each) {
  const std::size_t width = table.columns.size();
  for (RowGroup& group : table.groups) {
    for (std::size_t i = column; i < group.values.size(); i += width) each(group.values[i]);
  }
}

struct Extremes {
  float lowest = std::numeric_limits<float>::infinity(), second_lowest = lowest;
  float highest = -lowest, second_highest = -lowest;
  std::size_t at_lowest = 0, at_highest = 0;

  void add(float value) {
    if (std::isnan(value)) return;
    if (value < lowest) {
      second_lowest = lowest;
      lowest = value;
      at_lowest = 0;
    } else if (value > lowest) {
      second_lowest = std::min(second_lowest, value);
    }
    if (value > highest) {
      second_highest = highest;
      highest = value;
      at_highest = 0;
    } else if (value < highest) {
      second_highest = std::max(second_highest, value);
    }
    at_lowest += value == lowest ? 1 : 0;
    at_highest += value == highest ? 1 : 0;
  }
};

template <typename Codes>
bool is_one_of(const Codes& codes, float value) {
  return std::ranges::find(codes, value) != codes.end();
}

}  // namespace

bool drop_missing_codes(Table& table) {
  bool dropped = false;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    Extremes found;
    for_values(table, column, [&](float value) { found.add(value); });
    const auto note = [&](float code, std::size_t count, const char* what) {
      table.warnings.push_back(fmt::format("{}: {} of column {} {} ({} times)", table.name, code,
                                           quote(table.columns[column]), what, count));
    };
    const float low = found.lowest;
    const bool others = std::isfinite(found.second_lowest);
    constexpr float kSure = -9000.0F;  // smaller ones only if they come back
    if (others && is_one_of(kBelow, low) && found.second_lowest > kFar * low &&
        (low < kSure || found.at_lowest > 1)) {
      note(low, found.at_lowest, "is taken for missing, unless --missing-values says none");
      for_values(table, column, [&](float& value) {
        if (value == low) value = std::numeric_limits<float>::quiet_NaN();
      });
      dropped = true;
    }
    const float high = found.highest;
    if (others && found.at_highest > 1 && is_one_of(kAbove, high) &&
        found.second_highest < kFar * high && high > found.second_highest) {
      note(high, found.at_highest,
           "lies far above the others; --missing-values names it if it stands for missing");
    }
  }
  return dropped;
}

}  // namespace toto::data
