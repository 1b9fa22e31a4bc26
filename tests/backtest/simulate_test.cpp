// SPDX-License-Identifier: Apache-2.0
// The illustration, by hand: three decisions of one symbol.
#include <gtest/gtest.h>

#include <cmath>

#include "data/calendar.h"
#include "toto/backtest.hpp"

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
  symbol.every_day = every_day;
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
  EXPECT_NEAR(all[0].total_return, 1.05 * 1.05 - 1, 1e-12);
  EXPECT_EQ(all[2].total_return, 0);
}

}  // namespace
}  // namespace toto::backtest
