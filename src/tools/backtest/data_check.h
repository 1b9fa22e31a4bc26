// SPDX-License-Identifier: Apache-2.0
// What is odd about bars: found and reported, changed never.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "toto/tools/backtest.hpp"

namespace toto::backtest {

/// The columns of one symbol; empty where there is none. NaN: not observed.
struct Bars {
  std::span<const float> open, high, low, close, volume;  // [T] each
  std::span<const std::int64_t> times;                    // [T]
  std::function<std::string(std::size_t bar)> when;       // for messages
  data::Interval interval;
};

/// gaps, non_positive, high_below_low, zero_volume and jumps (moves between two closes that look
/// like a split: near a small ratio, and far beyond what the symbol does from bar to bar).
std::vector<Finding> check_bars(const Bars& bars);

/// The share of bars whose high lies below their low.
double crossed_share(const Bars& bars);

}  // namespace toto::backtest
