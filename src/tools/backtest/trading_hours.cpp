// SPDX-License-Identifier: Apache-2.0
#include "tools/backtest/trading_hours.h"

#include <algorithm>
#include <array>
#include <map>

#include "data/calendar.h"
#include "tools/backtest/column_names.h"

namespace toto::backtest {
namespace {

constexpr std::int64_t kRoundTheClockMs =
    20 * data::kDayMs / 24;  // of 24 hours; nights are shorter

bool observed(const data::TimeSeries& series, std::size_t step) {
  for (std::size_t v = 0; v < series.variates.size(); ++v) {
    if (series.mask[v * series.steps + step] != 0) return true;
  }
  return false;
}

}  // namespace

TradingHours trading_hours(const data::TimeSeries& series) {
  const data::Interval& interval = series.interval;
  if (interval.unit != data::Interval::Unit::milliseconds) return TradingHours::sessions;
  if (series.style.form == data::TimeStyle::Form::index) return TradingHours::sessions;
  if (interval.count > data::kDayMs) return TradingHours::sessions;
  std::map<std::int64_t, std::int64_t> bars;  // of each day
  for (std::size_t t = 0; t < series.steps; ++t) {
    if (observed(series, t)) ++bars[data::floor_div(series.times[t], data::kDayMs)];
  }
  if (bars.empty()) return TradingHours::sessions;
  std::size_t weekend = 0;
  std::vector<std::int64_t> open;  // milliseconds of each weekday
  for (const auto& [day, count] : bars) {
    if (data::weekday_of(day) >= 5) {
      ++weekend;
    } else {
      open.push_back(count * interval.count);
    }
  }
  // Two days of seven; currencies open on Sunday evenings, but not on Saturdays.
  if (weekend * 4 >= bars.size()) return TradingHours::always;
  if (interval.count == data::kDayMs || open.empty()) return TradingHours::sessions;
  const auto middle = open.begin() + static_cast<std::ptrdiff_t>(open.size() / 2);
  std::ranges::nth_element(open, middle);
  return *middle >= kRoundTheClockMs ? TradingHours::weekdays : TradingHours::sessions;
}

double usual_fee(TradingHours hours) {
  switch (hours) {
    case TradingHours::always:
      return 0.001;
    case TradingHours::weekdays:
      return 0.0001;
    case TradingHours::sessions:
      break;
  }
  return 0.0005;
}

bool is_price(const std::string& target) {
  const std::array<std::string, 1> header = {target};
  constexpr std::array<std::string_view, 4> words = {"open", "high", "low", "close"};
  return std::ranges::any_of(
      words, [&](std::string_view word) { return find_column(header, word).has_value(); });
}

}  // namespace toto::backtest
