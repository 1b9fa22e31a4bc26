// SPDX-License-Identifier: Apache-2.0
// Every measure against scikit-learn, utilsforecast, scipy and the package dieboldmariano.
#include "tools/backtest/measures.h"

#include "expected.h"
#include "tools/backtest/baselines.h"

namespace toto::backtest {
namespace {

using test::expect_same;
using test::expected;
using Numbers = std::vector<double>;

/// A context of which everything is observed; it must outlive what is returned.
Context whole(const std::vector<float>& values) {
  static const std::vector<std::uint8_t> all(1000, 1);
  return {values, std::span(all).first(values.size())};
}

TEST(Measures, AgreeWithIndependentImplementations) {
  for (const auto& one : expected().at("measures")) {
    const auto actual = one.at("actual").get<Numbers>();
    const auto forecast = one.at("forecast").get<Numbers>();
    const auto base = one.at("base").get<Numbers>();
    const auto quantiles = one.at("quantiles").get<std::vector<Numbers>>();
    const auto& want = one.at("expected");
    const auto check = [&](const char* name, double found) {
      expect_same(found, want.at(name).get<double>(), name);
    };
    check("mae", mean_absolute_error(actual, forecast));
    check("mae_utilsforecast", mean_absolute_error(actual, forecast));
    check("rmse", root_mean_square_error(actual, forecast));
    check("mape", mean_absolute_percentage_error(actual, forecast));
    check("smape", symmetric_percentage_error(actual, forecast));
    double wql = 0;
    double crps = 0;
    ASSERT_EQ(quantiles.size(), kLevels);
    for (std::size_t q = 0; q < kLevels; ++q) {
      const double level = levels()[q];
      EXPECT_EQ(level, expected().at("levels")[q].get<double>());
      const double loss = pinball_loss(actual, quantiles[q], level);
      expect_same(loss, want.at("pinball")[q].get<double>(), "pinball");
      expect_same(loss, want.at("pinball_utilsforecast")[q].get<double>(), "pinball");
      expect_same(share_at_or_below(actual, quantiles[q]), want.at("below")[q].get<double>(),
                  "below");
      wql += weighted_quantile_loss(actual, quantiles[q], level) / kLevels;
      crps += 2 * loss / kLevels;
    }
    check("wql", wql);
    check("crps", crps);
    check("coverage_80", coverage(actual, quantiles[1], quantiles[17]));
    const Proportion right = direction(actual, forecast, base);
    EXPECT_EQ(right.count, actual.size() - 1);  // one did not move
    check("direction", right.share);
    check("direction_low", right.low);
    check("direction_high", right.high);
  }
}

TEST(Measures, AForecastOfNoMoveIsNoWrongDirection) {
  const Numbers base = {10, 10, 10, 10}, actual = {11, 9, 11, 10}, forecast = {10, 10, 12, 11};
  const Proportion right = direction(actual, forecast, base);
  EXPECT_EQ(right.count, 1U);  // the third: the others say nothing, or nothing happened
  EXPECT_EQ(right.right, 1U);
}

TEST(Measures, ScaleByTheSeasonalDifferencesOfTheContext) {
  for (const auto& one : expected().at("measures")) {
    const auto actual = one.at("actual").get<Numbers>();
    const auto forecast = one.at("forecast").get<Numbers>();
    const auto train = one.at("train").get<Numbers>();
    const auto season = one.at("season").get<std::size_t>();
    double scale = 0;  // in double: contexts are float, the reference's history is not
    for (std::size_t t = season; t < train.size(); ++t) {
      scale += std::abs(train[t] - train[t - season]) / static_cast<double>(train.size() - season);
    }
    const Numbers scales(actual.size(), scale);
    expect_same(mean_scaled_error(actual, forecast, scales),
                one.at("expected").at("mase").get<double>(), "mase");
    const std::vector<float> context(train.begin(), train.end());
    EXPECT_NEAR(scale_of(whole(context), season).value, scale, 1e-5 * scale);
  }
  const std::vector<float> four = {1, 4, 2, 8};
  EXPECT_EQ(scale_of(whole(four), 2).value, 2.5);
}

TEST(Measures, WithoutASeasonTheScaleIsThatOfSingleMoves) {
  const std::vector<float> y = {1, 4, 2};
  EXPECT_TRUE(scale_of(whole(y), 2).seasonal);
  for (const std::size_t season : {3U, 7U}) {
    EXPECT_EQ(scale_of(whole(y), season).value, 2.5);
    EXPECT_FALSE(scale_of(whole(y), season).seasonal);
  }
  const std::vector<float> one = {4};
  EXPECT_EQ(scale_of(whole(one), 2).value, 0);
}

TEST(Measures, WhatWasNotObservedHasNoPartInScalesAndSpreads) {
  // The third one repeats the value before it; the moves that were seen are 1 and 2.
  const std::vector<float> y = {3, 4, 4, 6, 8};
  const std::vector<std::uint8_t> mask = {1, 1, 0, 1, 1};
  const Context context = {y, mask};
  EXPECT_EQ(scale_of(context, 1).value, 1.5);
  EXPECT_EQ(scale_of(context, 2).value, 2);  // from 4 to 6
  EXPECT_EQ(baseline(Source::last_value, context, 1, 4).sigma, 2 * std::sqrt((1.0 + 4.0) / 2));
  // The line from the first to the last value that was seen goes on.
  const std::vector<float> late = {9, 1, 2, 3, 3, 3};
  const std::vector<std::uint8_t> seen = {0, 1, 1, 1, 0, 0};
  EXPECT_EQ(baseline(Source::drift, {late, seen}, 1, 2).point, 3 + 4);
}

TEST(Measures, PairedTestAgrees) {
  for (const auto& one : expected().at("paired")) {
    const PairedTest found =
        diebold_mariano(one.at("loss").get<Numbers>(), one.at("other").get<Numbers>(),
                        one.at("overlap").get<std::size_t>());
    expect_same(found.statistic, one.at("statistic").get<double>(), "statistic");
    expect_same(found.p_value, one.at("p_value").get<double>(), "p");
  }
  for (const auto& one : expected().at("student")) {
    expect_same(two_sided_p(one.at("t").get<double>(), one.at("df").get<double>()),
                one.at("p").get<double>(), "student");
  }
}

TEST(Measures, TooFewLossesSayNothing) {
  Numbers loss, other;
  for (int i = 0; i < 30; ++i) {
    loss.push_back(1 + i % 3);
    other.push_back(2 + i % 5);
  }
  const auto first = [&](std::size_t count, std::size_t overlap) {
    return paired_test(Values(loss).first(count), Values(other).first(count), overlap);
  };
  // As many losses as may be correlated: p would be 1 by construction.
  EXPECT_EQ(diebold_mariano(Values(loss).first(5), Values(other).first(5), 4).p_value, 1);
  for (const auto& [count, overlap, needed] :
       {std::tuple(5U, 4U, 15U), std::tuple(9U, 0U, 10U), std::tuple(29U, 9U, 30U)}) {
    const PairedTest test = first(count, overlap);
    EXPECT_TRUE(test.too_few());
    EXPECT_EQ(test.count, count);
    EXPECT_EQ(test.needed, needed);
    EXPECT_TRUE(std::isnan(test.p_value));
    EXPECT_TRUE(std::isnan(test.statistic));
  }
  EXPECT_FALSE(first(10, 0).too_few());
  EXPECT_EQ(first(10, 0).p_value,
            diebold_mariano(Values(loss).first(10), Values(other).first(10), 0).p_value);
  EXPECT_FALSE(first(30, 9).too_few());
}

TEST(Measures, PairedTestOfEqualLossesSaysNothing) {
  const Numbers loss = {1, 2, 3, 4};
  EXPECT_TRUE(std::isnan(diebold_mariano(loss, loss, 2).p_value));
  EXPECT_TRUE(std::isnan(diebold_mariano({}, {}, 0).p_value));
  // A sum of autocovariances below 0 does not make the variance negative.
  const PairedTest swings = diebold_mariano(Numbers{3, 0, 3, 0, 3, 0.5}, Numbers(6, 1.0), 1);
  EXPECT_TRUE(std::isfinite(swings.p_value));
}

TEST(Measures, LeaveOutWhatIsNotDefined) {
  const Numbers none;
  EXPECT_TRUE(std::isnan(mean_absolute_error(none, none)));
  EXPECT_TRUE(std::isnan(wilson(0, 0).share));
  EXPECT_EQ(mean_absolute_percentage_error(Numbers{0, 2}, Numbers{1, 1}), 50);
  EXPECT_EQ(mean_scaled_error(Numbers{5, 2}, Numbers{1, 1}, Numbers{0, 4}), 0.25);
  EXPECT_EQ(symmetric_percentage_error(Numbers{0}, Numbers{0}), 0);
  EXPECT_EQ(wilson(0, 10).low, 0);
  EXPECT_EQ(wilson(10, 10).high, 1);
}

TEST(Measures, SeeEveryWorseForecast) {
  // A measure that could not fail would not move either.
  const Numbers actual = {10, 12, 9, 14};
  const Numbers near = {10.5, 11.5, 9.5, 13};
  const Numbers far = {12, 9, 13, 10};
  EXPECT_LT(mean_absolute_error(actual, near), mean_absolute_error(actual, far));
  EXPECT_LT(root_mean_square_error(actual, near), root_mean_square_error(actual, far));
  EXPECT_LT(pinball_loss(actual, near, 0.3), pinball_loss(actual, far, 0.3));
}

TEST(Baselines, AgreeWithStatsforecast) {
  for (std::size_t q = 0; q < kLevels; ++q) {
    EXPECT_NEAR(normal_quantile(q), expected().at("normal_quantiles")[q].get<double>(), 1e-14);
  }
  for (const auto& one : expected().at("baselines")) {
    const auto y = one.at("y").get<std::vector<float>>();
    const auto season = one.at("season").get<std::size_t>();
    for (const Source source : {Source::last_value, Source::seasonal_naive, Source::drift}) {
      const auto& want = one.at(std::string(word(source)));
      for (std::size_t h = 1; h <= one.at("horizon").get<std::size_t>(); ++h) {
        const Baseline found = baseline(source, whole(y), season, h);
        const std::string what(word(source));
        expect_same(found.point, want.at("point")[h - 1].get<double>(), what);
        expect_same(found.point + found.sigma * normal_quantile(18),
                    want.at("q95")[h - 1].get<double>(), what + " q95");
        expect_same(found.point + found.sigma * normal_quantile(0),
                    want.at("q5")[h - 1].get<double>(), what + " q5");
      }
    }
  }
}

TEST(Baselines, ShortContextsHaveTheirLastValue) {
  const std::vector<float> y = {3, 5};
  const std::vector<float> one = {4};
  EXPECT_EQ(baseline(Source::seasonal_naive, whole(y), 7, 1).point, 5);
  EXPECT_EQ(baseline(Source::drift, whole(one), 7, 3).point, 4);
  EXPECT_EQ(baseline(Source::last_value, whole(one), 7, 3).sigma, 0);
}

}  // namespace
}  // namespace toto::backtest
