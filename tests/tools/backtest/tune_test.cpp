// SPDX-License-Identifier: Apache-2.0
// Choosing parameters: on validation windows alone, and written so that they are read again.
#include <algorithm>

#include "market_file.h"

namespace toto::backtest {
namespace {

class Tune : public test::InFolder {
 protected:
  Market two_symbols() {
    return test::market_of(
        {write("in/AA.csv", test::bars(150, 0)), write("in/BB.csv", test::bars(120, 1, true))});
  }
  static Options small() {
    Options options;
    options.parameters.context = 40;
    options.parameters.samples = 8;
    options.horizon = 3;
    return options;
  }
  static Candidates few() {
    Candidates candidates;
    candidates.contexts = {16, 40};
    candidates.samples = {8};
    candidates.aggregates = {"median", "quantile_30", "trimmed_mean_20"};
    candidates.validation_windows = 12;
    candidates.test_windows = 6;
    return candidates;
  }
  static Tuning tune(const Market& market, const Options& options, const Candidates& candidates) {
    Forecaster forecaster = test::forecaster();
    return backtest::tune(market, forecaster, options, candidates);
  }
  std::string save(const Tuning& tuning, const std::string& name) {
    std::string text;
    write_parameters([&](std::string_view piece) { text += piece; }, tuning, small(), {});
    return write(name, text);
  }
};

TEST_F(Tune, ChoosesTheLeastErrorOfValidation) {
  const Market market = two_symbols();
  const Tuning tuning = tune(market, small(), few());
  EXPECT_EQ(tuning.candidates, 18U);
  ASSERT_EQ(tuning.symbols.size(), 2U);
  for (const Tuned& tuned : tuning.symbols) {
    EXPECT_EQ(tuned.validation_windows, 12U);
    EXPECT_EQ(tuned.test_windows, 6U);
  }
  // One by one: each candidate as what is in force without tuning.
  Candidates one = few();
  one.contexts = {40};  // the longest one sets the denominator of MASE
  one.transforms = {Transform::none};
  one.aggregates = {"median"};
  std::vector<double> best(2, INFINITY);
  for (const std::size_t context : few().contexts) {
    for (const Transform transform : few().transforms) {
      for (const std::string& aggregate : few().aggregates) {
        Options options = small();
        options.parameters = {context, 8, transform, 0, aggregate};
        const Tuning each = tune(market, options, one);
        for (std::size_t s = 0; s < 2; ++s) {
          best[s] = std::min(best[s], each.symbols[s].default_validation_mase);
        }
      }
    }
  }
  for (std::size_t s = 0; s < 2; ++s) EXPECT_EQ(tuning.symbols[s].best_validation_mase, best[s]);
}

/// Where the lead of the best candidate may be luck, the defaults are what is written.
TEST_F(Tune, KeepsTheDefaultWhereItIsAsGood) {
  const Market market = two_symbols();
  for (const Tuned& tuned : tune(market, small(), few()).symbols) {
    EXPECT_EQ(tuned.keeps_default, !(tuned.p_luck <= kTunedByLuck));
    EXPECT_EQ(tuned.chosen, tuned.keeps_default ? small().parameters : tuned.best);
    EXPECT_EQ(tuned.validation_mase,
              tuned.keeps_default ? tuned.default_validation_mase : tuned.best_validation_mase);
    EXPECT_EQ(tuned.test_mase,
              tuned.keeps_default ? tuned.default_test_mase : tuned.best_test_mase);
  }
  // A default that is far off is beaten beyond luck; nothing is beaten where it is the candidate.
  Options off = small();
  off.parameters = {40, 8, Transform::none, 0, "quantile_0.999"};
  for (const Tuned& tuned : tune(market, off, few()).symbols) {
    EXPECT_LE(tuned.p_luck, kTunedByLuck);
    EXPECT_FALSE(tuned.keeps_default);
    EXPECT_NE(tuned.chosen.aggregate, "quantile_0.999");
  }
  Candidates same = few();
  same.contexts = {40};
  same.transforms = {Transform::none};
  same.aggregates = {"median"};
  Options as_it_is = small();
  as_it_is.parameters = {40, 8, Transform::none, 0, "median"};
  for (const Tuned& tuned : tune(market, as_it_is, same).symbols) {
    EXPECT_EQ(tuned.p_luck, 1);
    EXPECT_TRUE(tuned.keeps_default);
  }
  // Too few windows to tell.
  Candidates short_of = few();
  short_of.validation_windows = 6;
  for (const Tuned& tuned : tune(market, off, short_of).symbols) {
    EXPECT_TRUE(std::isnan(tuned.p_luck));
    EXPECT_EQ(tuned.chosen, off.parameters);
  }
}

TEST_F(Tune, NothingIsChosenByTheTestWindows) {
  Market market = two_symbols();
  const Tuning before = tune(market, small(), few());
  for (Symbol& symbol : market.symbols) {  // the last 6 windows of 3 bars
    for (std::size_t t = symbol.bars - 18; t < symbol.bars; ++t) {
      symbol.values[t] = static_cast<float>(5 + t % 7 * 20);
    }
  }
  const Tuning after = tune(market, small(), few());
  for (std::size_t s = 0; s < 2; ++s) {
    EXPECT_EQ(before.symbols[s].chosen, after.symbols[s].chosen);
    EXPECT_EQ(before.symbols[s].validation_mase, after.symbols[s].validation_mase);
    EXPECT_NE(before.symbols[s].test_mase, after.symbols[s].test_mase);
  }
}

TEST_F(Tune, ItsFileIsReadAgainAndUsed) {
  const Market market = two_symbols();
  const Tuning tuning = tune(market, small(), few());
  const auto read = read_parameters(save(tuning, "parameters.json"));
  ASSERT_EQ(read.size(), 2U);
  for (const Tuned& tuned : tuning.symbols) EXPECT_EQ(read.at(tuned.symbol), tuned.chosen);
  Options options = small();
  options.by_symbol = read;
  options.windows = 6;
  Forecaster forecaster = test::forecaster();
  const Result result = run(market, forecaster, options);
  EXPECT_EQ(result.parameters[1], tuning.symbols[1].chosen);
  // The test windows again. Where the longest context was chosen, MASE has the same denominator.
  const std::vector<Metrics> metrics = measure(result, options, true);
  for (const Tuned& tuned : tuning.symbols) {
    if (tuned.chosen.context != 40 || tuned.chosen.transform != Transform::none) continue;
    const auto row = std::ranges::find(metrics, tuned.symbol, &Metrics::symbol);
    EXPECT_NEAR(row->mase, tuned.test_mase, 1e-9);
  }
}

TEST_F(Tune, RefusesWhatABacktestRefuses) {
  const Market market = two_symbols();
  const auto code = [&](const Options& options, const Candidates& candidates) -> std::string {
    try {
      (void)tune(market, options, candidates);
    } catch (const Error& error) {
      return error.code();
    }
    return "";
  };
  Options options = small();
  options.horizon = 0;
  EXPECT_EQ(code(options, few()), "invalid_horizon");
  Candidates candidates = few();
  candidates.contexts.push_back(0);
  EXPECT_EQ(code(small(), candidates), "invalid_context");
  candidates = few();
  candidates.samples.push_back(1'000'000);
  EXPECT_EQ(code(small(), candidates), "invalid_samples");
}

TEST_F(Tune, PricesThatHaveNoReturnsAreNamedWhereReturnsAreTheDefault) {
  Market market = two_symbols();
  market.symbols[1].values[3] = 0;
  Options options = small();
  EXPECT_EQ(tune(market, options, few()).errors.size(), 0U);
  options.parameters.transform = Transform::pct;
  const Tuning tuning = tune(market, options, few());
  ASSERT_EQ(tuning.errors.size(), 1U);
  EXPECT_EQ(tuning.errors[0].error.code(), "non_positive_value");
}

TEST_F(Tune, ASeasonLongerThanTheContextIsTunedAllTheSame) {
  Options options = small();
  options.season = 1000;
  for (const Tuned& tuned : tune(two_symbols(), options, few()).symbols) {
    EXPECT_TRUE(std::isfinite(tuned.validation_mase));
    EXPECT_LE(tuned.validation_mase, tuned.default_validation_mase);
  }
}

TEST_F(Tune, FewTestWindowsAreNoTest) {
  for (const Tuned& tuned : tune(two_symbols(), small(), few()).symbols) {  // 6 of them
    EXPECT_TRUE(tuned.against_default.too_few());
    EXPECT_TRUE(std::isnan(tuned.against_default.p_value));
  }
}

TEST_F(Tune, SymbolsWithTooFewBarsAreNamed) {
  const Market market =
      test::market_of({write("AA.csv", test::bars(150, 0)), write("SS.csv", test::bars(13, 1))});
  const Tuning tuning = tune(market, small(), few());
  EXPECT_EQ(tuning.symbols.size(), 1U);
  ASSERT_EQ(tuning.errors.size(), 1U);
  EXPECT_EQ(tuning.errors[0].error.code(), "too_short");
}

TEST_F(Tune, ForecastsTheFutureAsTheBacktestWouldHave) {
  const Market market = two_symbols();
  Forecaster forecaster = test::forecaster();
  for (const Transform transform : {Transform::none, Transform::pct, Transform::log_return}) {
    Options options = small();
    options.windows = 1;
    options.parameters.transform = transform;
    options.parameters.aggregate = "trimmed_mean_10";
    options.horizon = 1;
    const Result past = run(market, forecaster, options);
    const Symbol& symbol = market.symbols[0];
    data::TimeSeries series;
    series.id = "AA";
    series.variates = {"close"};
    series.steps = symbol.bars - 1;
    series.values.assign(symbol.values.begin(), symbol.values.end() - 1);
    series.mask.assign(series.steps, 1);
    ForecastOptions asked;
    asked.horizon = 1;
    asked.levels = {0.05, 0.9};
    const Forecast next =
        forecast_next(forecaster, {&series, 1}, {&options.parameters, 1}, asked).front();
    const Cell& cell = past.cells[0];
    EXPECT_EQ(next.point[0], static_cast<float>(cell.model.point));
    EXPECT_EQ(next.mean[0], static_cast<float>(cell.model.mean));
    EXPECT_EQ(next.median[0], cell.model.quantiles[9]);
    EXPECT_EQ(next.quantiles[0], cell.model.quantiles[0]);
    EXPECT_EQ(next.quantiles[1], cell.model.quantiles[17]);
  }
}

TEST_F(Tune, RefusesFilesThatItDidNotWrite) {
  const auto code = [&](const std::string& text) -> std::string {
    try {
      (void)read_parameters(write("p.json", text));
    } catch (const Error& error) {
      return error.code();
    }
    return "";
  };
  const std::string head = R"({"format":"toto-parameters","version":1,"symbols":{"A":)";
  const std::string good =
      R"("context":5,"samples":6,"transform":"pct","input_scale":10,"aggregate":"mean")";
  EXPECT_EQ(code(head + "{" + good + "}}}"), "");
  EXPECT_EQ(code("{"), "invalid_json");
  EXPECT_EQ(code("[]"), "invalid_parameters");
  EXPECT_EQ(code("{}"), "invalid_parameters");
  EXPECT_EQ(code(R"({"format":"toto-parameters","version":2,"symbols":{}})"), "invalid_parameters");
  EXPECT_EQ(code(R"({"format":"toto-parameters","version":1,"symbols":[]})"), "invalid_parameters");
  EXPECT_EQ(code(head + "3}}"), "invalid_parameters");
  for (const auto& [from, to] :
       {std::pair("\"context\":5", "\"context\":0"), std::pair("\"context\":5", "\"context\":-5"),
        std::pair("\"samples\":6", "\"samples\":\"6\""), std::pair("\"samples\":6", "\"x\":6"),
        std::pair("\"pct\"", "\"percent\""), std::pair("\"input_scale\":10", "\"input_scale\":0"),
        std::pair("\"input_scale\":10", "\"input_scale\":1e300"), std::pair("\"mean\"", "\"best\""),
        std::pair("\"mean\"", "\"mean,median\"")}) {
    std::string bad = good;
    bad.replace(bad.find(from), std::string(from).size(), to);
    EXPECT_EQ(code(head + "{" + bad + "}}}"), "invalid_parameters") << bad;
  }
}

}  // namespace
}  // namespace toto::backtest
