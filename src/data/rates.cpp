// SPDX-License-Identifier: Apache-2.0
#include "data/rates.h"

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace toto::data {

std::size_t to_rates(RowGroup& group, std::size_t targets, std::size_t width) {
  const std::size_t rows = group.times.size();
  std::size_t resets = 0;
  std::vector<float> rates(group.values);
  const auto exact = [&](std::size_t at) {
    const double high = group.values[at];
    return group.low.empty() ? high : high + double{group.low[at]};
  };
  for (std::size_t column = 0; column < targets; ++column) {
    std::optional<std::size_t> before;
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t at = row * width + column;
      rates[at] = std::numeric_limits<float>::quiet_NaN();
      if (std::isnan(group.values[at])) continue;
      if (before) {
        const double now = exact(at), then = exact(*before * width + column);
        const double seconds =
            static_cast<double>(group.times[row] - group.times[*before]) / 1000.0;
        resets += now < then ? 1 : 0;
        if (seconds > 0) rates[at] = static_cast<float>((now < then ? now : now - then) / seconds);
      }
      before = row;
    }
  }
  group.low.clear();
  if (rows < 2) return resets;
  group.values.assign(rates.begin() + static_cast<std::ptrdiff_t>(width), rates.end());
  group.times.edit().erase(group.times.edit().begin());
  if (!group.offsets.empty()) group.offsets.erase(group.offsets.begin());
  return resets;
}

bool looks_like_counter(const RowGroup& group, std::size_t column, std::size_t width,
                        std::string_view name) {
  constexpr std::size_t kRows = 16, kOneFallIn = 10;
  if (name.find("_total") == std::string_view::npos || group.times.size() < kRows) return false;
  std::size_t rises = 0, falls = 0;
  std::optional<float> before;
  for (std::size_t row = 0; row < group.times.size(); ++row) {
    const float value = group.values[row * width + column];
    if (std::isnan(value)) continue;
    rises += before && value > *before ? 1 : 0;
    falls += before && value < *before ? 1 : 0;
    before = value;
  }
  return rises > 0 && falls * kOneFallIn <= rises;
}

}  // namespace toto::data
