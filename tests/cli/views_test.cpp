// SPDX-License-Identifier: Apache-2.0
// Views, gaps that the model fills, and seasonal fills from the command line.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "support/program.h"

namespace toto::test {
namespace {

using nlohmann::json;

class ViewsCommand : public Program {
 protected:
  /// Hours with a day's shape; `lost` hours are missing from hour 100 on.
  static std::string hours(double level, int lost = 0) {
    std::string text = "ds,y\n";
    for (int t = 0; t < 168; ++t) {
      const double y = level + std::round(300 * std::sin(t * 0.2617993877991494)) / 100;
      const bool missing = t >= 100 && t < 100 + lost;
      text += fmt::format("2024-01-{:02} {:02}:00,{}\n", 1 + t / 24, t % 24,
                          missing ? std::string() : fmt::format("{}", y));
    }
    return text;
  }
  Result forecast(const std::string& table, std::vector<std::string> more) {
    write("in.csv", table);
    std::vector<std::string> all = {"forecast", "in.csv",    "--model", tiny_model(), "--seed",
                                    "3",        "--horizon", "20",      "--samples",  "16"};
    all.insert(all.end(), more.begin(), more.end());
    return run({all, "", {}, ""});
  }
  json series_of(const std::string& table, std::vector<std::string> more) {
    more.emplace_back("--json");
    const Result result = forecast(table, more);
    EXPECT_EQ(result.status, 0) << result.err;
    return json::parse(result.out)["series"][0];
  }
};

TEST_F(ViewsCommand, SaysPassesAndWhatIsLeftOut) {
  const json all = series_of(hours(20), {"--views", "flip,log,context/2"});
  EXPECT_EQ(all["passes"], 4);
  EXPECT_EQ(all["views_left_out"], "");
  const json some = series_of(hours(0), {"--views", "log,flip"});
  EXPECT_EQ(some["passes"], 2);
  EXPECT_EQ(some["views_left_out"], "log");
  EXPECT_FALSE(series_of(hours(20), {}).contains("passes"));
  const Result told = forecast(hours(0), {"--views", "log,flip"});
  EXPECT_NE(told.err.find("log left out"), std::string::npos) << told.err;
  EXPECT_NE(told.err.find("2 passes"), std::string::npos) << told.err;
}

TEST_F(ViewsCommand, FindsTheSeasonOrSaysThatThereIsNone) {
  const json found = series_of(hours(20), {"--views", "season"});
  EXPECT_EQ(found["passes"], 2);
  EXPECT_EQ(found["views_left_out"], "");
  EXPECT_EQ(found["season_period"], json({24}));
  std::string line = "ds,y\n";
  for (int t = 0; t < 60; ++t)
    line += fmt::format("2024-02-{:02} {:02}:00,{}\n", 1 + t / 24, t % 24, t);
  const json none = series_of(line, {"--views", "season,log"});
  EXPECT_EQ(none["passes"], 1);
  EXPECT_EQ(none["views_left_out"], "log,season");
  EXPECT_FALSE(none.contains("season_period"));
  const Result told = forecast(line, {"--views", "season,log"});
  EXPECT_NE(told.err.find("log,season left out (log: a value is 0 or less; season: none is found)"),
            std::string::npos)
      << told.err;
}

TEST_F(ViewsCommand, GoesOnWhereItStopped) {
  const std::vector<std::string> flags = {"--views", "log,flip", "--resume", path("kept"), "-q"};
  const json first = series_of(hours(0), flags);
  EXPECT_EQ(first, series_of(hours(0), flags));
  EXPECT_NE(first["variates"], series_of(hours(0), {"--resume", path("kept"), "-q"})["variates"]);
}

/// What is kept says what was found: nothing is looked for again.
TEST_F(ViewsCommand, LooksForNoSeasonOfWhatIsKept) {
  const std::vector<std::string> flags = {"--views",  "context/2,season,context/16,log,flip",
                                          "--resume", path("kept"),
                                          "--trace",  "trace.json"};
  const auto looked_for = [&] {
    return read_file(path("trace.json")).find("\"season\"") != std::string::npos;
  };
  for (const double level : {20.0, 0.0}) {
    const json first = series_of(hours(level), flags);
    EXPECT_TRUE(looked_for());
    EXPECT_EQ(first["season_period"], json({24}));
    EXPECT_EQ(first["views_left_out"], level > 0 ? "context/16" : "log,context/16");
    EXPECT_EQ(series_of(hours(level), flags), first);
    EXPECT_FALSE(looked_for());
  }
}

TEST_F(ViewsCommand, FillsGapsTheSameFromWhatIsKept) {
  const std::vector<std::string> flags = {"--missing", "model", "--resume", path("kept"), "-q"};
  const json first = series_of(hours(20, 12), flags);
  EXPECT_GT(first["filled_by_model"], 0);
  EXPECT_EQ(first, series_of(hours(20, 12), flags));
}

TEST_F(ViewsCommand, RefusesWhatHasNoAverage) {
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--views", "flip", "--mean"},
           {"--views", "flip", "--output-samples", "s.csv"},
           {"--views", "flop"},
           {"--views", "season", "--mean"},
           {"--views", "flip", "--aggregate", "trimmed_mean_10"}}) {
    EXPECT_EQ(forecast(hours(20), more).status, 2) << more[1];
  }
  EXPECT_EQ(forecast(hours(20), {"--views", "flip", "--aggregate", "p10"}).status, 0);
  for (const char* words : {"season,season", "season/2", "seasons"}) {
    const Result refused = forecast(hours(20), {"--views", words});
    EXPECT_EQ(refused.status, 2) << words;
    EXPECT_NE(refused.err.find("[invalid_views]"), std::string::npos) << refused.err;
  }
}

TEST_F(ViewsCommand, FillsGapsBySeasonAndByTheModel) {
  const json whole = series_of(hours(20), {});
  const json seasonal = series_of(hours(20, 12), {"--missing", "seasonal"});
  const json linear = series_of(hours(20, 12), {"--missing", "linear"});
  const auto distance = [&](const json& other) {
    double sum = 0;
    for (std::size_t t = 0; t < 20; ++t) {
      sum += std::abs(whole["variates"][0]["mean"][t].get<double>() -
                      other["variates"][0]["mean"][t].get<double>());
    }
    return sum;
  };
  EXPECT_LT(distance(seasonal), distance(linear));
  EXPECT_EQ(series_of(hours(20, 12), {"--missing", "seasonal", "--season", "1"})["variates"],
            linear["variates"]);
  EXPECT_EQ(series_of(hours(20, 12), {"--missing", "model"})["filled_by_model"], 12);
  EXPECT_FALSE(series_of(hours(20, 3), {"--missing", "model"}).contains("filled_by_model"));
}

/// Levels are float64 from the command line to the names of columns.
TEST_F(ViewsCommand, LevelsKeepTheirDigits) {
  const Result csv =
      forecast(hours(20), {"--quantiles", "0.0005,0.99999999", "--output", "-", "--views", "flip"});
  EXPECT_EQ(csv.status, 0) << csv.err;
  EXPECT_NE(csv.out.find(",q0.0005,q0.99999999\n"), std::string::npos) << csv.out.substr(0, 80);
}

}  // namespace
}  // namespace toto::test
