// SPDX-License-Identifier: Apache-2.0
// Reading bars as people have them, and what is odd about them.
#include <fmt/format.h>

#include <algorithm>

#include "market_file.h"
#include "tools/backtest/column_names.h"

namespace toto::backtest {
namespace {

using Market_ = test::InFolder;

std::size_t column(const std::vector<std::string>& header, const char* word) {
  return find_column(header, word).value_or(99);
}

TEST(Spelling, FindsTheUsualNames) {
  EXPECT_EQ(column({"Date", "Open", "High", "Low", "Close", "Volume"}, "close"), 4U);
  EXPECT_EQ(column({"timestamp", "1. open", "2. high", "3. low", "4. close"}, "high"), 2U);
  EXPECT_EQ(column({"<TICKER>", "<DATE>", "<OPEN>", "<HIGH>", "<LOW>", "<CLOSE>"}, "close"), 5U);
  EXPECT_EQ(column({"<TICKER>", "<DATE>", "<OPEN>"}, "symbol"), 0U);
  EXPECT_EQ(column({"Date", "Close/Last", "Volume", "Open"}, "close"), 1U);
  EXPECT_EQ(column({"t", "o", "h", "l", "c", "v"}, "low"), 3U);
  EXPECT_EQ(column({"open_time", "open", "close_time", "close"}, "timestamp"), 0U);
  EXPECT_EQ(column({"Date", "Adj Close", "Close"}, "close"), 2U);
  EXPECT_EQ(column({"Date", "Adj Close"}, "close"), 1U);
  EXPECT_EQ(column({"Date", "CLOSE_PRICE"}, "Close"), 1U);
  EXPECT_EQ(column({"Date", "vwap"}, "VWAP"), 1U);
  EXPECT_EQ(column({"Date", "Temperature"}, "close"), 99U);
}

TEST_F(Market_, ReadsFilesAndFolders) {
  write("in/BB.csv", test::bars(30, 1));
  write("in/AA.csv", test::bars(20, 0));
  write("in/readme.txt", "nothing");
  const Market market = test::market_of({path("in")});
  ASSERT_EQ(market.symbols.size(), 2U);
  EXPECT_EQ(market.symbols[0].name, "AA");
  EXPECT_EQ(market.symbols[0].bars, 20U);
  EXPECT_EQ(market.symbols[0].targets, std::vector<std::string>{"close"});
  EXPECT_NEAR(market.symbols[1].values[3], test::price(3, 1), 0.0006);
  EXPECT_EQ(market.symbols[0].hours, TradingHours::sessions);
}

TEST_F(Market_, ReadsLongFilesAndTargetsInTheirOrder) {
  const std::string file =
      write("all.csv",
            "day,Ticker,l,h,o,c\n2024-01-01,X,1,4,2,3\n2024-01-01,Y,11,14,12,13\n"
            "2024-01-02,X,2,5,3,4\n2024-01-02,Y,12,15,13,14\n");
  const Market market = test::market_of({file}, {"high", "close", "open"});
  ASSERT_EQ(market.symbols.size(), 2U);
  EXPECT_EQ(market.symbols[1].name, "Y");
  EXPECT_EQ(market.symbols[1].targets, (std::vector<std::string>{"high", "close", "open"}));
  EXPECT_EQ(market.symbols[1].values, (std::vector<float>{14, 15, 13, 14, 12, 13}));
  MarketOptions one;
  one.inputs = {file};
  one.symbols = {"X"};
  EXPECT_EQ(read_market(one).symbols.size(), 1U);
  one.symbols = {"Z"};
  EXPECT_THROW((void)read_market(one), Error);
}

TEST_F(Market_, CryptoTradesEveryDay) {
  const Market market = test::market_of({write("BTC.csv", test::bars(30, 0, true))});
  EXPECT_EQ(market.symbols[0].hours, TradingHours::always);
  EXPECT_EQ(season_of(market.symbols[0].interval), 7U);
  EXPECT_EQ(season_of(test::market_of({write("AA.csv", test::bars(30, 0))}).symbols[0].interval),
            5U);
}

/// Hours from Sunday 22:00 to Friday 22:00 UTC. The grid has rows for the weekend too, which nobody
/// observed.
TEST_F(Market_, CurrenciesTradeRoundTheClockButNotEveryDay) {
  std::string text = "Date,Open,High,Low,Close,Volume\n";
  for (int day = 5; day <= 25; ++day) {     // 2020-01-05 is a Sunday
    const int weekday = (day - 6 + 7) % 7;  // 0: Monday
    for (int hour = 0; hour < 24; ++hour) {
      const bool open = weekday == 6 ? hour >= 22 : weekday == 4 ? hour < 22 : weekday != 5;
      if (!open) continue;
      text += fmt::format("2020-01-{:02} {:02}:00,1.1,1.2,1.0,1.1,{}\n", day, hour, 10 + hour);
    }
  }
  const Market market = test::market_of({write("EURUSD.csv", text)});
  EXPECT_EQ(market.symbols[0].hours, TradingHours::weekdays);
}

TEST_F(Market_, ADayOfTradingIsTheSeasonOfShorterBars) {
  std::string text = "Date,Open,High,Low,Close\n";
  for (int day = 1; day <= 26; ++day) {
    if (day % 7 >= 5) continue;
    const int last = day == 10 ? 12 : 15;  // closes early once
    for (int hour = 9; hour <= last; ++hour) {
      char line[80];
      std::snprintf(line, sizeof(line), "2024-01-%02d %02d:30,1,3,1,%d\n", day, hour, 2 + hour);
      text += line;
    }
  }
  const Symbol stock = test::market_of({write("A.csv", text)}).symbols[0];
  EXPECT_EQ(stock.interval.count, data::kDayMs / 24);
  EXPECT_EQ(season_of(stock), 7U);
  std::string round = "Date,Open,High,Low,Close\n";
  for (int hour = 0; hour < 24 * 8; ++hour) {
    char line[80];
    std::snprintf(line, sizeof(line), "2024-01-%02d %02d:00,1,3,1,2\n", 1 + hour / 24, hour % 24);
    round += line;
  }
  EXPECT_EQ(season_of(test::market_of({write("C.csv", round)}).symbols[0]), 24U);
  EXPECT_EQ(season_of(test::market_of({write("D.csv", test::bars(30, 0))}).symbols[0]), 5U);
}

TEST_F(Market_, GapsAreFilledFromThePastAlone) {
  std::string text = "Date,Open,High,Low,Close\n";
  for (int hour = 0; hour < 24; ++hour) {
    if (hour == 10 || hour == 11) continue;
    char line[80];
    std::snprintf(line, sizeof(line), "2024-01-01 %02d:00,1,3,1,%d\n", hour, 2 + hour);
    text += line;
  }
  const Market market = test::market_of({write("A.csv", text)});
  const Symbol& symbol = market.symbols[0];
  ASSERT_EQ(symbol.bars, 24U);
  EXPECT_EQ(symbol.mask[10], 0);
  EXPECT_EQ(symbol.values[10], 11);  // of 09:00, not between 09:00 and 12:00
  EXPECT_EQ(symbol.values[11], 11);
  EXPECT_EQ(season_of(symbol.interval), 24U);
}

std::size_t count_of(const Symbol& symbol, const std::string& code) {
  const auto found = std::ranges::find(symbol.findings, code, &Finding::code);
  return found == symbol.findings.end() ? 0 : found->count;
}

TEST_F(Market_, OddBarsAreReportedAndKept) {
  std::string text = "Date,Open,High,Low,Close,Volume\n";
  for (int day = 1; day <= 28; ++day) {
    const double price = (day >= 15 ? 50 : 100) + 0.3 * (day % 5);
    char line[120];
    std::snprintf(line, sizeof(line), "2024-02-%02d,%.2f,%.2f,%.2f,%.2f,%d\n", day,
                  day == 3 ? -1 : price, day == 4 ? price - 3 : price + 1, price - 1, price,
                  day == 5 || day == 6 ? 0 : 10);
    if (day != 20) text += line;
    if (day == 8) text += line;
  }
  const Market market = test::market_of({write("A.csv", text)});
  ASSERT_EQ(market.errors.size(), 0U);
  const Symbol& symbol = market.symbols[0];
  EXPECT_EQ(count_of(symbol, "gaps"), 1U);
  EXPECT_EQ(count_of(symbol, "non_positive"), 1U);
  EXPECT_EQ(count_of(symbol, "high_below_low"), 1U);
  EXPECT_EQ(count_of(symbol, "zero_volume"), 2U);
  EXPECT_EQ(count_of(symbol, "jumps"), 1U);
  EXPECT_EQ(count_of(symbol, "repeated_rows"), 1U);
  EXPECT_EQ(symbol.bars, 28U);
}

TEST_F(Market_, GoodBarsHaveNoFindings) {
  EXPECT_TRUE(test::market_of({write("A.csv", test::bars(60, 0))}).symbols[0].findings.empty());
}

std::string code_of(const Market& market) {
  return market.errors.size() == 1 ? market.errors[0].error.code() : "";
}

TEST_F(Market_, WhatWouldMakeForecastsWrongIsAnError) {
  const std::string head = "Date,Open,High,Low,Close\n";
  EXPECT_EQ(code_of(test::market_of({write(
                "a.csv", head + "2024-01-01,1,2,1,1\n2024-01-01,1,2,1,2\n2024-01-02,1,2,1,1\n")})),
            "duplicate_timestamp");
  // Newest first is put in order.
  EXPECT_EQ(
      code_of(test::market_of({write("b.csv", head + "2024-01-02,1,2,1,1\n2024-01-01,1,2,1,2\n")})),
      "");
  EXPECT_EQ(
      code_of(test::market_of({write("c.csv", head + "2024-01-01,1,1,2,1\n2024-01-02,1,1,2,2\n")})),
      "crossed_bars");
  EXPECT_EQ(code_of(test::market_of({path("nowhere.csv")})), "file_not_found");
  EXPECT_EQ(code_of(test::market_of({write("d.csv", "")})), "no_rows");
}

TEST_F(Market_, AColumnThatIsNotForecastIsNoReasonToRefuse) {
  std::string text = test::bars(30, 0);
  text.replace(text.find(",1000"), 5, ",n.a!");
  const std::string file = write("AA.csv", text);
  const Market market = test::market_of({file});
  ASSERT_EQ(market.errors.size(), 0U);
  EXPECT_EQ(count_of(market.symbols[0], "unreadable_column"), 1U);
  EXPECT_EQ(market.symbols[0].bars, 30U);
  // Where it is forecast, it is.
  EXPECT_EQ(code_of(test::market_of({file}, {"close", "volume"})), "not_a_number");
  // A bad price is no better for a bad volume.
  text.insert(text.find("2024-01-01,") + 11, "x");
  EXPECT_EQ(code_of(test::market_of({write("BB.csv", text)}, {"open"})), "not_a_number");
}

TEST_F(Market_, OnlyTheChosenSymbolsCount) {
  MarketOptions options;
  options.inputs = {write("AA.csv", test::bars(30, 0)), write("BB.csv", test::bars(30, 1)),
                    write("broken.csv", "")};
  options.symbols = {"AA", "BB"};
  const Market market = read_market(options);
  EXPECT_EQ(market.symbols.size(), 2U);
  EXPECT_EQ(market.errors.size(), 0U);
  ASSERT_EQ(market.warnings.size(), 1U);
  EXPECT_NE(market.warnings[0].find("broken.csv"), std::string::npos);
  options.symbols = {"AA", "broken"};
  EXPECT_EQ(read_market(options).errors.size(), 1U);
  options.symbols = {"ZZ"};
  try {
    (void)read_market(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "missing_symbol");
    EXPECT_NE(error.message().find("1 cannot be read"), std::string::npos);
  }
}

TEST_F(Market_, ASymbolOfTwoFilesIsReadOnce) {
  const Market market = test::market_of(
      {write("one/AA.csv", test::bars(20, 0)), write("two/AA.csv", test::bars(30, 1))});
  ASSERT_EQ(market.symbols.size(), 1U);
  EXPECT_EQ(market.symbols[0].bars, 20U);
  EXPECT_EQ(code_of(market), "duplicate_symbol");
}

TEST_F(Market_, OtherTablesHaveTheirOwnValues) {
  const Market market = test::market_of(
      {write("wide.csv", "date,web,api\n2024-01-01,1,5\n2024-01-02,2,6\n2024-01-03,3,7\n")});
  ASSERT_EQ(market.symbols.size(), 1U);
  EXPECT_EQ(market.symbols[0].targets, (std::vector<std::string>{"web", "api"}));
}

}  // namespace
}  // namespace toto::backtest
