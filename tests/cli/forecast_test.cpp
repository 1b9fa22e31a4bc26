// SPDX-License-Identifier: Apache-2.0
// What `toto forecast` promises about its results: the same bytes again, draws that are addressed,
// files that appear whole or not at all, and an end within a second of SIGINT.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "support/paths.h"
#include "support/program.h"

namespace toto::test {
namespace {

class Forecast : public Program {
 protected:
  Result forecast(std::vector<std::string> more, const std::string& table = two_columns()) {
    return run(with(more, table));
  }
  Invocation with(const std::vector<std::string>& more, const std::string& table = two_columns()) {
    write("in.csv", table);
    std::vector<std::string> arguments = {"forecast",   "in.csv", "--model",
                                          tiny_model(), "--seed", "3"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return {arguments, "", {}, ""};
  }
};

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

std::vector<std::string> lines_of(const std::string& text, const std::string& id) {
  std::vector<std::string> all;
  for (const std::string& line : lines(text)) {
    if (line.starts_with(id + ",")) all.push_back(line);
  }
  return all;
}

TEST_F(Forecast, TheDefaultModelIsTotoNano2) {
  write("in.csv", two_columns());
  const Result result = run({"forecast", "in.csv", "--horizon", "3", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const nlohmann::json out = nlohmann::json::parse(result.out);
  EXPECT_EQ(out.at("model"), "toto-nano-2");
  EXPECT_EQ(out.at("family"), "toto-2.0");
  const Result named =
      run({"forecast", "in.csv", "--horizon", "3", "--json", "--model", "toto-nano-2"});
  EXPECT_EQ(named.out, result.out);
}

TEST_F(Forecast, SameCommandGivesTheSameBytes) {
  const std::vector<std::string> flags = {"--horizon",        "20",    "--samples", "32",
                                          "--output",         "a.csv", "--plot",    "a.svg",
                                          "--output-samples", "s.csv"};
  ASSERT_EQ(forecast(flags).status, 0);
  std::map<std::string, std::string> first;
  for (const char* name : {"a.csv", "a.svg", "s.csv"}) first[name] = read_file(path(name));
  ASSERT_EQ(forecast(flags).status, 0);
  for (const auto& [name, bytes] : first) {
    EXPECT_FALSE(bytes.empty());
    EXPECT_EQ(bytes, read_file(path(name))) << name;
  }
}

TEST_F(Forecast, MoreSamplesLeaveTheFirstOnesAlone) {
  const auto trajectories = [&](const std::string& count) {
    const Result result =
        forecast({"--horizon", "20", "--samples", count, "--output-samples", "-"});
    EXPECT_EQ(result.status, 0) << result.err;
    return lines(result.out);
  };
  const std::vector<std::string> few = trajectories("64");
  const std::vector<std::string> many = trajectories("256");
  ASSERT_EQ(few.front(), "unique_id,date,sample,value");
  ASSERT_EQ(few.size(), 1U + 2 * 64 * 20);
  ASSERT_EQ(many.size(), 1U + 2 * 256 * 20);
  std::vector<std::string> first = {many.front()};
  for (std::size_t i = 1; i < many.size(); ++i) {
    if ((i - 1) / 20 % 256 < 64) first.push_back(many[i]);  // 256 trajectories of 20 steps each
  }
  EXPECT_EQ(few, first);
}

TEST_F(Forecast, AnotherSeriesChangesNoDigit) {
  std::string alone = "date,web\n";
  for (const std::string& line : lines(two_columns())) {
    if (line.starts_with("2")) alone += line.substr(0, line.rfind(',')) + "\n";
  }
  const std::vector<std::string> flags = {"--horizon", "20", "--samples", "32", "--output", "-"};
  const Result one = forecast(flags, alone);
  const Result two = forecast(flags);
  ASSERT_EQ(one.status, 0) << one.err;
  ASSERT_EQ(lines_of(one.out, "web").size(), 20U);
  EXPECT_EQ(lines_of(one.out, "web"), lines_of(two.out, "web"));
  EXPECT_EQ(lines_of(two.out, "api").size(), 20U);
}

TEST_F(Forecast, BandsOfAPlotLeaveTheNumbersAlone) {
  const std::vector<std::string> flags = {"--horizon",   "20",      "--samples", "32",
                                          "--quantiles", "0.2,0.8", "--output",  "-"};
  const std::string expected = forecast(flags).out;
  std::vector<std::string> with_plot = flags;
  with_plot.insert(with_plot.end(), {"--plot", "a.html"});
  EXPECT_EQ(forecast(with_plot).out, expected);
  EXPECT_EQ(lines(expected).front(), "unique_id,date,mean,q0.2,q0.8");
}

TEST_F(Forecast, LevelsAreDoublesFromFlagToColumn) {
  const Result result =
      forecast({"--horizon", "3", "--quantiles", "0.0005,0.999999,0.99999999", "--output", "-"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(lines(result.out).front(), "unique_id,date,mean,q0.0005,q0.999999,q0.99999999");
}

TEST_F(Forecast, StandardInputAndOutputCompose) {
  const std::string table = two_columns();
  ASSERT_EQ(forecast({"--horizon", "5", "--output", "file.csv"}, table).status, 0);
  const Result piped = run(Invocation{
      {"forecast", "-", "--model", tiny_model(), "--seed", "3", "--horizon", "5", "--output", "-"},
      table,
      {},
      ""});
  EXPECT_EQ(piped.status, 0);
  EXPECT_EQ(piped.err, "");
  EXPECT_EQ(piped.out, read_file(path("file.csv")));
  EXPECT_EQ(lines(piped.out).size(), 11U);
}

TEST_F(Forecast, JsonNamesTheModel) {
  const Result result = forecast({"--horizon", "5", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["model"], tiny_model());
  EXPECT_EQ(json["series"].size(), 2U);
}

TEST_F(Forecast, QuietPrintsNothing) {
  const Result result = forecast({"--horizon", "5", "--quiet", "--output", "out.csv"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "");
}

TEST_F(Forecast, SyntheticWeightsAreLabelled) {
  ASSERT_EQ(run({"model", "synth", "--config", tiny_model() + "/config.json", "--seed", "7",
                 "--out", "synthetic", "--quiet"})
                .status,
            0);
  write("in.csv", two_columns());
  const Result result = run({"forecast", "in.csv", "--model", "synthetic", "--horizon", "5",
                             "--plot", "p.svg", "--output", "o.json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, testing::ContainsRegex("[Ss][Yy][Nn][Tt][Hh][Ee][Tt][Ii][Cc]"));
  EXPECT_THAT(read_file(path("p.svg")),
              testing::ContainsRegex("[Ss][Yy][Nn][Tt][Hh][Ee][Tt][Ii][Cc]"));
  EXPECT_EQ(nlohmann::json::parse(read_file(path("o.json")))["synthetic_weights"], true);
}

// --- files appear whole or not at all (robustness 37, 38)

TEST_F(Forecast, FolderOfTheOutputIsMissing) {
  expect_failure(forecast({"--horizon", "4", "--output", "nowhere/out.csv"}), 74, "write_failed");
}

TEST_F(Forecast, PlaceIsNotWritable) {  // not even for root
  expect_failure(forecast({"--horizon", "4", "--output", "/proc/out.csv"}), 74, "write_failed");
}

TEST_F(Forecast, OutputIsAFolder) {
  std::filesystem::create_directory(folder_ / "out.csv");
  expect_failure(forecast({"--horizon", "4", "--output", "out.csv"}), 74, "write_failed");
  EXPECT_EQ(listing(), (std::vector<std::string>{"in.csv", "out.csv"}));
}

TEST_F(Forecast, FullDisk) {
  Invocation invocation = with({"--horizon", "4", "--output", "-"});
  invocation.stdout_path = "/dev/full";
  expect_failure(run(invocation), 74, "write_failed");
  expect_failure(forecast({"--horizon", "4", "--output", "/dev/full"}), 74, "write_failed");
  Invocation table = with({"--horizon", "4"});
  table.stdout_path = "/dev/full";
  expect_failure(run(table), 74, "write_failed");
}

TEST_F(Forecast, AFailureLeavesTheOldFile) {
  write("out.csv", "old");
  const Result result =
      forecast({"--horizon", "4", "--output", "out.csv", "--plot", "nowhere/p.svg"});
  expect_failure(result, 74, "write_failed");
  EXPECT_EQ(read_file(path("out.csv")), "old");
}

// A pipe instead of a table: opening it waits until the program has begun to read.
TEST_F(Forecast, InterruptWhileWaitingForInput) {
  ASSERT_EQ(mkfifo(path("pipe.csv").c_str(), 0600), 0);
  const pid_t process = start({{"forecast", "pipe.csv", "--model", tiny_model()}, "", {}, ""});
  const std::ofstream pipe(path("pipe.csv"));
  ASSERT_EQ(kill(process, SIGINT), 0);
  const Result result = wait(process);
  EXPECT_EQ(result.status, 130);
  EXPECT_THAT(result.err, testing::HasSubstr("toto: [interrupted] "));
}

TEST_F(Forecast, InterruptEndsALongRunWithoutAFile) {
  ASSERT_EQ(mkfifo(path("pipe.csv").c_str(), 0600), 0);
  const pid_t process = start({{"forecast", "pipe.csv", "--model", tiny_model(), "--horizon",
                                "100000", "--samples", "1024", "--output", "out.csv"},
                               "",
                               {},
                               ""});
  std::ofstream(path("pipe.csv")) << two_columns();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // so that it is at work by now
  ASSERT_EQ(kill(process, SIGINT), 0);
  const auto begun = std::chrono::steady_clock::now();
  const Result result = wait(process);
  EXPECT_EQ(result.status, 130);
  EXPECT_THAT(result.err, testing::HasSubstr("toto: [interrupted] "));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5));
  EXPECT_EQ(listing(), std::vector<std::string>{"pipe.csv"});
}

/// Daily values with an effect of +80 on every tenth day or so, and a table of those days.
class Covariates : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    std::string sales = "ds,sales\n";
    std::string days = "ds,holiday\n";
    for (int t = 0; t < 300; ++t) {
      const int holiday = t * 7919 % 97 < 10 ? 1 : 0;
      const double y = 150 + 5 * (t % 7) + 80 * holiday + t * 131 % 17 * 0.3;
      const std::string day = std::to_string(1000 + t);
      if (t < 260) sales += day + "," + std::to_string(y) + "\n";
      days += day + "," + std::to_string(holiday) + "\n";
      if (t >= 260 && t < 268) future_.push_back(holiday);
    }
    write("sales.csv", sales);
    write("days.csv", days);
  }
  /// The medians of eight steps.
  std::vector<double> medians(std::vector<std::string> more) {
    std::vector<std::string> command = {"forecast", "sales.csv", "--horizon", "8", "--json", "-q"};
    command.insert(command.end(), more.begin(), more.end());
    last_ = run(command);
    EXPECT_EQ(last_.status, 0) << last_.err;
    return nlohmann::json::parse(last_.out)["series"][0]["variates"][0]["median"];
  }
  std::vector<int> future_;
  Result last_;
};

TEST_F(Covariates, MoveTheForecastOfAnyModel) {
  const std::vector<double> with = medians({"--future", "days.csv"});
  EXPECT_THAT(last_.err, ::testing::HasSubstr("toto-nano-2 was not trained with covariates"));
  const std::vector<double> without = medians({});
  int holidays = 0;
  for (std::size_t h = 0; h < 8; ++h) {
    holidays += future_[h];
    const double gain = with[h] - without[h];
    EXPECT_TRUE(future_[h] == 1 ? gain > 50 : gain < 20) << h << ": " << gain;
  }
  EXPECT_GE(holidays, 1);
  EXPECT_EQ(medians({"--future", "days.csv", "--covariates", "regress"}), with);
  EXPECT_THAT(last_.err, ::testing::Not(::testing::HasSubstr("not trained")));
}

TEST_F(Covariates, KeepTheBoundsOfTheSum) {
  const std::vector<double> free = medians({"--future", "days.csv"});
  const double highest = std::ranges::max(free);
  const double bound = (highest + std::ranges::min(free)) / 2;
  const std::vector<double> kept =
      medians({"--future", "days.csv", "--max", std::to_string(bound)});
  for (std::size_t h = 0; h < 8; ++h) EXPECT_NEAR(kept[h], std::min(free[h], bound), 1e-3) << h;
  const std::vector<double> whole = medians({"--future", "days.csv", "--integer"});
  for (std::size_t h = 0; h < 8; ++h) EXPECT_EQ(whole[h], std::nearbyint(free[h])) << h;
}

TEST_F(Covariates, MoveTheForecastOfToto1) {
  const std::vector<std::string> flags = {"--future", "days.csv", "--model",
                                          source_path("models/toto-nano")};
  const std::vector<double> with = medians(flags);
  EXPECT_THAT(last_.err, ::testing::HasSubstr("toto-nano was not trained with covariates"));
  const std::vector<double> without = medians({"--model", source_path("models/toto-nano")});
  for (std::size_t h = 0; h < 8; ++h) {
    const double gain = with[h] - without[h];
    EXPECT_TRUE(future_[h] == 1 ? gain > 50 : gain < 20) << h << ": " << gain;
  }
}

TEST_F(Covariates, ThatTheModelHardlyNoticesAreToldOf) {
  const std::vector<double> with = medians({"--future", "days.csv", "--covariates", "model"});
  EXPECT_THAT(last_.err, ::testing::HasSubstr("hardly notices them"));
  const std::vector<double> without = medians({});
  for (std::size_t h = 0; h < 8; ++h) EXPECT_NEAR(with[h], without[h], 20);
}

TEST_F(Covariates, AreMeasuredByABacktest) {
  const Result result = run({"backtest", "sales.csv", "--future", "days.csv", "--horizon", "7",
                             "--windows", "12", "--out", "o", "--no-cache"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, ::testing::HasSubstr("covariates: MAE"));
  const nlohmann::json summary = nlohmann::json::parse(read_file(path("o/summary.json")));
  ASSERT_EQ(summary["covariates"].size(), 1U);
  EXPECT_LT(summary["covariates"][0]["ratio"], 0.5);
  const Result returns = run({"backtest", "sales.csv", "--future", "days.csv", "--transform", "pct",
                              "--out", "o", "--no-cache"});
  EXPECT_EQ(returns.status, 2);
  EXPECT_THAT(returns.err, ::testing::HasSubstr("[conflicting_flags]"));
}

}  // namespace
}  // namespace toto::test
