// SPDX-License-Identifier: Apache-2.0
// Forecasts that one can act on: a missing end, short series, scales and bounds, and what the
// program says when it acts.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/program.h"

namespace toto::test {
namespace {

class Act : public Program {
 protected:
  Result forecast(const std::string& table, std::vector<std::string> more) {
    write("in.csv", table);
    std::vector<std::string> all = {"forecast", "in.csv", "--model", source_path(model_)};
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  }
  nlohmann::json json(const std::string& table, std::vector<std::string> more) {
    more.emplace_back("--json");
    const Result result = forecast(table, more);
    EXPECT_EQ(result.status, 0) << result.err;
    err_ = result.err;
    return nlohmann::json::parse(result.out);
  }
  std::string model_ = "models/toto-nano";
  std::string err_;
};

/// Days numbered from 0; the last `missing` have no value.
std::string table(std::size_t rows, double scale = 1, std::size_t missing = 0) {
  std::ostringstream out;
  out.precision(9);
  out << "ds,y\n";
  for (std::size_t i = 0; i < rows; ++i) {
    const double value = 20 + 10 * std::sin(static_cast<double>(i) * 0.9) +
                         static_cast<double>((i * 7919) % 13) * 0.3;
    out << i << ",";
    if (i + missing < rows) out << static_cast<float>(value) * scale;
    out << "\n";
  }
  return out.str();
}

TEST_F(Act, TheHorizonBeginsAfterTheFilesLastStamp) {
  const nlohmann::json out = json(table(200, 1, 37), {"--horizon", "5"});
  const nlohmann::json& series = out.at("series")[0];
  EXPECT_EQ(series.at("ds"), (nlohmann::json{"200", "201", "202", "203", "204"}));
  EXPECT_EQ(series.at("missing_end"), 37);
  EXPECT_THAT(err_, testing::HasSubstr("no value in the last 37 steps after 162"));

  // The same as the end of a longer forecast from where the values end.
  const nlohmann::json longer = json(table(163), {"--horizon", "42"});
  const nlohmann::json& all = longer.at("series")[0].at("variates")[0].at("median");
  const nlohmann::json& found = series.at("variates")[0].at("median");
  for (std::size_t t = 0; t < 5; ++t) EXPECT_EQ(found[t], all[37 + t]);
}

TEST_F(Act, ThreeObservationsAreForecastWithANote) {
  const Result three = forecast("ds,y\n1,3\n2,5\n3,4\n", {"--horizon", "2"});
  EXPECT_EQ(three.status, 0) << three.err;
  EXPECT_THAT(three.err,
              testing::HasSubstr("only 3 values observed, fewer than the model's patch"));
  expect_failure(forecast("ds,y\n1,3\n2,5\n", {"--horizon", "2"}), 65, "too_short");
}

TEST_F(Act, WhatIsLeftOutOfTheHistoryIsSaid) {
  const Result cut = forecast(table(200), {"--horizon", "2", "--context", "64"});
  EXPECT_THAT(cut.err, testing::HasSubstr("sees the last 64 of 200 steps (--context 200"));
  EXPECT_EQ(forecast(table(200), {"--horizon", "2"}).err, "");
  EXPECT_EQ(forecast(table(200), {"--horizon", "2", "--context", "64", "-q"}).err, "");
}

TEST_F(Act, UnitsDoNotMatter) {
  const std::vector<std::string> flags = {"--horizon", "40", "--samples", "16"};
  const nlohmann::json plain = json(table(300), flags);
  const nlohmann::json small = json(table(300, 0x1p-30), flags);
  const auto scale = [](const nlohmann::json& all) {
    return all.at("series")[0].at("input_scale")[0].get<double>();
  };
  EXPECT_EQ(scale(small), scale(plain) * 0x1p30);
  const auto values = [](const nlohmann::json& all, const char* level) {
    return all.at("series")[0]
        .at("variates")[0]
        .at("quantiles")
        .at(level)
        .get<std::vector<double>>();
  };
  for (const char* level : {"0.1", "0.9"}) {
    const auto a = values(plain, level), b = values(small, level);
    // Decimal digits in the file are not exact multiples: nearly the same, not the same bits.
    for (std::size_t t = 0; t < a.size(); ++t) EXPECT_NEAR(b[t] * 0x1p30, a[t], 1e-3 * a[t]);
  }
  const nlohmann::json one = json(table(300, 0x1p-30), {"--horizon", "8", "--input-scale", "1"});
  EXPECT_EQ(scale(one), 1);
  expect_failure(forecast(table(300), {"--input-scale", "0"}), 2, "invalid_input_scale");
}

TEST_F(Act, BoundsHoldAndAreStated) {
  const nlohmann::json out =
      json(table(100), {"--horizon", "40", "--min", "12", "--max", "27.5", "--integer"});
  const nlohmann::json& series = out.at("series")[0];
  EXPECT_GT(series.at("bounded_steps"), 0);
  for (const auto& [level, values] : series.at("variates")[0].at("quantiles").items()) {
    for (const double x : values) {
      EXPECT_GE(x, 12) << level;
      EXPECT_LE(x, 27.5) << level;
      EXPECT_EQ(x, std::nearbyint(x));
    }
  }
  EXPECT_THAT(err_, testing::HasSubstr("values below 12 or above 27.5, which were moved there"));
  EXPECT_THAT(err_, testing::HasSubstr("rounded to whole numbers"));
  const nlohmann::json counts =
      json("ds,y\n1,0\n2,0\n3,0\n4,2\n5,0\n6,0\n7,1\n8,0\n", {"--horizon", "8", "--non-negative"});
  for (const auto& [level, values] :
       counts.at("series")[0].at("variates")[0].at("quantiles").items()) {
    for (const double x : values) EXPECT_GE(x, 0);
  }
  expect_failure(forecast(table(50), {"--min", "3", "--max", "2"}), 2, "invalid_guard");
  expect_failure(forecast(table(50), {"--clamp", "-1"}), 2, "invalid_guard");
  expect_failure(forecast(table(50), {"--min", "2.2", "--max", "2.8", "--integer"}), 2,
                 "invalid_guard");
}

/// A metric every ten seconds between 35 and 165 that wanders.
std::string wandering() {
  std::string out = "ds,y\n";
  double value = 100, noise = 0;
  std::uint64_t state = 7;
  for (int i = 0; i < 4096; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    noise = static_cast<double>(state >> 40U) / 0x1p24 - 0.5;
    value = std::clamp(value + 3 * noise, 35.0, 165.0);
    out += std::to_string(1'700'000'000 + 10 * i) + "," + std::to_string(value + 8 * noise) + "\n";
  }
  return out;
}

TEST_F(Act, AFarHorizonStaysWithinWhatTheContextSupports) {
  const std::vector<std::string> flags = {"--horizon", "4320",        "--samples",
                                          "32",        "--quantiles", "0.1,0.5,0.9"};
  const nlohmann::json out = json(wandering(), flags);
  double low = 0, high = 0;
  for (const auto& [level, values] :
       out.at("series")[0].at("variates")[0].at("quantiles").items()) {
    for (const double x : values) {
      low = std::min(low, x);
      high = std::max(high, x);
    }
  }
  const nlohmann::json& mean = out.at("series")[0].at("variates")[0].at("mean");
  for (const double x : mean) {
    low = std::min(low, x);
    high = std::max(high, x);
  }
  constexpr double kRange = 140;  // of the context, at most
  EXPECT_LT(high - low, 10 * kRange);
  EXPECT_THAT(err_, testing::HasSubstr("4320 steps ahead of a context of 4096: the model was "
                                       "trained to predict the next 32 and feeds on its own"));
  if (out.at("series")[0].at("clamped_steps") > 0) {
    EXPECT_THAT(err_, testing::HasSubstr("kept within 4 ranges"));
  }
}

TEST_F(Act, AFarHorizonInOnePassFeedsOnNothing) {
  model_ = "models/toto-nano-2";
  const nlohmann::json out = json(table(200), {"--horizon", "600", "--mean"});
  EXPECT_EQ(out.at("series")[0].at("variates")[0].at("mean").size(), 600U);
  EXPECT_THAT(err_,
              testing::HasSubstr("600 steps ahead of a context of 200: trust the far end little"));
}

TEST_F(Act, TailsAreAskedForAndStated) {
  model_ = "tests/data/golden/toto2-tiny-uni";
  const std::vector<std::string> flags = {"--horizon", "20", "--quantiles",
                                          "0.01,0.1,0.2,0.8,0.9,0.99"};
  std::vector<std::string> more = flags;
  more.insert(more.end(), {"--tails", "exponential"});
  const nlohmann::json plain = json(table(200), flags);
  EXPECT_THAT(err_, testing::HasSubstr("levels beyond give these; tails \"normal\""));
  const nlohmann::json wide = json(table(200), more);
  EXPECT_THAT(err_, testing::HasSubstr("levels beyond are of exponential tails, an assumption"));
  EXPECT_FALSE(plain.contains("tails"));
  EXPECT_EQ(wide.at("tails"), "exponential");
  const auto at = [](const nlohmann::json& all, const char* level, std::size_t t) {
    return all.at("series")[0].at("variates")[0].at("quantiles").at(level)[t].get<double>();
  };
  for (std::size_t t = 0; t < 20; ++t) {
    for (const char* level : {"0.1", "0.2", "0.8", "0.9"}) {
      EXPECT_EQ(at(plain, level, t), at(wide, level, t));
    }
    EXPECT_EQ(at(plain, "0.01", t), at(plain, "0.1", t));
    EXPECT_EQ(at(plain, "0.99", t), at(plain, "0.9", t));
    const double halvings = std::log2(10.0);  // from 0.1 to 0.01
    const double low = at(wide, "0.1", t), high = at(wide, "0.9", t);
    EXPECT_NEAR(at(wide, "0.01", t), low - halvings * (at(wide, "0.2", t) - low),
                1e-4 * (1 + std::abs(low)));
    EXPECT_NEAR(at(wide, "0.99", t), high + halvings * (high - at(wide, "0.8", t)),
                1e-4 * (1 + std::abs(high)));
  }
  more.back() = "normal";
  const nlohmann::json normal = json(table(200), more);
  EXPECT_THAT(err_, testing::HasSubstr("levels beyond are of normal tails, an assumption"));
  EXPECT_EQ(normal.at("tails"), "normal");
  for (std::size_t t = 0; t < 20; ++t) {
    const double middle = normal.at("series")[0].at("variates")[0].at("median")[t];
    const double low = at(normal, "0.1", t), high = at(normal, "0.9", t);
    constexpr double kFurther = 2.3263478740408408 / 1.2815515655446004;  // scores of 0.99, 0.9
    EXPECT_NEAR(at(normal, "0.01", t), middle + kFurther * (low - middle),
                1e-4 * (1 + std::abs(low)));
    EXPECT_NEAR(at(normal, "0.99", t), middle + kFurther * (high - middle),
                1e-4 * (1 + std::abs(high)));
  }
  model_ = "models/toto-nano";  // of Toto 1.0, which knows its tails
  const nlohmann::json nano = json(table(200), {"--horizon", "8", "--quantiles", "0.01,0.5"});
  const nlohmann::json same =
      json(table(200), {"--horizon", "8", "--quantiles", "0.01,0.5", "--tails", "exponential"});
  EXPECT_EQ(nano, same);
  expect_failure(forecast(table(50), {"--tails", "long"}), 2, "invalid_choice");
}

TEST_F(Act, AModelNamesWhatIsLeftOpen) {
  model_ = "models/toto-nano-2";
  const auto with = [this](const std::vector<std::string>& more) {
    std::vector<std::string> flags = {
        "--horizon",        "40",     "--samples", "64", "--quantiles", "0.02,0.5,0.98",
        "--quantiles-from", "samples"};
    flags.insert(flags.end(), more.begin(), more.end());
    return json(table(200), flags);
  };
  const nlohmann::json open = with({});
  EXPECT_EQ(open.at("paths"), "coherent");
  EXPECT_EQ(open.at("tails"), "normal");
  EXPECT_EQ(open, with({"--paths", "auto", "--tails", "auto"}));
  EXPECT_EQ(open, with({"--paths", "coherent", "--tails", "normal"}));
  const nlohmann::json official = with({"--paths", "independent", "--tails", "clamp"});
  EXPECT_FALSE(official.contains("paths") || official.contains("tails"));
  EXPECT_NE(open.at("series"), official.at("series"));
  EXPECT_NE(open.at("series"), with({"--tails", "clamp"}).at("series"));
  EXPECT_NE(open.at("series"), with({"--paths", "independent"}).at("series"));
  EXPECT_FALSE(json(table(200), {"--horizon", "40", "--mean"}).contains("paths"));
  model_ = "tests/data/golden/toto2-tiny-uni";  // which names nothing
  EXPECT_EQ(with({}), with({"--paths", "independent", "--tails", "clamp"}));
}

TEST_F(Act, CoherentPathsAreAskedForAndStated) {
  const auto with = [](const char* paths) {
    return std::vector<std::string>{"--horizon", "40", "--samples", "16", "--paths", paths};
  };
  const nlohmann::json plain = json(table(200), with("independent"));
  const nlohmann::json joined = json(table(200), with("coherent"));
  EXPECT_EQ(joined, json(table(200), with("auto")));  // which the model names
  EXPECT_FALSE(plain.contains("paths"));
  EXPECT_EQ(joined.at("paths"), "coherent");
  const auto median = [](const nlohmann::json& all) {
    return all.at("series")[0].at("variates")[0].at("median");
  };
  for (std::size_t t = 0; t < 32; ++t) EXPECT_EQ(median(plain)[t], median(joined)[t]);
  EXPECT_NE(median(plain), median(joined));
  const std::string toto2 = source_path("tests/data/golden/toto2-tiny-uni");
  write("in.csv", table(100));
  const Result sums = run({"forecast", "in.csv", "--model", toto2, "--paths", "coherent",
                           "--horizon", "20", "--aggregate-horizon", "sum", "--above", "-1e9"});
  EXPECT_EQ(sums.status, 0) << sums.err;
  EXPECT_THAT(sums.out, testing::HasSubstr("  sum: mean "));
  EXPECT_THAT(sums.err, testing::Not(testing::HasSubstr("independently")));
  expect_failure(forecast(table(50), {"--paths", "random"}), 2, "invalid_choice");
  expect_failure(forecast(table(50), {"--paths", "coherent", "--mean"}), 2, "usage");
}

TEST_F(Act, TheWholeHorizonIsSummedAndLevelsAreCrossed) {
  write("in.csv", table(200));
  const auto ask = [&](std::vector<std::string> more) {
    std::vector<std::string> command = {"forecast",  "in.csv", "--model",   source_path(model_),
                                        "--horizon", "40",     "--samples", "16"};
    command.insert(command.end(), more.begin(), more.end());
    return run(command);
  };
  const std::vector<std::string> coherent = {
      "--paths", "coherent", "--aggregate-horizon", "sum", "--above", "-1e9", "--below", "-1e9"};
  auto to_file = coherent;
  to_file.insert(to_file.end(), {"--output-horizon", "out.json"});
  Result done = ask(to_file);
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.err, testing::Not(testing::HasSubstr("independently")));
  const nlohmann::json out = nlohmann::json::parse(read_file(path("out.json")));
  const nlohmann::json& one = out.at("series")[0].at("variates")[0];
  EXPECT_EQ(one.at("above_anywhere"), 1);
  EXPECT_EQ(one.at("below_anywhere"), 0);
  EXPECT_EQ(one.at("above").size(), 40U);
  EXPECT_LE(one.at("quantiles").at("0.1"), one.at("quantiles").at("0.9"));

  auto to_standard_output = coherent;
  to_standard_output.insert(to_standard_output.end(), {"--output-horizon", "-"});
  done = ask(to_standard_output);
  EXPECT_THAT(done.out, testing::StartsWith("unique_id,ds,statistic,value\n"));
  EXPECT_THAT(done.out, testing::HasSubstr(",,sum_q0.5,"));
  EXPECT_THAT(done.out, testing::HasSubstr(",,above_anywhere,1\n"));

  done = ask({"--aggregate-horizon", "max", "--paths", "independent"});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.out, testing::HasSubstr("  max: mean "));
  EXPECT_THAT(done.err, testing::HasSubstr("drawn independently"));

  EXPECT_EQ(ask({"--output-horizon", "out.csv"}).status, 2);
  EXPECT_EQ(ask({"--aggregate-horizon", "median"}).status, 2);
  EXPECT_EQ(ask({"--aggregate-horizon", "sum", "--mean"}).status, 2);
  EXPECT_EQ(ask({"--above", "high"}).status, 2);
}

std::vector<std::string> times_of(const nlohmann::json& out) {
  return out.at("series")[0].at("ds").get<std::vector<std::string>>();
}

TEST_F(Act, AForecastOfSharesKnowsTheHolidays) {
  std::string shares = "Date,Close\n";
  for (int day = 1; day <= 23; ++day) {  // December 2024 began on a Sunday
    if ((day - 1) % 7 == 0 || (day - 1) % 7 == 6) continue;
    shares += "2024-12-" + std::string(day < 10 ? "0" : "") + std::to_string(day) + "," +
              std::to_string(100 + day) + "\n";
  }
  EXPECT_EQ(times_of(json(shares, {"--horizon", "3", "--calendar", "NYSE"})),
            (std::vector<std::string>{"2024-12-24", "2024-12-26", "2024-12-27"}));
  write("own.txt", "days Mon-Fri\nholiday 2024-12-24\n");
  EXPECT_EQ(times_of(json(shares, {"--horizon", "2", "--calendar", "./own.txt"})),
            (std::vector<std::string>{"2024-12-25", "2024-12-26"}));
  expect_failure(forecast(shares, {"--calendar", "LSE"}), 2, "invalid_calendar");
  write("bad.txt", "days Mon-Fri\nholidays 2024-12-24\n");
  const Result bad = forecast(shares, {"--calendar", "./bad.txt"});
  expect_failure(bad, 65, "invalid_calendar");
  EXPECT_THAT(bad.err, testing::HasSubstr("./bad.txt:2"));
}

TEST_F(Act, CountersAreForecastAsRatesOfRegularSteps) {
  std::string counter = "time,requests_total\n";
  double value = 5e11;
  for (int i = 0; i < 400; ++i) {
    value += 30 * (100 + 50 * (i / 4 % 10));
    if (i == 200) value = 1000;
    counter += std::to_string(1'700'000'000LL + 30 * i) + "," + std::to_string(value) + "\n";
  }
  const nlohmann::json out =
      json(counter, {"--rate", "--resample", "1min:mean", "--horizon", "5", "--non-negative"});
  EXPECT_EQ(out.at("series")[0].at("interval"), "1 minute");
  EXPECT_THAT(err_, testing::HasSubstr("counters fell 1 times"));
  for (const double x : out.at("series")[0].at("variates")[0].at("median")) {
    EXPECT_GT(x, 50);
    EXPECT_LT(x, 700);
  }
  EXPECT_THAT(run({"inspect", "in.csv"}).out,
              testing::HasSubstr("\"requests_total\" looks like a counter; --rate forecasts"));
  const Result shown = run({"inspect", "in.csv", "--rate", "--resample", "1min"});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, testing::HasSubstr("1 minute"));
  expect_failure(run({"inspect", "in.csv", "--freq", "1min", "--resample", "1min"}), 2,
                 "conflicting_flags");
  expect_failure(forecast(counter, {"--freq", "sometimes"}), 2, "invalid_frequency");
  expect_failure(forecast(counter, {"--resample", "1min:median"}), 2, "invalid_resample");
  expect_failure(forecast(counter, {"--freq", "1h"}), 65, "frequency_mismatch");
}

TEST_F(Act, BacktestReadsRegularTimesToo) {
  std::string events = "time,y\n";
  for (int i = 0; i < 6000; ++i) {
    events += std::to_string(1'699'999'800LL + 20 * i) + "," + std::to_string(i % 60) + "\n";
  }
  write("events.csv", events);
  const Result result =
      run({"backtest", "events.csv", "--model", source_path("models/toto-nano"), "--windows", "2",
           "--context", "64", "--horizon", "3", "--out", "r", "--resample", "5min"});
  ASSERT_EQ(result.status, 0) << result.err;
  const nlohmann::json summary = nlohmann::json::parse(read_file(path("r/summary.json")));
  EXPECT_EQ(summary.at("symbols")[0].at("bars"), 400);
}

TEST_F(Act, BacktestTakesWhatTheModelNames) {
  write("spots.csv", table(300));
  const auto options = [this](const char* model, const std::vector<std::string>& more) {
    std::vector<std::string> command = {"backtest",  "spots.csv", "--model",   source_path(model),
                                        "--windows", "2",         "--context", "64",
                                        "--horizon", "40",        "--out",     "r"};
    command.insert(command.end(), more.begin(), more.end());
    const Result result = run(command);
    EXPECT_EQ(result.status, 0) << result.err;
    const nlohmann::json found = nlohmann::json::parse(read_file(path("r/summary.json")));
    return std::pair(found.at("options").at("paths").get<std::string>(),
                     found.at("options").at("tails").get<std::string>());
  };
  using Words = std::pair<std::string, std::string>;
  EXPECT_EQ(options("models/toto-nano-2", {}), Words("coherent", "normal"));
  EXPECT_EQ(options("models/toto-nano-2", {"--tails", "clamp"}), Words("coherent", "clamp"));
  EXPECT_EQ(options("tests/data/golden/toto2-tiny-uni", {}), Words("independent", "clamp"));
}

TEST_F(Act, ParametersHeedThePaths) {
  write("in.csv", table(200));
  write(
      "p.json",
      R"({"format": "toto-parameters", "version": 1, "symbols": {"y": {"context": 128, "samples": 16,
            "transform": "none", "input_scale": "automatic", "aggregate": "median"}}})");
  const auto with = [this](const char* paths) {
    const Result result = run({"forecast", "in.csv", "--parameters", "p.json", "--horizon", "40",
                               "--model", source_path(model_), "--paths", paths, "--json"});
    EXPECT_EQ(result.status, 0) << result.err;
    return nlohmann::json::parse(result.out).at("series")[0].at("variates")[0].at("median");
  };
  EXPECT_EQ(with("auto"), with("coherent"));
  EXPECT_NE(with("auto"), with("independent"));
}

TEST_F(Act, BacktestTakesTheSameBounds) {
  write("spots.csv", table(300));
  const Result result =
      run({"backtest", "spots.csv", "--model", source_path("models/toto-nano"), "--windows", "3",
           "--context", "128", "--out", "b", "--min", "15", "--max", "25", "--integer"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, testing::HasSubstr("beyond --min or --max, which were moved there"));
  const nlohmann::json ran = nlohmann::json::parse(read_file(path("b/run.json")));
  EXPECT_GT(ran.at("bars_bounded"), 0);
  EXPECT_GT(ran.at("input_scale_least"), 1);
  expect_failure(run({"backtest", "spots.csv", "--model", source_path("models/toto-nano"), "--out",
                      "c", "--min", "3", "--max", "2"}),
                 2, "invalid_guard");
  std::istringstream rows(read_file(path("b/forecasts.csv")));
  std::string row;
  std::getline(rows, row);
  EXPECT_THAT(row, testing::HasSubstr("q0.9"));
  std::size_t columns = static_cast<std::size_t>(std::ranges::count(row, ','));
  while (std::getline(rows, row)) {
    const std::string last = row.substr(row.rfind(',') + 1);  // the highest quantile
    ASSERT_EQ(static_cast<std::size_t>(std::ranges::count(row, ',')), columns);
    const double value = std::stod(last);
    EXPECT_LE(value, 25);
    EXPECT_EQ(value, std::nearbyint(value));
  }
}

}  // namespace
}  // namespace toto::test
