// SPDX-License-Identifier: Apache-2.0
// The widths of bands that would have been right.
#include "tools/backtest/band_width.h"

#include <algorithm>
#include <cmath>

#include "market_file.h"

namespace toto::backtest {
namespace {

std::vector<BandCell> cells(std::size_t count, double below, double above) {
  std::vector<BandCell> all;
  for (std::size_t i = 0; i < count; ++i) {
    // Evenly spread probabilities of a uniform around 10, [-above, below] wide.
    const double p = (static_cast<double>(i * 7 % count) + 0.5) / static_cast<double>(count);
    const double off = p < 0.5 ? below * (2 * p - 1) : above * (2 * p - 1);
    all.push_back({8, 10, 13, 10 + off, i / 5});  // 5 bars a window
  }
  return all;
}

TEST(BandWidth, IsTheRankOfTheDistances) {
  const std::vector<BandCell> all = cells(500, 5, 2);
  const Widths found = find_widths(all, {5, 5});
  std::vector<double> below, above;
  for (const BandCell& cell : all) {
    below.push_back((cell.median - cell.actual) / 2);
    above.push_back((cell.actual - cell.median) / 3);
  }
  std::ranges::sort(below);
  std::ranges::sort(above);
  // ceil(501 * 0.9) = 451; a hundred windows apart
  EXPECT_DOUBLE_EQ(found.below, std::pow(below[450], 100.0 / 110));
  EXPECT_DOUBLE_EQ(found.above, std::pow(above[450], 100.0 / 110));
  // With the ranks alone a tenth is beyond each side.
  EXPECT_EQ(std::ranges::count_if(below, [&](double x) { return x > below[450]; }), 49);
  // Windows that overlap say less.
  EXPECT_DOUBLE_EQ(find_widths(all, {5, 1}).below, std::pow(below[450], 20.0 / 30));
}

/// Observations of the distribution that the band is of.
TEST(BandWidth, StaysWhereOnlyChanceIsOff) {
  std::vector<BandCell> all;
  for (std::size_t i = 0; i < 300; ++i) {
    const double p = (static_cast<double>(i * 7 % 300) + 0.5) / 300;
    all.push_back({-0.8, 0, 0.8, 2 * p - 1, i / 5});  // uniform, 0.1 beyond each side
  }
  all[0].actual = all[1].actual = 5;
  EXPECT_EQ(find_widths(all, {5, 5}).below, 1);
  EXPECT_EQ(find_widths(all, {5, 5}).above, 1);
}

TEST(BandWidth, IsOneWhereLittleIsKnownAndNeverWild) {
  const std::vector<BandCell> all = cells(500, 5, 2);
  EXPECT_EQ(find_widths(std::span(all).first(5 * (kFewestWindows - 1)), {5, 5}).below, 1);
  EXPECT_NE(find_widths(std::span(all).first(5 * kFewestWindows), {5, 5}).below, 1);
  EXPECT_EQ(find_widths({}, {5, 5}).above, 1);
  const Widths far = find_widths(cells(500, 500, 0.001), {5, 5});
  EXPECT_DOUBLE_EQ(far.below, std::pow(4, 100.0 / 110));
  EXPECT_DOUBLE_EQ(far.above, std::pow(0.25, 100.0 / 110));
  std::vector<BandCell> points;
  for (std::size_t i = 0; i < 100; ++i) points.push_back({1, 1, 1, 2, i});
  EXPECT_DOUBLE_EQ(find_widths(points, {1, 1}).above, std::pow(4, 100.0 / 110));
}

TEST(BandWidth, StretchesAroundTheMedian) {
  Parameters p;
  p.width_below = 2;
  p.width_above = 0.5;
  const Wanted wanted = {{Aggregate{}}, {0.1, 0.5, 0.9}};
  std::vector<float> rows = {7, 8, 4, 10, 14, 7, 8, -6, -5, 5};
  stretch(rows, wanted, 3, p);
  EXPECT_EQ(rows, (std::vector<float>{7, 8, -2, 10, 12, 7, 8, -7, -5, 0}));
  std::vector<float> same = rows;
  stretch(same, wanted, 3, Parameters{});
  EXPECT_EQ(same, rows);
}

TEST(BandWidth, ScoreIsCoverageAndPinball) {
  BandScore score;
  std::vector<float> quantiles;
  for (const double level : levels()) quantiles.push_back(static_cast<float>(20 * level));
  score.add(quantiles, 2, 2);   // at the lower limit
  score.add(quantiles, 19, 2);  // beyond the upper one
  EXPECT_EQ(score.coverage(), 0.5);
  double sum = 0;
  for (const double actual : {2.0, 19.0}) {
    for (std::size_t q = 0; q < kLevels; ++q) {
      const double off = actual - double{quantiles[q]};
      sum += off > 0 ? levels()[q] * off : (levels()[q] - 1) * off;
    }
  }
  EXPECT_NEAR(score.loss(), sum / kLevels / 2 / 2, 1e-12);
}

class TunedWidths : public test::InFolder {};

/// Written, read, and applied by backtests and forecasts.
TEST_F(TunedWidths, AreWrittenReadAndApplied) {
  const Market market = test::market_of({write("in/AA.csv", test::bars(220, 0))});
  Options options;
  options.parameters.context = 40;
  options.parameters.samples = 8;
  options.horizon = 3;
  Candidates candidates;
  candidates.contexts = {40};
  candidates.samples = {8};
  candidates.transforms = {Transform::none};
  candidates.aggregates = {"median"};
  candidates.validation_windows = 30;
  candidates.test_windows = 10;
  Forecaster forecaster = test::forecaster();
  Tuning tuning = tune(market, forecaster, options, candidates);
  Tuned& tuned = tuning.symbols.at(0);
  EXPECT_GE(tuned.test_coverage, 0);
  tuned.chosen.width_below = 0.5;
  tuned.chosen.width_above = 2.5;

  std::string text;
  write_parameters([&](std::string_view piece) { text += piece; }, tuning, options, {});
  const auto read = read_parameters(write("p.json", text));
  EXPECT_EQ(read.at("AA"), tuned.chosen);

  options.windows = 10;
  const Result as_is = run(market, forecaster, options);
  options.by_symbol = read;
  const Result with = run(market, forecaster, options);
  ASSERT_EQ(as_is.cells.size(), with.cells.size());
  double inside = 0;
  for (std::size_t i = 0; i < with.cells.size(); ++i) {
    const auto& a = as_is.cells[i].model.quantiles;
    const auto& b = with.cells[i].model.quantiles;
    const double median = a[kLevels / 2];
    EXPECT_EQ(b[kLevels / 2], a[kLevels / 2]);
    EXPECT_EQ(b[1], static_cast<float>(median + tuned.chosen.width_below * (a[1] - median)));
    EXPECT_EQ(b[17], static_cast<float>(median + tuned.chosen.width_above * (a[17] - median)));
    inside += with.cells[i].actual >= double{a[1]} && with.cells[i].actual <= double{a[17]} ? 1 : 0;
  }
  EXPECT_NEAR(tuned.test_coverage_as_is, inside / static_cast<double>(with.cells.size()), 1e-12);
}

}  // namespace
}  // namespace toto::backtest
