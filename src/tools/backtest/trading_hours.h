// SPDX-License-Identifier: Apache-2.0
// When a symbol trades, from the times of the bars that were observed.
#pragma once

#include "toto/tools/backtest.hpp"

namespace toto::backtest {

/// `series`: bars on a regular grid, so what no file holds is there too, masked: it does not count.
TradingHours trading_hours(const data::TimeSeries& series);

/// The fee of a decision where none was asked for, as a share of the value traded.
double usual_fee(TradingHours hours);

/// Whether a column is called as prices are: open, high, low or close in any usual spelling.
bool is_price(const std::string& target);

}  // namespace toto::backtest
