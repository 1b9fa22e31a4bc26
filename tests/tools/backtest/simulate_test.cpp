// SPDX-License-Identifier: Apache-2.0
// The illustration, by hand: three decisions of one symbol.
#include <gtest/gtest.h>

#include <cmath>

#include "data/calendar.h"
#include "toto/tools/backtest.hpp"

namespace toto::backtest {
namespace {

Result three_days(bool every_day = false) {
  Result result;
  result.rolling = Rolling::one_step;
  result.horizon = 1;
  Symbol symbol;
  symbol.name = std::string("A");
  symbol.targets = {"close"};
  symbol.bars = 4;
  symbol.values = {100, 110, 99, 99};
  symbol.mask = {1, 1, 1, 1};
  symbol.times = {0, data::kDayMs, 2 * data::kDayMs, 3 * data::kDayMs};
  symbol.style.form = data::TimeStyle::Form::date;
  symbol.hours = every_day ? TradingHours::always : TradingHours::sessions;
  result.symbols = {symbol};
  const double said[3] = {105, 100, 99};  // up, down, no move
  for (std::uint32_t i = 0; i < 3; ++i) {
    Cell cell;
    cell.window = i;
    cell.bar = i + 1;
    cell.time = symbol.times[i + 1];
    cell.base = symbol.values[i];
    cell.actual = symbol.values[i + 1];
    cell.model.point = said[i];
    result.cells.push_back(cell);
  }
  return result;
}

TEST(Simulate, FeesAreThoseOfTheKindOfAsset) {
  Result result = three_days();
  for (const auto& [hours, fee] :
       {std::pair(TradingHours::sessions, 0.0005), std::pair(TradingHours::weekdays, 0.0001),
        std::pair(TradingHours::always, 0.001)}) {
    result.symbols[0].hours = hours;
    EXPECT_EQ(simulate(result, std::nullopt).front().fee, fee);
  }
}

TEST(Simulate, WhatIsNoPriceIsNotTraded) {
  Result result = three_days();
  result.symbols[0].targets = {"sunspots"};
  EXPECT_TRUE(simulate(result, std::nullopt).empty());
  result.symbols[0].targets = {"Adj Close"};
  EXPECT_EQ(simulate(result, std::nullopt).size(), 1U);
}

TEST(Simulate, LongShortAndFlat) {
  const std::vector<Trades> all = simulate(three_days(), std::nullopt);
  ASSERT_EQ(all.size(), 1U);
  const Trades& t = all[0];
  EXPECT_EQ(t.fee, 0.0005);
  EXPECT_EQ(t.periods, 3U);
  // Long gains 10 %, short gains 10 %, flat nothing; 1, 2 and 1 positions are traded.
  const double wealth = (1 + 0.1 - 0.0005) * (1 + 0.1 - 0.001) * (1 - 0.0005);
  EXPECT_NEAR(t.total_return, wealth - 1, 1e-12);
  EXPECT_NEAR(t.turnover, 4.0 / 3, 1e-12);
  EXPECT_NEAR(t.drawdown, 0.0005, 1e-12);
  EXPECT_NEAR(t.hold_return, 99.0 / 100 - 1, 1e-12);
  const double gains[3] = {0.0995, 0.099, -0.0005};
  const double mean = (gains[0] + gains[1] + gains[2]) / 3;
  double squares = 0;
  for (const double g : gains) squares += (g - mean) * (g - mean);
  const double deviation = std::sqrt(squares / 2);
  EXPECT_NEAR(t.sharpe, mean / deviation * std::sqrt(365.25), 1e-9);
  EXPECT_NEAR(t.yearly_volatility, deviation * std::sqrt(365.25), 1e-9);
}

TEST(Simulate, FeesAreOfTheMarketOrAsAsked) {
  EXPECT_EQ(simulate(three_days(true), std::nullopt)[0].fee, 0.001);
  EXPECT_NEAR(simulate(three_days(), 0.0)[0].total_return, 0.21, 1e-12);
}

TEST(Simulate, SmallMovesTakeNoPosition) {
  const Trades t = simulate(three_days(), 0.0, 0.07)[0];  // 5 % up is too little, 9 % down is not
  EXPECT_NEAR(t.total_return, 0.1, 1e-12);
}

TEST(Simulate, PositionsDoNotOverlap) {
  Result result = three_days();
  result.rolling = Rolling::multi_step;
  result.horizon = 2;
  result.cells.clear();
  for (std::uint32_t w = 0; w < 2; ++w) {  // windows of bars 1-2 and 2-3
    for (std::uint32_t h = 1; h <= 2; ++h) {
      Cell cell;
      cell.window = w;
      cell.step = h;
      cell.bar = w + h;
      cell.base = result.symbols[0].values[w];
      cell.actual = result.symbols[0].values[w + h];
      cell.model.point = cell.base * 1.5;
      result.cells.push_back(cell);
    }
  }
  const Trades t = simulate(result, 0.0)[0];
  EXPECT_EQ(t.periods, 1U);
  EXPECT_NEAR(t.total_return, -0.01, 1e-12);
}

/// A symbol of daily bars and, from each origin, a forecast two bars ahead that says "up".
void add_symbol(Result& result, const char* name, std::int64_t first_day,
                const std::vector<float>& closes, const std::vector<std::uint32_t>& origins) {
  Symbol symbol;
  symbol.name = std::string(name);
  symbol.targets = {"close"};
  symbol.bars = closes.size();
  symbol.values = closes;
  symbol.mask.assign(closes.size(), 1);
  symbol.style.form = data::TimeStyle::Form::date;
  for (std::size_t t = 0; t < closes.size(); ++t) {
    symbol.times.push_back((first_day + static_cast<std::int64_t>(t)) * data::kDayMs);
  }
  for (std::uint32_t w = 0; w < origins.size(); ++w) {
    for (std::uint32_t h = 1; h <= 2; ++h) {
      Cell cell;
      cell.symbol = static_cast<std::uint32_t>(result.symbols.size());
      cell.window = w;
      cell.step = h;
      cell.bar = origins[w] + h;
      cell.base = closes[origins[w]];
      cell.actual = closes[cell.bar];
      cell.model.point = cell.base * 1.5;
      result.cells.push_back(cell);
    }
  }
  result.symbols.push_back(std::move(symbol));
}

Result two_bars_ahead() {
  Result result;
  result.rolling = Rolling::multi_step;
  result.horizon = 2;
  return result;
}

// The windows of one symbol end where those of the other are half way: both gain 21 % in the same
// days, so together they gain 21 % and not 46 %.
TEST(Simulate, PeriodsOfSymbolsThatOverlapAreNotCompounded) {
  Result result = two_bars_ahead();
  add_symbol(result, "A", 0, {100, 100, 110, 110, 121}, {0, 2});
  add_symbol(result, "B", 1, {100, 110, 110, 121, 121}, {0, 2});
  const std::vector<Trades> all = simulate(result, 0.0);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_NEAR(all[0].total_return, 0.21, 1e-6);
  EXPECT_NEAR(all[0].hold_return, 0.21, 1e-6);
  EXPECT_EQ(all[0].periods, 4U);
  EXPECT_EQ(simulate(result, std::nullopt)[0].fee, 0.0005);
  result.symbols[1].hours = TradingHours::always;  // has another fee
  EXPECT_TRUE(std::isnan(simulate(result, std::nullopt)[0].fee));
}

TEST(Simulate, ADrawdownWithinAPeriodIsSeen) {
  Result result = two_bars_ahead();
  add_symbol(result, "A", 0, {100, 60, 100}, {0});
  const Trades t = simulate(result, 0.0)[0];
  EXPECT_NEAR(t.total_return, 0, 1e-12);
  EXPECT_NEAR(t.drawdown, 0.4, 1e-6);
}

TEST(Simulate, NothingIsHeldBetweenWindows) {
  Result result = two_bars_ahead();
  add_symbol(result, "A", 0, {100, 100, 100, 500, 500, 500}, {0, 3});
  const Trades t = simulate(result, 0.001)[0];
  // Bought, sold, and bought again; the jump between the windows is nobody's.
  EXPECT_NEAR(t.total_return, 0.999 * 0.999 * 0.999 - 1, 1e-12);
  EXPECT_NEAR(t.turnover, 1.5, 1e-12);
}

TEST(Simulate, TheCloseIsTradedHoweverItIsSpelled) {
  Result result = three_days();
  Symbol& symbol = result.symbols[0];
  symbol.targets = {"High", "Close"};
  symbol.values = {1, 1, 1, 1, 100, 110, 99, 99};
  symbol.mask.assign(8, 1);
  for (Cell& cell : result.cells) cell.target = 1;
  const std::vector<Trades> all = simulate(result, 0.0);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].target, "Close");
  EXPECT_NEAR(all[0].total_return, 0.21, 1e-12);
  symbol.targets = {"Low", "High"};
  EXPECT_TRUE(simulate(result, 0.0).empty());  // the first target has no cells here
  for (Cell& cell : result.cells) cell.target = 0;
  EXPECT_EQ(simulate(result, 0.0)[0].target, "Low");
}

TEST(Simulate, NothingIsYearlyWhereTimeIsAnIndex) {
  Result result = three_days();
  result.symbols[0].style.form = data::TimeStyle::Form::index;
  result.symbols[0].times = {0, 1, 2, 3};
  const Trades t = simulate(result, 0.0)[0];
  EXPECT_FALSE(t.yearly);
  EXPECT_NEAR(t.total_return, 0.21, 1e-12);
  for (const double yearly : {t.yearly_return, t.yearly_volatility, t.sharpe, t.hold_sharpe}) {
    EXPECT_TRUE(std::isnan(yearly));
  }
  EXPECT_TRUE(simulate(three_days(), 0.0)[0].yearly);
}

TEST(Simulate, SymbolsTogetherWeighAlike) {
  Result result = three_days();
  result.symbols.push_back(result.symbols[0]);
  result.symbols[1].name = std::string("B");
  const std::size_t count = result.cells.size();
  for (std::size_t i = 0; i < count; ++i) {
    result.cells.push_back(result.cells[i]);
    result.cells.back().symbol = 1;
    result.cells.back().model.point = result.cells.back().base;  // always flat
  }
  const std::vector<Trades> all = simulate(result, 0.0);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].symbol, "");
  EXPECT_NEAR(all[0].total_return, (1.21 + 1) / 2 - 1, 1e-12);  // half of the money each
  EXPECT_EQ(all[2].total_return, 0);
}

}  // namespace
}  // namespace toto::backtest
