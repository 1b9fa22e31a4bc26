// SPDX-License-Identifier: Apache-2.0
// A level that float32 has no digits left for: every command gives what it gives at level 0, plus
// the level.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/program.h"

namespace toto::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kRows = 400;
constexpr std::int64_t kLevels[] = {1'000'000, 10'000'000, 1'000'000'000, 1'000'000'000'000};

/// Thousandths of a season with noise; step 350 is an anomaly.
std::int64_t thousandths(std::size_t t) {
  const double noise = static_cast<double>((t * 7919 + 13) % 101) / 101 - 0.5;
  const double season = 2 * std::sin(static_cast<double>(t) * 2 * 3.14159265 / 24);
  return std::llround(1000 * (season + noise + (t == 350 ? 12 : 0)));
}

/// level + thousandths, in decimal digits that are exact.
std::string digits(std::int64_t level, std::int64_t more) {
  const std::int64_t all = level * 1000 + more;
  const std::int64_t size = all < 0 ? -all : all;
  char text[40];
  std::snprintf(text, sizeof text, "%s%lld.%03lld", all < 0 ? "-" : "",
                static_cast<long long>(size / 1000), static_cast<long long>(size % 1000));
  return text;
}

std::string stamp(std::size_t t) { return std::to_string(1'700'006'400 + 3600 * t); }

std::string table(std::int64_t level, std::size_t rows = kRows) {
  std::string text = "ds,y\n";
  for (std::size_t t = 0; t < rows; ++t) {
    text += stamp(t) + "," + digits(level, thousandths(t)) + "\n";
  }
  return text;
}

/// Numbers of a comma-separated file by column.
std::map<std::string, std::vector<double>> columns(const std::string& text) {
  std::istringstream lines(text);
  std::string line, field;
  std::getline(lines, line);
  std::vector<std::string> names;
  for (std::istringstream head(line); std::getline(head, field, ',');) names.push_back(field);
  std::map<std::string, std::vector<double>> all;
  while (std::getline(lines, line)) {
    std::istringstream row(line);
    for (const std::string& name : names) {
      std::getline(row, field, ',');
      all[name].push_back(std::strtod(field.c_str(), nullptr));
    }
  }
  return all;
}

/// What a number may be off: float32 of the difference, and double of the number.
double allowed(std::int64_t level) { return 1e-4 + std::ldexp(static_cast<double>(level), -51); }

class ValueOffset : public Program {
 protected:
  Result toto(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--model", source_path("models/toto-nano")});
    return run(arguments);
  }
  json forecast(const std::string& text, std::vector<std::string> more) {
    write("in.csv", text);
    more.insert(more.begin(), {"forecast", "in.csv", "--json"});
    const Result result = toto(more);
    EXPECT_EQ(result.status, 0) << result.err;
    err_ = result.err;
    return json::parse(result.out).at("series").at(0);
  }
  std::string err_;
};

/// Mean, median and quantiles at every step, in one row.
std::vector<double> everything(const json& series) {
  const json& variate = series.at("variates").at(0);
  std::vector<double> all;
  const auto add = [&](const json& row) {
    for (const json& x : row) all.push_back(x.get<double>());
  };
  add(variate.at("mean"));
  add(variate.at("median"));
  for (const auto& [level, row] : variate.at("quantiles").items()) add(row);
  return all;
}

TEST_F(ValueOffset, ForecastsAreThoseOfLevelZeroPlusTheLevel) {
  const json low = forecast(table(0), {"--horizon", "24"});
  EXPECT_FALSE(low.contains("value_offset"));
  EXPECT_EQ(err_, "");
  ASSERT_EQ(low.at("exact_steps"), 24);
  const std::vector<double> expected = everything(low);
  for (const std::int64_t level : kLevels) {
    const json high = forecast(table(level), {"--horizon", "24"});
    EXPECT_THAT(err_, HasSubstr("kept as differences from "));
    EXPECT_NEAR(high.at("value_offset").at(0).get<double>(), static_cast<double>(level), 20);
    EXPECT_EQ(high.at("input_scale"), low.at("input_scale"));
    const std::vector<double> found = everything(high);
    ASSERT_EQ(found.size(), expected.size());
    // At 1e12 the doubles of the file itself are 1.2e-4 apart.
    const double room = level < 1'000'000'000'000 ? 1e-3 : 5e-3;
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i] - static_cast<double>(level), expected[i], room) << level << " " << i;
    }
    const json& std = high.at("variates")[0].at("std");
    for (std::size_t t = 0; t < 24; ++t) {
      const json& same = low.at("variates")[0].at("std")[t];
      ASSERT_EQ(std[t].is_null(), same.is_null());  // tails may be too heavy for one
      if (same.is_null()) continue;
      EXPECT_NEAR(std[t].get<double>(), same.get<double>(), room);
    }
  }
}

TEST_F(ValueOffset, SampledStepsAndEveryFileHaveTheDigits) {
  write("in.csv", table(10'000'000));
  const Result result =
      toto({"forecast", "in.csv", "--horizon", "90", "--samples", "32", "--output", "out.csv",
            "--output-samples", "samples.csv", "--plot", "plot.svg"});
  ASSERT_EQ(result.status, 0) << result.err;
  // People are shown digits that tell the limits apart.
  EXPECT_THAT(result.out, testing::ContainsRegex("(10,000,00|9,999,99)[0-9]\\.[0-9][0-9]"));
  EXPECT_THAT(read_file(path("plot.svg")), HasSubstr(">10,000,00"));
  const auto out = columns(read_file(path("out.csv")));
  ASSERT_EQ(out.at("q0.1").size(), 90U);
  bool fractions = false;
  for (std::size_t t = 0; t < 90; ++t) {
    EXPECT_GT(out.at("q0.9")[t] - out.at("q0.1")[t], 0.2);
    EXPECT_LT(out.at("q0.9")[t] - out.at("q0.1")[t], 20);
    EXPECT_NEAR(out.at("mean")[t], 1e7, 10);
    fractions = fractions || out.at("mean")[t] != std::nearbyint(out.at("mean")[t]);
  }
  EXPECT_TRUE(fractions);
  const std::vector<double> drawn = columns(read_file(path("samples.csv"))).at("value");
  ASSERT_EQ(drawn.size(), 32U * 90);
  EXPECT_NEAR(*std::ranges::min_element(drawn), 1e7, 50);
  EXPECT_NEAR(*std::ranges::max_element(drawn), 1e7, 50);
  // A number has the digits of its difference and no more.
  EXPECT_THAT(read_file(path("out.csv")), Not(testing::ContainsRegex("\\.[0-9]{10}")));
}

TEST_F(ValueOffset, SwitchedOffTheBitsAreThoseOfTheRoundedFile) {
  std::string rounded = "ds,y\n";
  for (std::size_t t = 0; t < kRows; ++t) {
    const float value = std::stof(digits(1'000'000'000, thousandths(t)));
    rounded += stamp(t) + "," + std::to_string(static_cast<std::int64_t>(value)) + "\n";
  }
  json off = forecast(table(1'000'000'000), {"--horizon", "8", "--value-offset", "none"});
  EXPECT_THAT(err_, HasSubstr("leave out --value-offset none"));
  EXPECT_EQ(off, forecast(rounded, {"--horizon", "8"}));
  EXPECT_EQ(err_, "");
}

TEST_F(ValueOffset, GuardsAreInTheUsersUnits) {
  const json series = forecast(table(10'000'000), {"--horizon", "80", "--samples", "32", "--min",
                                                   "9999999", "--max", "10000002", "--integer"});
  const json& variate = series.at("variates")[0];
  for (const auto& [level, row] : variate.at("quantiles").items()) {
    for (const json& x : row) {
      EXPECT_EQ(x.get<double>(), std::nearbyint(x.get<double>()));
      EXPECT_GE(x.get<double>(), 9'999'999);
      EXPECT_LE(x.get<double>(), 10'000'002);
    }
  }
  EXPECT_GT(series.at("bounded_steps"), 0);
}

TEST_F(ValueOffset, CovariatesHaveOneToo) {
  const auto tables = [](std::int64_t y_level, std::int64_t u_level) {
    std::string past = "ds,y,u\n", future = "ds,u\n";
    for (std::size_t t = 0; t < kRows + 12; ++t) {
      const std::int64_t u = static_cast<std::int64_t>(t * 31 % 17) * 250;
      if (t >= kRows) {
        future += stamp(t) + "," + digits(u_level, u) + "\n";
      } else {
        past += stamp(t) + "," + digits(y_level, thousandths(t) + 3 * u) + "," +
                digits(u_level, u) + "\n";
      }
    }
    return std::pair(past, future);
  };
  const auto [past, future] = tables(0, 0);
  write("future.csv", future);
  const std::vector<double> expected =
      everything(forecast(past, {"--horizon", "12", "--future", "future.csv"}));
  const auto [high, ahead] = tables(10'000'000, 1'000'000'000);
  write("future.csv", ahead);
  for (const bool low_target : {false, true}) {
    const std::string text = low_target ? tables(0, 1'000'000'000).first : high;
    const std::vector<double> found =
        everything(forecast(text, {"--horizon", "12", "--future", "future.csv"}));
    ASSERT_EQ(found.size(), expected.size());
    const double level = low_target ? 0 : 1e7;
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i] - level, expected[i], 2e-3) << i;
    }
  }
}

TEST_F(ValueOffset, BacktestsErrAsMuch) {
  const auto backtest = [&](std::int64_t level, std::vector<std::string> more) {
    write("in.csv", table(level));
    more.insert(more.begin(), {"backtest", "in.csv", "--horizon", "12", "--windows", "10",
                               "--context", "128", "--out", "bt" + std::to_string(level)});
    const Result result = toto(more);
    EXPECT_EQ(result.status, 0) << result.err;
    const std::string folder = path("bt" + std::to_string(level));
    return std::pair(columns(read_file(folder + "/metrics.csv")),
                     columns(read_file(folder + "/forecasts.csv")));
  };
  const auto [low, low_cells] = backtest(0, {});
  const auto [high, cells] = backtest(1'000'000'000, {});
  for (const char* const name : {"mae", "rmse", "mase", "crps", "coverage_80", "count"}) {
    ASSERT_EQ(high.at(name).size(), low.at(name).size());
    for (std::size_t i = 0; i < low.at(name).size(); ++i) {
      EXPECT_NEAR(high.at(name)[i], low.at(name)[i], 2e-3) << name << " " << i;
    }
  }
  EXPECT_NEAR(high.at("mape")[0], 100 * low.at("mae")[0] / 1e9, 1e-9);
  for (const char* const name : {"last", "actual", "toto", "seasonal_naive", "mean", "q0.1"}) {
    for (std::size_t i = 0; i < cells.at(name).size(); ++i) {
      EXPECT_NEAR(cells.at(name)[i] - 1e9, low_cells.at(name)[i], 2e-3) << name << " " << i;
    }
  }
  // Moves in percent of the level, not of the differences.
  const auto moves = backtest(10'000'000, {"--transform", "pct"}).second;
  for (std::size_t i = 0; i < moves.at("toto").size(); ++i) {
    EXPECT_NEAR(moves.at("toto")[i], 1e7, 20);
    EXPECT_GT(moves.at("q0.9")[i] - moves.at("q0.1")[i], 0.1);
  }
  const auto bounded = backtest(1'000'000'000, {"--max", "1000000001"}).second;
  for (const double x : bounded.at("q0.95")) EXPECT_LE(x, 1'000'000'001);
  EXPECT_NE(bounded.at("q0.95"), cells.at("q0.95"));
}

TEST_F(ValueOffset, DetectFindsTheSame) {
  const auto lines = [&](std::int64_t level) {
    write("in.csv", table(level));
    const Result result = toto({"detect", "in.csv", "--json", "--min-history", "128"});
    EXPECT_EQ(result.status, 1) << result.err;
    std::vector<json> all;
    std::istringstream text(result.out);
    for (std::string line; std::getline(text, line);) all.push_back(json::parse(line));
    return all;
  };
  const std::vector<json> low = lines(0);
  const std::vector<json> high = lines(1'000'000'000);
  ASSERT_EQ(low.size(), high.size());
  std::size_t anomalies = 0;
  for (std::size_t i = 0; i < low.size(); ++i) {
    for (const char* const name : {"y", "median", "low", "high"}) {
      if (low[i].at(name).is_null()) continue;
      EXPECT_NEAR(high[i].at(name).get<double>() - 1e9, low[i].at(name).get<double>(), 2e-2)
          << name << " " << i;
    }
    EXPECT_EQ(high[i].at("anomaly"), low[i].at("anomaly"));
    anomalies += low[i].at("anomaly").get<bool>() ? 1 : 0;
  }
  EXPECT_GT(anomalies, 0U);
  const Result shown = toto({"detect", "in.csv"});
  EXPECT_THAT(shown.out, testing::ContainsRegex("1000000010\\.[0-9]"));
}

TEST_F(ValueOffset, InspectShowsTheDigits) {
  write("in.csv", table(10'000'000, 349));
  const Result text = run({"inspect", "in.csv"});
  EXPECT_EQ(text.status, 0) << text.err;
  std::int64_t lowest = 0, highest = 0;
  for (std::size_t t = 0; t < 349; ++t) {
    lowest = std::min(lowest, thousandths(t));
    highest = std::max(highest, thousandths(t));
  }
  const double low = std::stod(digits(10'000'000, lowest));
  const double high = std::stod(digits(10'000'000, highest));
  EXPECT_THAT(text.out, HasSubstr("kept as differences from"));
  EXPECT_THAT(text.out, HasSubstr("9999997."));
  const json series =
      json::parse(run({"inspect", "in.csv", "--json"}).out).at("files")[0].at("series")[0];
  EXPECT_NEAR(series.at("lowest").get<double>(), low, allowed(10'000'000));
  EXPECT_NEAR(series.at("highest").get<double>(), high, allowed(10'000'000));
  EXPECT_NEAR(series.at("value_offset")[0].get<double>(), 1e7, 20);
  write("in.csv", table(0));
  EXPECT_FALSE(json::parse(run({"inspect", "in.csv", "--json"}).out)
                   .at("files")[0]
                   .at("series")[0]
                   .contains("value_offset"));
}

TEST_F(ValueOffset, WithParametersAndAggregates) {
  const json low = forecast(table(0), {"--horizon", "8", "--aggregate", "mean_plus_std_0.5"});
  const json high =
      forecast(table(10'000'000), {"--horizon", "8", "--aggregate", "mean_plus_std_0.5"});
  for (std::size_t t = 0; t < 8; ++t) {
    EXPECT_NEAR(high.at("variates")[0].at("point")[t].get<double>() - 1e7,
                low.at("variates")[0].at("point")[t].get<double>(), 2e-3);
  }
}

TEST_F(ValueOffset, AResumedRunFindsItsOwn) {
  const std::vector<std::string> more = {"--horizon", "8", "--resume", "kept"};
  const json first = forecast(table(10'000'000), more);
  const json again = forecast(table(10'000'000), more);
  EXPECT_EQ(first, again);
  EXPECT_THAT(err_, HasSubstr("1 of 1 forecasts were found"));
}

}  // namespace
}  // namespace toto::test
