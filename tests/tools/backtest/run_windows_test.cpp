// SPDX-License-Identifier: Apache-2.0
// Which bars, steps and symbols an evaluation is made of, and what it says of those left out.
#include <algorithm>

#include "run_fixture.h"

namespace toto::backtest {
namespace {

TEST_F(Run, MissingBarsCountNowhere) {
  Market market = two_symbols({"close"});
  Symbol& symbol = market.symbols[0];
  symbol.mask[symbol.bars - 1] = 0;
  const Options options = small();
  const Result result = run(market, options);
  const std::vector<Metrics> metrics = measure(result, options);
  EXPECT_EQ(metrics[0].count, 2U * 6 * 4 - 1);
}

TEST_F(Run, WindowsLieInTheRange) {
  const Market market = two_symbols({"close"});
  Options options = small();
  options.windows = 0;
  options.stride = 3;
  options.from = "2024-02-20";
  options.to = "2024-03-05";
  for (const Cell& cell : run(market, options).cells) {
    EXPECT_GE(cell.time, 19773 * data::kDayMs);
    EXPECT_LE(cell.time, 19787 * data::kDayMs);
  }
}

TEST_F(Run, ARangeWithoutBarsIsNamed) {
  const Market market = two_symbols({"close"});
  Options options = small();
  options.from = "2031-01-01";
  try {
    run(market, options);
    FAIL() << "there is no window";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "no_windows");
    EXPECT_NE(std::string_view(error.what()).find("0 of them between --from and --to"),
              std::string_view::npos)
        << error.what();
  }
}

TEST_F(Run, APartOfADateStandsForAllOfIt) {
  const Market market = two_symbols({"close"});  // of 2024
  Options options = small();
  options.windows = 0;
  options.horizon = 1;
  const auto last_day = [&](const std::string& to) {
    options.to = to;
    return run(market, options).cells.back().time / data::kDayMs;
  };
  EXPECT_EQ(last_day("2024-02"), 19782);  // 29 February
  EXPECT_EQ(last_day("2024-02-29"), 19782);
  EXPECT_EQ(last_day("2024"), last_day(""));
  options.from = "2024-03";
  EXPECT_EQ(run(market, options).cells.front().time / data::kDayMs, 19783);
}

TEST_F(Run, TheTimesOfAnIndexAreWholeNumbers) {
  std::string text = "index,close\n";
  for (int t = 0; t < 90; ++t) text += std::to_string(t) + "," + std::to_string(50 + t % 7) + "\n";
  const Market market = test::market_of({write("A.csv", text)});
  Options options = small();
  options.windows = 0;
  options.horizon = 1;
  options.from = "60";
  options.to = "70";
  const Result result = run(market, options);
  EXPECT_EQ(result.cells.front().time, 60);
  EXPECT_EQ(result.cells.back().time, 70);
  options.to = "2024-01-01";
  EXPECT_THROW((void)run(market, options), Error);
}

TEST_F(Run, EveryBarOneStepAheadHasAnObservedContext) {
  Market market = two_symbols({"close"});
  market.symbols.resize(1);
  Symbol& symbol = market.symbols[0];
  for (std::size_t t = 70; t < 75; ++t) symbol.mask[t] = 0;
  Options options = small();
  options.rolling = Rolling::one_step;
  options.parameters.context = 5;  // of which 5 must be observed
  options.horizon = 4;
  options.stride = 1;
  options.windows = 0;
  for (const Cell& cell : run(market, options).cells) {
    std::size_t observed = 0;
    for (std::size_t t = cell.bar - 5; t < cell.bar; ++t) observed += symbol.mask[t];
    EXPECT_EQ(observed, 5U) << cell.bar;
  }
}

TEST_F(Run, ASeasonLongerThanTheContextIsSaidAndMeasured) {
  Options options = small();
  options.season = 1000;
  std::string said_so;
  options.warning = [&](std::string_view text) { said_so += text; };
  const Result result = run(two_symbols({"close"}), options);
  EXPECT_EQ(result.unseasonal, (std::vector<std::size_t>{6, 6}));
  EXPECT_NE(said_so.find("season of 1000 bars"), std::string::npos);
  const std::vector<Metrics> metrics = measure(result, options);
  EXPECT_TRUE(std::isfinite(metrics[0].mase));
  options.season = 5;
  said_so.clear();
  EXPECT_EQ(run(two_symbols({"close"}), options).unseasonal, (std::vector<std::size_t>{0, 0}));
  EXPECT_EQ(said_so, "");
}

// The context of the model is its own affair: whoever says "as a season ago" looks back that far.
TEST_F(Run, TheSeasonalBaselineLooksBackBeyondTheContext) {
  Options options = small();
  options.season = options.parameters.context + 8;
  const Market market = two_symbols({"close"});
  const Result result = run(market, options);
  std::size_t looked = 0;
  for (const Cell& cell : result.cells) {
    const std::span<const float> values = result.symbols[cell.symbol].values_of(cell.target);
    const std::size_t known = cell.bar + 1 - cell.step;
    ASSERT_LE(cell.step, options.season);
    const bool there = known > options.season;
    looked += there ? 1 : 0;
    EXPECT_EQ(cell.baseline[1], values[there ? cell.bar - options.season : known - 1]);
    EXPECT_EQ(cell.baseline[0], values[known - 1]);
  }
  EXPECT_GT(looked, 0U);
  EXPECT_LT(result.unseasonal[0] + result.unseasonal[1], result.cells.size() / options.horizon);
}

TEST_F(Run, StepsAndCalendarsHaveTheirOwnOverlap) {
  const Market market = two_symbols({"close"});  // business days, and every day
  Options options = small();
  options.stride = 1;
  options.windows = 0;
  Market one = market;
  one.symbols.resize(1);
  const Result alone = run(one, options);
  for (const Metrics& m : measure(alone, options)) {
    if (m.source != Source::model) continue;
    // Step h of windows a bar apart: errors h - 1 origins apart are correlated; all together 3.
    const std::size_t open = m.step == 0 ? 4 : m.step;
    EXPECT_EQ(m.against[0].needed, std::max<std::size_t>(10, 3 * open)) << m.step;
  }
  // On Friday the next bar is Monday's, while the other symbol goes on.
  options.horizon = 1;
  const std::vector<Metrics> together = measure(run(market, options), options);
  EXPECT_EQ(together[0].symbol, "");
  EXPECT_EQ(together[0].against[0].needed, 10U);  // 3 x 3
  // A window from Wednesday to Tuesday is open at five later origins of the other, three of its
  // own.
  options.horizon = 4;
  EXPECT_EQ(measure(run(one, options), options)[0].against[0].needed, 12U);
  EXPECT_EQ(measure(run(market, options), options)[0].against[0].needed, 18U);
}

TEST_F(Run, SymbolsThatAFileOfParametersLacksAreNamed) {
  Options options = small();
  options.by_symbol["AA"] = options.parameters;
  std::string said_so;
  options.warning = [&](std::string_view text) { said_so += text; };
  (void)run(two_symbols({"close"}), options);
  EXPECT_NE(said_so.find("no parameters for \"BB\""), std::string::npos) << said_so;
}

TEST_F(Run, WhereNothingCanBeEvaluatedEveryReasonIsGiven) {
  const Market market =
      test::market_of({write("R.csv", test::bars(8, 0)), write("S.csv", test::bars(9, 1))});
  try {
    (void)run(market, small());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "no_windows");
    EXPECT_EQ(error.status(), ExitStatus::bad_data);
    for (const char* part : {"R.csv", "8 bars", "S.csv", "9 bars"}) {
      EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
    }
  }
}

TEST_F(Run, TargetsOfEverySymbolAreMeasured) {
  std::string wide = "date,web\n";
  for (int t = 0; t < 80; ++t) {
    const auto date = data::date_of(19723 + t);
    char line[60];
    std::snprintf(line, sizeof(line), "%04d-%02u-%02u,%d\n", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  20 + t % 9);
    wide += line;
  }
  const Market market =
      test::market_of({write("AA.csv", test::bars(90, 0)), write("wide.csv", wide)});
  const Options options = small();
  std::vector<std::string> seen;
  for (const Metrics& m : measure(run(market, options), options, true)) {
    if (m.source == Source::model) seen.push_back(m.symbol + "/" + m.target);
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"/", "/close", "/web", "AA/", "wide/"}));
}

TEST_F(Run, ShortSymbolsAreNamedAndTheOthersEvaluated) {
  const Market market =
      test::market_of({write("AA.csv", test::bars(90, 0)), write("SS.csv", test::bars(9, 1))});
  const Result result = run(market, small());
  ASSERT_EQ(result.symbols.size(), 1U);
  ASSERT_EQ(result.errors.size(), 1U);
  EXPECT_EQ(result.errors[0].id, "SS");
  EXPECT_EQ(result.errors[0].error.code(), "too_short");
}

TEST_F(Run, ReturnsOfPricesThatAreNotPositiveAreRefused) {
  Market market = two_symbols({"close"});
  market.symbols[1].values[3] = 0;
  Options options = small();
  EXPECT_EQ(run(market, options).errors.size(), 0U);
  options.parameters.transform = Transform::pct;
  const Result result = run(market, options);
  ASSERT_EQ(result.errors.size(), 1U);
  EXPECT_EQ(result.errors[0].error.code(), "non_positive_value");
  EXPECT_EQ(result.symbols.size(), 1U);
}

}  // namespace
}  // namespace toto::backtest
