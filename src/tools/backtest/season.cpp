// SPDX-License-Identifier: Apache-2.0
// How many bars a season has: from the interval, or from the days of trading.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "data/calendar.h"
#include "toto/tools/backtest.hpp"

namespace toto::backtest {

std::size_t season_of(const data::Interval& interval) {
  constexpr std::size_t kMax = 1440;
  return std::min(kMax, data::seasonal_steps(interval));
}

namespace {

/// The median number of bars of a day of trading; the first and the last day may be cut off. 0:
/// there are not enough days to tell.
std::size_t bars_per_day(const Symbol& symbol) {
  const std::int64_t zone = symbol.style.zone_offset_minutes * std::int64_t{60'000};
  std::vector<std::size_t> counts;
  std::int64_t day = 0;
  for (const std::int64_t time : symbol.times) {
    const std::int64_t own = data::floor_div(time + zone, data::kDayMs);
    if (counts.empty() || own != day) counts.push_back(0);
    day = own;
    ++counts.back();
  }
  if (counts.size() < 4) return 0;
  const auto middle = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2);
  std::nth_element(counts.begin() + 1, middle, counts.end() - 1);
  return *middle;
}

}  // namespace

std::size_t season_of(const Symbol& symbol) {
  const data::Interval& interval = symbol.interval;
  if (interval.unit == data::Interval::Unit::milliseconds && interval.count < data::kDayMs) {
    constexpr std::size_t kMax = 1440;
    const std::size_t day = bars_per_day(symbol);
    if (day > 1) return std::min(kMax, day);
  }
  return season_of(interval);
}

}  // namespace toto::backtest
