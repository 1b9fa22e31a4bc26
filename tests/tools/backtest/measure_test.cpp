// SPDX-License-Identifier: Apache-2.0
// From the cells of an evaluation to its tables, against NumPy: tests/data/backtest/measured.json,
// by make_measured.py. Two symbols whose windows begin on different days, one with two targets, one
// with a step that was never observed, and one with another target and too few windows.
#include "data/calendar.h"
#include "expected.h"
#include "support/paths.h"
#include "tools/backtest/report_data.h"
#include "toto/tools/backtest.hpp"

namespace toto::backtest {
namespace {

using nlohmann::json;
using test::expect_same;

const json& measured() {
  static const json all = [] {
    std::ifstream file(toto::test::data_path("backtest/measured.json"));
    return json::parse(file);
  }();
  return all;
}

Result evaluation() {
  Result result;
  result.horizon = measured().at("horizon").get<std::size_t>();
  for (const json& one : measured().at("symbols")) {
    Symbol symbol;
    symbol.name = one.at("name").get<std::string>();
    symbol.targets = one.at("targets").get<std::vector<std::string>>();
    symbol.bars = one.at("bars").get<std::size_t>();
    symbol.style.form = data::TimeStyle::Form::date;
    for (std::size_t t = 0; t < symbol.bars; ++t) {
      const auto day = one.at("first_day").get<std::int64_t>() + static_cast<std::int64_t>(t);
      symbol.times.push_back(day * data::kDayMs);
    }
    symbol.values.assign(symbol.bars * symbol.targets.size(), 1);
    symbol.mask.assign(symbol.values.size(), 1);
    result.symbols.push_back(std::move(symbol));
  }
  for (const json& one : measured().at("cells")) {
    Cell cell;
    cell.symbol = one.at("symbol").get<std::uint32_t>();
    cell.target = one.at("target").get<std::uint32_t>();
    cell.window = one.at("window").get<std::uint32_t>();
    cell.step = one.at("step").get<std::uint32_t>();
    cell.bar = one.at("bar").get<std::uint32_t>();
    cell.time = one.at("day").get<std::int64_t>() * data::kDayMs;
    cell.base = one.at("base").get<double>();
    cell.scale = one.at("scale").get<double>();
    cell.actual = one.at("actual").is_null() ? NAN : one.at("actual").get<double>();
    cell.model.point = one.at("point").get<double>();
    cell.model.quantiles = one.at("quantiles").get<std::array<float, kLevels>>();
    cell.baseline = one.at("baseline").get<std::array<double, kSources - 1>>();
    cell.baseline_sigma = one.at("sigma").get<std::array<double, kSources - 1>>();
    result.cells.push_back(cell);
  }
  return result;
}

Options options() {
  Options all;
  all.horizon = measured().at("horizon").get<std::size_t>();
  all.stride = measured().at("stride").get<std::size_t>();
  return all;
}

/// null is NaN.
void expect_number(double found, const json& wanted, const std::string& what) {
  if (wanted.is_null()) {
    EXPECT_TRUE(std::isnan(found)) << what;
  } else {
    expect_same(found, wanted.get<double>(), what);
  }
}

void expect_tests(const Metrics& m, const json& wanted, const std::string& what) {
  for (std::size_t b = 0; b + 1 < kSources; ++b) {
    EXPECT_EQ(m.against[b].count, wanted[b][0].get<std::size_t>()) << what;
    EXPECT_EQ(m.against[b].needed, wanted[b][1].get<std::size_t>()) << what;
    expect_number(m.against[b].statistic, wanted[b][2], what + " statistic");
    expect_number(m.against[b].p_value, wanted[b][3], what + " p");
  }
}

TEST(Measure, AgreesWithNumPyFromEndToEnd) {
  const std::vector<Metrics> found = measure(evaluation(), options());
  const json& rows = measured().at("rows");
  ASSERT_EQ(found.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Metrics& m = found[i];
    const json& row = rows[i];
    const std::string what = m.symbol + "/" + m.target + "/" + std::to_string(m.step) + "/" +
                             row.at("forecaster").get<std::string>();
    ASSERT_EQ(m.symbol, row.at("symbol").get<std::string>()) << what;
    ASSERT_EQ(m.target, row.at("target").get<std::string>()) << what;
    ASSERT_EQ(m.step, row.at("step").get<std::size_t>()) << what;
    ASSERT_EQ(word(m.source), row.at("forecaster").get<std::string>()) << what;
    EXPECT_EQ(m.count, row.at("count").get<std::size_t>()) << what;
    for (const auto& [name, value] :
         {std::pair("mae", m.mae), std::pair("rmse", m.rmse), std::pair("mape", m.mape),
          std::pair("smape", m.smape), std::pair("mase", m.mase),
          std::pair("return_mae", m.return_mae), std::pair("wql", m.wql), std::pair("crps", m.crps),
          std::pair("direction", m.direction)}) {
      expect_number(value, row.at(name), what + " " + name);
    }
    EXPECT_EQ(m.directions, row.at("directions").get<std::size_t>()) << what;
    if (row.contains("direction_low")) {
      expect_number(m.direction_low, row.at("direction_low"), what + " low");
      expect_number(m.direction_high, row.at("direction_high"), what + " high");
    }
    for (std::size_t k = 0; k < 3; ++k) {
      expect_number(m.coverage[k], row.at("coverage")[k], what + " coverage");
      expect_number(m.width[k], row.at("width")[k], what + " width");
    }
    for (std::size_t q = 0; q < kLevels; ++q) {
      expect_number(m.pinball[q], row.at("pinball")[q], what + " pinball");
      expect_number(m.below[q], row.at("below")[q], what + " below");
    }
    if (row.contains("against")) expect_tests(m, row.at("against"), what);
  }
}

TEST(Measure, StepsKeepTheirNumbersInThePage) {
  const Result result = evaluation();
  const auto groups = report_groups(result, measure(result, options()));
  EXPECT_EQ(groups.size(), 1U + 3 + 3 + 1 + 1);
  for (const auto& group : groups) {
    const auto& steps = group.at("steps").at("mase")[0];
    ASSERT_EQ(steps.size(), 3U);
    EXPECT_EQ(steps[1].is_null(), group.at("symbol") == "B");  // step 2 was never observed
    EXPECT_FALSE(steps[2].is_null());
  }
}

TEST(Measure, ThePageHasAnEndWhateverIsEvaluated) {
  EXPECT_EQ(report_steps(4), (std::vector<std::size_t>{1, 2, 3, 4}));
  EXPECT_EQ(report_steps(100'000).size(), kMaxSteps);
  EXPECT_EQ(report_steps(100'000).back(), 100'000U);
  Result many;
  many.horizon = 1;
  std::vector<Metrics> metrics(kSources * 1000);
  for (std::size_t s = 0; s < 1000; ++s) {
    Symbol symbol;
    symbol.name = std::to_string(s);
    symbol.targets = {"close"};
    symbol.bars = 3000;
    symbol.values.assign(3000, 1);
    symbol.mask.assign(3000, 1);
    symbol.times.assign(3000, 0);
    for (std::size_t k = 0; k < kSources; ++k) metrics[kSources * s + k].symbol = symbol.name;
    for (std::uint32_t w = 0; w < 30; ++w) {
      Cell cell;
      cell.symbol = static_cast<std::uint32_t>(s);
      cell.window = w;
      cell.bar = 2900 + w;
      many.cells.push_back(cell);
    }
    many.symbols.push_back(std::move(symbol));
  }
  EXPECT_EQ(count_groups(metrics), 1000U);
  EXPECT_EQ(report_groups(many, metrics).size(), kMaxGroups);
  EXPECT_EQ(count_fans(many), 1000U);
  const auto fans = report_fans(many);
  EXPECT_EQ(fans.size(), 60U);
  EXPECT_EQ(fans[0].at("of"), 30U);
  EXPECT_LT(fans.dump().size(), 3'000'000U);
}

}  // namespace
}  // namespace toto::backtest
