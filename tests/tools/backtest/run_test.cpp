// SPDX-License-Identifier: Apache-2.0
// What an evaluation promises: no look into the future, each context once, the same bits whatever
// the batch and the cache, forecasts as the forecaster makes them.
#include <algorithm>
#include <random>

#include "run_fixture.h"
#include "support/test_files.h"
#include "tools/backtest/prediction_cache.h"

namespace toto::backtest {
namespace {

/// The forecasts of all sources, without what happened.
std::vector<double> said(const Cell& cell) {
  std::vector<double> all = {cell.base, cell.scale, cell.model.point, cell.model.mean};
  all.insert(all.end(), cell.model.quantiles.begin(), cell.model.quantiles.end());
  all.insert(all.end(), cell.baseline.begin(), cell.baseline.end());
  all.insert(all.end(), cell.baseline_sigma.begin(), cell.baseline_sigma.end());
  return all;
}

std::vector<Options> ways(Options options) {
  std::vector<Options> all;
  for (const Transform transform : {Transform::none, Transform::pct, Transform::log_return}) {
    for (const Rolling rolling : {Rolling::multi_step, Rolling::one_step}) {
      for (const bool joint : {false, true}) {
        options.parameters.transform = transform;
        options.rolling = rolling;
        options.joint = joint;
        all.push_back(options);
      }
    }
  }
  return all;
}

// Every bar after an origin is replaced by another one; no forecast from that origin may move, and
// neither may what the baselines say. With `leak` the last known bar is replaced as well, and then
// forecasts must move: this test can fail.
void plant(const Options& options, Market market, std::size_t origin, bool leak) {
  Forecaster forecaster = test::forecaster();
  const Result before = backtest::run(market, forecaster, options);
  std::mt19937 random(static_cast<unsigned>(origin));
  for (Symbol& symbol : market.symbols) {
    for (std::size_t v = 0; v < symbol.targets.size(); ++v) {
      for (std::size_t t = origin + (leak ? 0 : 1); t < symbol.bars; ++t) {
        symbol.values[v * symbol.bars + t] = static_cast<float>(random() % 1000 + 1);
        symbol.mask[v * symbol.bars + t] = random() % 4 != 0 ? 1 : 0;
      }
    }
  }
  const Result after = backtest::run(market, forecaster, options);
  ASSERT_EQ(before.cells.size(), after.cells.size());
  std::size_t compared = 0;
  std::size_t moved = 0;
  for (std::size_t i = 0; i < before.cells.size(); ++i) {
    const Cell& cell = before.cells[i];
    const std::size_t last =
        options.rolling == Rolling::one_step ? cell.bar - 1 : cell.bar - cell.step;
    EXPECT_LT(last, cell.bar);
    if (last > origin) continue;
    ++compared;
    moved += said(cell) != said(after.cells[i]) ? 1 : 0;
  }
  EXPECT_GT(compared, 0U);
  if (leak) {
    EXPECT_GT(moved, 0U);
  } else {
    EXPECT_EQ(moved, 0U);
  }
}

TEST_F(Run, NoForecastKnowsTheFuture) {
  const Market market = two_symbols();
  Options options = small();
  options.stride = 1;
  options.scale_probe = 0;
  for (const Options& way : ways(options)) {
    for (const std::size_t origin : {61U, 64U, 67U}) plant(way, market, origin, false);
    plant(way, market, 62, true);
  }
}

TEST_F(Run, TheFirstBarIsTheOneAfterTheContext) {
  for (const Options& way : ways(small())) {
    const Result result = run(two_symbols(), way);
    for (const Cell& cell : result.cells) {
      const Symbol& symbol = result.symbols[cell.symbol];
      const std::size_t last =
          way.rolling == Rolling::one_step ? cell.bar - 1 : cell.bar - cell.step;
      EXPECT_EQ(cell.base, static_cast<double>(symbol.values_of(cell.target)[last]));
      EXPECT_EQ(cell.time, symbol.times[cell.bar]);
      EXPECT_EQ(cell.actual, static_cast<double>(symbol.values_of(cell.target)[cell.bar]));
    }
    // The last window ends with the last bar.
    EXPECT_EQ(result.cells.back().bar, result.symbols.back().bars - 1);
  }
}

TEST_F(Run, IdenticalContextsAreForecastOnce) {
  // 200 windows of 7 bars, each bar from the bars before it: 1400 forecasts, 206 contexts.
  const Market market = test::market_of({write("AA.csv", test::bars(300, 0))});
  Options options = small();
  options.rolling = Rolling::one_step;
  options.horizon = 7;
  options.stride = 1;
  options.windows = 200;
  const Result result = run(market, options);
  EXPECT_EQ(result.cells.size(), 1400U);
  EXPECT_EQ(result.statistics.requested, 1400U);
  EXPECT_EQ(result.statistics.distinct, 206U);
  EXPECT_EQ(result.statistics.forecast, 206U);
  // Each bar counts once in the measures of all steps.
  const std::vector<Metrics> metrics = measure(result, options);
  EXPECT_EQ(metrics[0].count, 206U);
  EXPECT_EQ(metrics[0].against[0].count, 206U);
  EXPECT_EQ(metrics[kSources].step, 1U);
  EXPECT_EQ(metrics[kSources].count, 200U);
}

TEST_F(Run, ACopyOfASymbolCostsNothing) {
  const Market market =
      test::market_of({write("AA.csv", test::bars(90, 0)), write("CC.csv", test::bars(90, 0))});
  const Result result = run(market, small());
  EXPECT_EQ(result.statistics.requested, 12U);
  EXPECT_EQ(result.statistics.forecast, 6U);
  for (std::size_t i = 0; i < result.cells.size() / 2; ++i) {
    EXPECT_EQ(said(result.cells[i]), said(result.cells[i + result.cells.size() / 2]));
  }
}

TEST_F(Run, BatchesAndNeighboursChangeNoBit) {
  const Market both = two_symbols();
  for (const Options& way : ways(small())) {
    const Result together = run(both, way);
    std::vector<Cell> apart;
    for (const Symbol& symbol : both.symbols) {
      for (const std::size_t windows : {1U, 6U}) {
        Market one;
        one.symbols = {symbol};
        Options options = way;
        options.windows = windows;
        const Result result = run(one, options);
        if (windows == 6) {
          apart.insert(apart.end(), result.cells.begin(), result.cells.end());
          continue;
        }
        // The last window alone.
        for (const Cell& cell : result.cells) {
          const auto same = std::ranges::find_if(together.cells, [&](const Cell& c) {
            return together.symbols[c.symbol].name == symbol.name && c.bar == cell.bar &&
                   c.target == cell.target && c.step == cell.step;
          });
          ASSERT_NE(same, together.cells.end());
          EXPECT_EQ(said(*same), said(cell));
        }
      }
    }
    ASSERT_EQ(together.cells.size(), apart.size());
    for (std::size_t i = 0; i < apart.size(); ++i) {
      EXPECT_EQ(said(together.cells[i]), said(apart[i]));
    }
  }
}

TEST_F(Run, AtScaleOneItSaysWhatTheForecasterSays) {
  const Market market = two_symbols();
  Options options = small();
  options.joint = true;
  const Result result = run(market, options);
  Forecaster forecaster = test::forecaster();
  for (std::size_t s = 0; s < market.symbols.size(); ++s) {
    const Symbol& symbol = market.symbols[s];
    const std::size_t origin = symbol.bars - 5;
    std::vector<float> values;
    for (std::size_t v = 0; v < 2; ++v) {
      const auto all = symbol.values_of(v).subspan(origin + 1 - 40, 40);
      values.insert(values.end(), all.begin(), all.end());
    }
    Series series;
    series.id = "any";
    series.variates = 2;
    series.steps = 40;
    series.values = values;
    ForecastOptions asked;
    asked.horizon = 4;
    asked.levels = {0.05, 0.5, 0.95};
    const Forecast forecast = forecaster.forecast({&series, 1}, asked).front();
    for (const Cell& cell : result.cells) {
      if (cell.symbol != s || cell.window != 5) continue;
      const std::size_t at = cell.target * 4 + cell.step - 1;
      EXPECT_EQ(static_cast<float>(cell.model.mean), forecast.mean[at]);
      EXPECT_EQ(static_cast<float>(cell.model.point), forecast.median[at]);
      EXPECT_EQ(cell.model.quantiles[0], forecast.quantiles[at]);
      EXPECT_EQ(cell.model.quantiles[18], forecast.quantiles[2 * 8 + at]);
    }
  }
}

// The model is shown 100 r instead of r and its answer is divided by 100: what comes back are
// prices, and the spread is that of the data, not of the model's smallest scale.
TEST_F(Run, InputScaleIsUndone) {
  Options options = small();
  options.parameters.transform = Transform::pct;
  const Result scaled = run(two_symbols({"close"}), options);
  EXPECT_EQ(scaled.scale_effect.contexts, 12U);
  EXPECT_EQ(scaled.scale_effect.swamped_at_one, 1.0);
  EXPECT_EQ(scaled.scale_effect.swamped_at_scale, 0.0);
  EXPECT_NE(scaled.scale_effect.width_at_one, scaled.scale_effect.width_at_scale);
  options.parameters.input_scale = 1;
  const Result one = run(two_symbols({"close"}), options);
  EXPECT_EQ(one.scale_effect.contexts, 0U);
}

/// The last window's first bar, by hand: the moves of the context, scaled, forecast, scaled back.
TEST_F(Run, WhatTheModelSaysIsScaledBackExactly) {
  const Market market = two_symbols({"close"});
  const auto all = market.symbols[0].values_of(0);
  const std::size_t origin = all.size() - 2;
  const double base = all[origin];
  for (const double scale : {1.0, 100.0, 37.0}) {
    for (const Transform transform : {Transform::none, Transform::pct, Transform::log_return}) {
      Options options = small();
      options.horizon = 1;
      options.parameters.transform = transform;
      options.parameters.input_scale = scale;
      std::vector<float> shown;
      for (std::size_t t = origin - 39; t <= origin; ++t) {
        const double ratio = static_cast<double>(all[t]) / static_cast<double>(all[t - 1]);
        const double value = transform == Transform::none  ? static_cast<double>(all[t])
                             : transform == Transform::pct ? ratio - 1
                                                           : std::log(ratio);
        shown.push_back(static_cast<float>(value * scale));
      }
      Series series;
      series.id = "any";
      series.steps = shown.size();
      series.values = shown;
      ForecastOptions asked;
      as_reference(asked);
      asked.horizon = 1;
      asked.levels = {0.05, 0.5, 0.95};
      Forecaster forecaster = test::forecaster();
      const Forecast said = forecaster.forecast({&series, 1}, asked).front();
      const auto value_of = [&](float x) {
        const double y = static_cast<double>(x) / scale;
        if (transform == Transform::none) return y;
        return transform == Transform::pct ? base * (1 + y) : base * std::exp(y);
      };
      const Cell cell = run(market, options).cells[5];
      ASSERT_EQ(cell.bar, origin + 1);
      for (const auto& [found, wanted] :
           {std::pair(cell.model.point, said.median[0]), std::pair(cell.model.mean, said.mean[0]),
            std::pair(static_cast<double>(cell.model.quantiles[0]), said.quantiles[0]),
            std::pair(static_cast<double>(cell.model.quantiles[18]), said.quantiles[2])}) {
        EXPECT_FLOAT_EQ(static_cast<float>(found), static_cast<float>(value_of(wanted)));
      }
    }
  }
}

TEST_F(Run, AtScaleOneReturnsAreForecastAsTheyAre) {
  const Market market = two_symbols({"close"});
  Options options = small();
  options.horizon = 1;
  options.parameters.transform = Transform::log_return;
  options.parameters.input_scale = 1;
  const Result result = run(market, options);
  Forecaster forecaster = test::forecaster();
  const auto all = market.symbols[0].values_of(0);
  const std::size_t origin = all.size() - 2;
  std::vector<float> returns;
  for (std::size_t t = origin - 39; t <= origin; ++t) {
    returns.push_back(static_cast<float>(
        std::log(static_cast<double>(all[t]) / static_cast<double>(all[t - 1]))));
  }
  Series series;
  series.id = "any";
  series.steps = returns.size();
  series.values = returns;
  ForecastOptions asked;
  as_reference(asked);
  asked.horizon = 1;
  const Forecast forecast = forecaster.forecast({&series, 1}, asked).front();
  const Cell& cell = result.cells[5];
  EXPECT_EQ(cell.bar, all.size() - 1);
  EXPECT_EQ(static_cast<float>(cell.model.point),
            static_cast<float>(cell.base * std::exp(static_cast<double>(forecast.median[0]))));
}

TEST_F(Run, QuantilesAscend) {
  for (const Options& way : ways(small())) {
    for (const Cell& cell : run(two_symbols(), way).cells) {
      EXPECT_TRUE(std::ranges::is_sorted(cell.model.quantiles));
    }
  }
}

TEST_F(Run, EveryAggregateIsBetweenTheQuantilesThatSurroundIt) {
  for (const char* spec :
       {"mean", "median", "quantile_0.3", "trimmed_mean_10", "lower_trimmed_mean_10",
        "upper_trimmed_mean_10", "mean_minus_std_0.1", "mean_plus_std_0.1",
        "mean_quantile_mix_0.4_0.5", "quantile_plus_std_0.4_0.1"}) {
    for (const Transform transform : {Transform::none, Transform::pct, Transform::log_return}) {
      Options options = small();
      options.parameters.aggregate = spec;
      options.parameters.transform = transform;
      for (const Cell& cell : run(two_symbols({"close"}), options).cells) {
        EXPECT_GT(cell.model.point, cell.model.quantiles[0]) << spec;
        EXPECT_LT(cell.model.point, cell.model.quantiles[18]) << spec;
      }
    }
  }
}

TEST_F(Run, TheCacheChangesNoBitAndSavesTheWork) {
  for (Options way : ways(small())) {
    way.cache_dir = path("cache");
    const Result first = run(two_symbols(), way);
    EXPECT_EQ(first.statistics.cache_hits, 0U);
    const Result again = run(two_symbols(), way);
    EXPECT_EQ(again.statistics.forecast, 0U);
    EXPECT_EQ(again.statistics.cache_hits, first.statistics.distinct);
    ASSERT_EQ(first.cells.size(), again.cells.size());
    for (std::size_t i = 0; i < first.cells.size(); ++i) {
      EXPECT_EQ(said(first.cells[i]), said(again.cells[i]));
    }
    std::filesystem::remove_all(path("cache"));
  }
}

TEST_F(Run, WhatChangesAForecastChangesItsKey) {
  const Market market = two_symbols({"close"});
  Options options = small();
  options.scale_probe = 0;
  options.cache_dir = path("cache");
  (void)run(market, options);
  std::vector<Options> others(13, options);
  others[0].seed = 6;
  others[1].parameters.samples = 17;
  others[2].horizon = 3;
  others[3].parameters.context = 39;
  others[4].parameters.transform = Transform::pct;
  others[5].parameters.aggregate = "mean";
  others[6].decode = Decode::uncached;
  others[7].parameters.input_scale = 2;
  others[8].decoding.decode_block_size = 8;
  others[9].decoding.has_missing_values = false;
  others[10].decoding.scaler_fallback_min_obs = 1;
  others[11].decoding.quantile_real_cap_k = 1;
  others[12].tails = Tails::exponential;
  for (std::size_t i = 0; i < others.size(); ++i) {
    EXPECT_EQ(run(market, others[i]).statistics.cache_hits, 0U) << i;
  }
  const Model another = toto::test::make_model(toto::test::spec_config(), false, {}, 9);
  Model::Impl& impl = const_cast<Model::Impl&>(another.impl());
  impl.content_hash = "another";
  Forecaster by_model(another);
  EXPECT_EQ(backtest::run(market, by_model, options).statistics.cache_hits, 0U);
  // The same weights under another config.json.
  Toto1Config config = toto::test::spec_config();
  config.scale_factor_exponent = 9;
  const Model reconfigured = toto::test::make_model(config, false, {}, 0);
  const Model original = toto::test::make_model(toto::test::spec_config(), false, {}, 0);
  const_cast<Model::Impl&>(reconfigured.impl()).content_hash = original.impl().content_hash;
  Forecaster by_config(reconfigured);
  EXPECT_EQ(backtest::run(market, by_config, options).statistics.cache_hits, 0U);
  LoadOptions eager;
  eager.mode = Mode::eager;
  Forecaster by_mode(toto::test::make_model(toto::test::spec_config(), false, {}, 0, eager));
  EXPECT_EQ(backtest::run(market, by_mode, options).statistics.cache_hits, 0U);
  const auto apart = toto::test::make_impl(toto::test::spec_config());
  apart->kv_cache = ContextCache::per_trajectory;
  Forecaster by_cache{Model(apart)};
  EXPECT_EQ(backtest::run(market, by_cache, options).statistics.cache_hits, 0U);
  EXPECT_EQ(run(market, options).statistics.forecast, 0U);
}

TEST_F(Run, TrimmedMeansOfToto2AreThoseOfItsQuantiles) {
  const Market market = two_symbols({"close"});
  Forecaster forecaster(Model::load({.model = toto::test::golden("toto2-tiny-uni")}));
  Options options = small();
  struct Case {
    const char* spec;
    double from, to;
  };
  for (const Case& one : {Case{"trimmed_mean_10", 0.1, 0.9},
                          {"trimmed_mean_0.23", 0.23, 0.77},
                          {"lower_trimmed_mean_10", 0, 0.9},
                          {"upper_trimmed_mean_40", 0.4, 1}}) {
    options.parameters.aggregate = one.spec;
    const Result result = backtest::run(market, forecaster, options);
    EXPECT_FALSE(result.cells.empty());
    for (const Cell& cell : result.cells) {
      // The mean of many levels, of the line through the quantiles at 0.05, 0.1, ... 0.95.
      constexpr int kParts = 10'000;
      double sum = 0;
      for (int i = 0; i < kParts; ++i) {
        const double level = one.from + (one.to - one.from) * (i + 0.5) / kParts;
        const double place = std::clamp(level / 0.05 - 1, 0.0, 18.0);
        const auto low = std::min<std::size_t>(static_cast<std::size_t>(place), 17);
        const double share = place - static_cast<double>(low);
        sum += (1 - share) * cell.model.quantiles[low] + share * cell.model.quantiles[low + 1];
      }
      EXPECT_NEAR(cell.model.point, sum / kParts, 1e-5 * (1 + std::abs(cell.model.point)))
          << one.spec;
    }
  }
}

TEST_F(Run, BlocksOfToto2ReachTheModel) {
  const Market market = two_symbols({"close"});
  Forecaster forecaster(Model::load({.model = toto::test::golden("toto2-tiny-uni")}));
  Options options = small();
  options.horizon = 16;  // two patches
  const Result one_pass = backtest::run(market, forecaster, options);
  options.decoding.decode_block_size = 8;
  const Result blocks = backtest::run(market, forecaster, options);
  ASSERT_EQ(one_pass.cells.size(), blocks.cells.size());
  std::size_t moved = 0;
  for (std::size_t i = 0; i < blocks.cells.size(); ++i) {
    const bool first_block = blocks.cells[i].step <= 8;
    const bool same = blocks.cells[i].model.point == one_pass.cells[i].model.point;
    if (!first_block) moved += same ? 0 : 1;
  }
  EXPECT_GT(moved, 0U);
}

TEST_F(Run, BlocksOfToto2ReachTheNextForecast) {
  Forecaster forecaster(Model::load({.model = toto::test::golden("toto2-tiny-uni")}));
  data::TimeSeries series;
  series.id = "AA";
  series.variates = {"close"};
  series.steps = 40;
  for (std::size_t t = 0; t < series.steps; ++t) {
    series.values.push_back(static_cast<float>(test::price(t, 0)));
  }
  series.mask.assign(series.steps, 1);
  const auto medians = [&](std::size_t block) {
    ForecastOptions asked;
    asked.horizon = 16;
    asked.decoding.decode_block_size = block;
    const Parameters parameters;
    return forecast_next(forecaster, {&series, 1}, {&parameters, 1}, asked).front().median;
  };
  EXPECT_EQ(medians(0), medians(16));
  EXPECT_NE(medians(0), medians(8));
}

TEST_F(Run, AnInterruptedRunGoesOnWhereItStopped) {
  Options options = small();
  options.scale_probe = 0;
  options.cache_dir = path("cache");
  options.windows = 0;
  options.stride = 1;
  const Market market = test::market_of({write("AA.csv", test::bars(400, 0))});
  options.progress = [](std::size_t done, std::size_t) { return done < 300; };
  try {
    (void)run(market, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "interrupted");
  }
  options.progress = {};
  const Result rest = run(market, options);
  EXPECT_EQ(rest.statistics.cache_hits, 256U);
  options.cache_dir.clear();
  const Result whole = run(market, options);
  for (std::size_t i = 0; i < whole.cells.size(); ++i) {
    EXPECT_EQ(said(whole.cells[i]), said(rest.cells[i]));
  }
}

}  // namespace
}  // namespace toto::backtest
