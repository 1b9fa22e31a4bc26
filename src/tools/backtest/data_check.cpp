// SPDX-License-Identifier: Apache-2.0
#include "tools/backtest/data_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "data/calendar.h"

namespace toto::backtest {
namespace {

constexpr double kSplitTolerance = 0.06;  // of the logarithm of the ratio
constexpr double kFarBeyond = 8;          // times the median move

class Collector {
 public:
  explicit Collector(const Bars& bars) : bars_(bars) {}

  template <typename Odd>
  void find(std::string code, std::string_view what, std::size_t begin, std::size_t end,
            const Odd& odd) {
    Finding finding;
    std::size_t first = 0;
    for (std::size_t t = begin; t < end; ++t) {
      if (!odd(t)) continue;
      if (finding.count++ == 0) first = t;
    }
    if (finding.count == 0) return;
    finding.code = std::move(code);
    finding.message = fmt::format("{} {}, first at {}", finding.count, what, bars_.when(first));
    found.push_back(std::move(finding));
  }

  std::vector<Finding> found;

 private:
  const Bars& bars_;
};

/// Weekdays without a bar between two bars.
std::int64_t days_left_out(const Bars& bars, std::size_t t) {
  if (bars.interval.unit != data::Interval::Unit::business_day) return 0;
  const auto day = [&](std::size_t i) {
    return data::business_day_number(data::floor_div(bars.times[i], data::kDayMs));
  };
  return day(t) - day(t - 1) - 1;
}

void find_gaps(const Bars& bars, Collector& to) {
  const std::size_t count = bars.times.size();
  if (bars.interval.unit == data::Interval::Unit::business_day) {
    std::int64_t days = 0;
    for (std::size_t t = 1; t < count; ++t) days += days_left_out(bars, t);
    to.find("gaps",
            fmt::format("gaps of weekdays, {} days in all (holidays or missing bars)", days), 1,
            count, [&](std::size_t t) { return days_left_out(bars, t) > 0; });
    return;
  }
  if (bars.close.empty()) return;
  to.find("gaps", "bars are missing", 0, count,
          [&](std::size_t t) { return std::isnan(bars.close[t]); });
}

void find_jumps(const Bars& bars, Collector& to) {
  if (bars.close.size() < 3) return;
  std::vector<double> moves(bars.close.size(), 0);
  std::vector<double> sizes;
  double before = 0;
  for (std::size_t t = 0; t < bars.close.size(); ++t) {
    const double close = bars.close[t];
    if (std::isnan(close) || close <= 0) continue;
    if (before > 0) {
      moves[t] = std::log(close / before);
      sizes.push_back(std::abs(moves[t]));
    }
    before = close;
  }
  if (sizes.empty()) return;
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  const double usual = *middle;
  to.find("jumps", "moves look like splits that the prices are not adjusted for", 1, moves.size(),
          [&](std::size_t t) {
            constexpr std::array kRatios = {1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 8.0, 10.0, 20.0, 50.0};
            const double size = std::abs(moves[t]);
            if (size <= kFarBeyond * usual) return false;
            return std::ranges::any_of(kRatios, [&](double ratio) {
              return std::abs(size - std::log(ratio)) < kSplitTolerance;
            });
          });
}

}  // namespace

double crossed_share(const Bars& bars) {
  if (bars.high.empty() || bars.low.empty()) return 0;
  std::size_t crossed = 0;
  for (std::size_t t = 0; t < bars.high.size(); ++t) crossed += bars.high[t] < bars.low[t] ? 1 : 0;
  return static_cast<double>(crossed) / static_cast<double>(bars.high.size());
}

std::vector<Finding> check_bars(const Bars& bars) {
  Collector collector(bars);
  find_gaps(bars, collector);
  for (const auto& [name, prices] : {std::pair("open", bars.open), std::pair("high", bars.high),
                                     std::pair("low", bars.low), std::pair("close", bars.close)}) {
    const std::span<const float> column = prices;
    collector.find("non_positive", fmt::format("values of {} are not positive", name), 0,
                   column.size(), [&](std::size_t t) { return column[t] <= 0; });
  }
  if (!bars.high.empty() && !bars.low.empty()) {
    collector.find("high_below_low", "bars have a high below their low", 0, bars.high.size(),
                   [&](std::size_t t) { return bars.high[t] < bars.low[t]; });
  }
  collector.find("zero_volume", "bars have no volume", 0, bars.volume.size(),
                 [&](std::size_t t) { return bars.volume[t] <= 0; });
  find_jumps(bars, collector);
  return std::move(collector.found);
}

}  // namespace toto::backtest
