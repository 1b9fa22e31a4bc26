// SPDX-License-Identifier: Apache-2.0
// The words of the field in `toto forecast`: central intervals by level, the names of columns, a
// point forecast, and runs of many series that go on where they were stopped.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "support/paths.h"
#include "support/program.h"

namespace toto::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> all;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) all.push_back(field);
  return all;
}

class Words : public Program {
 protected:
  Result forecast(std::vector<std::string> more, const std::string& table = two_columns()) {
    write("in.csv", table);
    std::vector<std::string> arguments = {"forecast",  "in.csv", "--model",   tiny_model(),
                                          "--horizon", "5",      "--samples", "16",
                                          "--seed",    "3"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  /// The same columns of two runs, by name.
  static std::map<std::string, std::vector<std::string>> columns(const std::string& csv) {
    const std::vector<std::string> rows = lines(csv);
    const std::vector<std::string> names = fields(rows.at(0));
    std::map<std::string, std::vector<std::string>> all;
    for (std::size_t r = 1; r < rows.size(); ++r) {
      const std::vector<std::string> row = fields(rows[r]);
      for (std::size_t c = 0; c < names.size(); ++c) all[names[c]].push_back(row.at(c));
    }
    return all;
  }
};

TEST_F(Words, LevelsAreQuantilesOnBothSides) {
  const Result levels = forecast({"--level", "95,80", "--output", "-"});
  ASSERT_EQ(levels.status, 0) << levels.err;
  EXPECT_EQ(lines(levels.out).front(), "unique_id,date,mean,q0.025,q0.1,q0.5,q0.9,q0.975");
  EXPECT_EQ(levels.out, forecast({"--quantiles", "0.025,0.1,0.5,0.9,0.975", "--output", "-"}).out);
  // Beside --quantiles: both.
  const Result both = forecast({"--level", "80", "--quantiles", "0.3", "--output", "-"});
  EXPECT_EQ(lines(both.out).front(), "unique_id,date,mean,q0.1,q0.3,q0.9");
  EXPECT_EQ(lines(forecast({"--level", "99.9", "--output", "-"}).out).front(),
            "unique_id,date,mean,q0.0005,q0.5,q0.9995");
}

TEST_F(Words, TableAndPlotShowTheLevelsAskedFor) {
  const Result table = forecast({"--level", "60,98", "--plot", "a.html"});
  ASSERT_EQ(table.status, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("60 % interval"));
  EXPECT_THAT(table.out, HasSubstr("98 % interval"));
  EXPECT_THAT(table.out, Not(HasSubstr("80 % interval")));
  const std::string page = read_file(path("a.html"));
  EXPECT_THAT(page, HasSubstr("60 % interval"));
  EXPECT_THAT(page, HasSubstr("98 % interval"));
  EXPECT_THAT(page, Not(HasSubstr("80 % interval")));
  // Quantiles that lie alike on both sides are bands too.
  EXPECT_THAT(forecast({"--quantiles", "0.05,0.5,0.95"}).out, HasSubstr("90 % interval"));
  // Without either: 80 % in the table; 50, 80 and 95 % in the plot.
  EXPECT_THAT(forecast({"--plot", "b.svg"}).out, HasSubstr("80 % interval"));
  const std::string usual = read_file(path("b.svg"));
  for (const char* band : {"50 % interval", "80 % interval", "95 % interval"}) {
    EXPECT_THAT(usual, HasSubstr(band));
  }
}

TEST_F(Words, PlotsShowNoBandThatTheModelDoesNotKnow) {
  // Of Toto 2.0, which says nothing of levels beyond 0.1 and 0.9.
  write("in.csv", two_columns());
  const std::vector<std::string> deciles = {
      "forecast",  "in.csv", "--model", data_path("golden/toto2-tiny-uni"),
      "--horizon", "5",      "--plot",  "a.svg"};
  const Result plain = run(deciles);
  ASSERT_EQ(plain.status, 0) << plain.err;
  EXPECT_THAT(plain.err, Not(HasSubstr("levels beyond")));
  EXPECT_THAT(read_file(path("a.svg")), HasSubstr("80 % interval"));
  EXPECT_THAT(read_file(path("a.svg")), Not(HasSubstr("95 % interval")));
  std::vector<std::string> more = deciles;
  more.insert(more.end(), {"--tails", "exponential"});
  EXPECT_THAT(run(more).err, HasSubstr("exponential tails, an assumption"));
  EXPECT_THAT(read_file(path("a.svg")), HasSubstr("95 % interval"));
  more = deciles;
  more.insert(more.end(), {"--level", "95"});  // asked for: it is shown, with a warning
  EXPECT_THAT(run(more).err, HasSubstr("levels beyond give these"));
  EXPECT_THAT(read_file(path("a.svg")), HasSubstr("95 % interval"));
}

TEST_F(Words, LevelsThatAreNone) {
  for (const char* wrong : {"0", "100", "-5", "80,,95", "most", "nan", ""}) {
    expect_failure(forecast({"--level", wrong}), 2, "invalid_level");
  }
  expect_failure(forecast({"--level", "80", "--mean"}), 2, "usage");
}

TEST_F(Words, ColumnsAreNamedAsInTheTable) {
  const std::string table = "shop,when,y\na,2024-01-01,1\na,2024-01-02,2\na,2024-01-03,4\n";
  const std::vector<std::string> flags = {"--id",    "shop", "--level",  "80",
                                          "--clamp", "0",    "--output", "-"};
  const auto header = [&](std::vector<std::string> more) {
    more.insert(more.end(), flags.begin(), flags.end());
    const Result result = forecast(more, table);
    EXPECT_EQ(result.status, 0) << result.err;
    return lines(result.out).at(0);
  };
  EXPECT_EQ(header({}), "shop,when,mean,q0.1,q0.5,q0.9");
  EXPECT_EQ(header({"--columns", "input"}), "shop,when,mean,q0.1,q0.5,q0.9");
  EXPECT_EQ(header({"--columns", "toto"}), "unique_id,ds,mean,q0.1,q0.5,q0.9");
  EXPECT_EQ(header({"--columns", "nixtla"}), "unique_id,ds,Toto,Toto-lo-80,Toto-hi-80");
  EXPECT_EQ(header({"--columns", "chronos"}), "item_id,timestamp,target_name,predictions,0.1,0.9");
  expect_failure(forecast({"--columns", "prophet"}), 2, "invalid_choice");
}

// Tables that call them by other names have no name in common: they are called as without tables.
TEST_F(Words, TablesThatDifferAreCalledNeutrally) {
  write("b.csv", "shop,day,y\nb,2024-01-01,1\nb,2024-01-02,2\nb,2024-01-03,4\n");
  const Result result = forecast({"b.csv", "--output", "-", "--quantiles", "0.5"},
                                 "shop,when,y\na,2024-01-01,1\na,2024-01-02,2\na,2024-01-03,4\n");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(lines(result.out).at(0), "shop,ds,mean,q0.5");
}

// No two columns of a result have one name.
TEST_F(Words, ANameThatIsTakenIsNotKept) {
  const Result result = forecast({"--id", "point", "--output", "-", "--quantiles", "0.5"},
                                 "point,q1,y\na,2024-01-01,1\na,2024-01-02,2\na,2024-01-03,4\n");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(lines(result.out).at(0), "unique_id,ds,mean,q0.5");
}

TEST_F(Words, ThePointOfOthersIsTheMedian) {
  const auto own = columns(forecast({"--quantiles", "0.1,0.5,0.9", "--output", "-"}).out);
  const auto nixtla =
      columns(forecast({"--level", "80", "--columns", "nixtla", "--output", "-"}).out);
  const auto chronos = columns(
      forecast({"--quantiles", "0.1,0.5,0.9", "--columns", "chronos", "--output", "-"}).out);
  EXPECT_EQ(nixtla.at("Toto"), own.at("q0.5"));
  EXPECT_EQ(nixtla.at("Toto-lo-80"), own.at("q0.1"));
  EXPECT_EQ(nixtla.at("Toto-hi-80"), own.at("q0.9"));
  EXPECT_EQ(chronos.at("predictions"), own.at("q0.5"));
  EXPECT_EQ(chronos.at("0.5"), own.at("q0.5"));
  EXPECT_EQ(chronos.at("0.9"), own.at("q0.9"));
  EXPECT_EQ(chronos.at("target_name"), chronos.at("item_id"));
}

TEST_F(Words, AggregateIsAPointForecast) {
  const auto median = columns(forecast({"--aggregate", "median", "--output", "-"}).out);
  EXPECT_EQ(median.at("point"), median.at("q0.5"));
  const auto p10 = columns(forecast({"--aggregate", "p10", "--output", "-"}).out);
  EXPECT_EQ(p10.at("point"), p10.at("q0.1"));
  EXPECT_EQ(p10.at("q0.5"), median.at("q0.5"));
  EXPECT_NE(p10.at("point"), p10.at("q0.5"));
  const auto json = nlohmann::json::parse(forecast({"--aggregate", "p10", "--json"}).out);
  const auto& web = json.at("series").at(0).at("variates").at(0);
  EXPECT_EQ(web.at("point"), web.at("quantiles").at("0.1"));
  const Result table = forecast({"--aggregate", "p10"});
  EXPECT_THAT(table.out, HasSubstr("point"));
  EXPECT_THAT(table.out, Not(HasSubstr("median")));
  expect_failure(forecast({"--aggregate", "best"}), 2, "unknown_aggregate");
  expect_failure(forecast({"--aggregate", "p10", "--mean"}), 2, "usage");
}

class Resume : public Words {
 protected:
  /// A wide table of many series.
  static std::string many(std::size_t series, std::size_t days = 40) {
    std::string text = "date";
    for (std::size_t s = 0; s < series; ++s) text += ",s" + std::to_string(s);
    text += "\n";
    for (std::size_t t = 0; t < days; ++t) {
      char date[16];
      std::snprintf(date, sizeof(date), "2024-%02d-%02d", static_cast<int>(1 + t / 28),
                    static_cast<int>(1 + t % 28));
      text += date;
      for (std::size_t s = 0; s < series; ++s) {
        text += "," + std::to_string((t * (s + 3) + s * s) % 17 + 1);
      }
      text += "\n";
    }
    return text;
  }
  std::vector<std::string> command(const std::string& output) {
    return {"forecast",  "many.csv", "--model",   tiny_model(), "--layout", "wide",
            "--horizon", "20",       "--samples", "64",         "--seed",   "3",
            "--resume",  "kept",     "--output",  output};
  }
};

TEST_F(Resume, FindsWhatWasMade) {
  write("many.csv", many(300));
  const Result first = run(command("a.csv"));
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.err, Not(HasSubstr("were found")));
  const Result second = run(command("b.csv"));
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("300 of 300 forecasts were found in kept"));
  EXPECT_EQ(read_file(path("a.csv")), read_file(path("b.csv")));
  std::vector<std::string> without = command("c.csv");
  without.erase(without.begin() + 12, without.begin() + 14);
  ASSERT_EQ(run(without).status, 0);
  EXPECT_EQ(read_file(path("a.csv")), read_file(path("c.csv")));
  std::vector<std::string> apart = command("d.csv");
  apart.insert(apart.end(), {"--kv-cache", "private"});
  EXPECT_THAT(run(apart).err, Not(HasSubstr("were found")));
  // What was said of a series the first time is said again, and JSON is the same.
  std::vector<std::string> json = command("a.json"), json_again = without;
  json_again.back() = "c.json";
  ASSERT_EQ(run(json).status, 0);
  ASSERT_EQ(run(json_again).status, 0);
  EXPECT_EQ(read_file(path("a.json")), read_file(path("c.json")));
}

TEST_F(Resume, GoesOnWhereItWasKilled) {
  write("many.csv", many(700));
  std::vector<std::string> without = command("expected.csv");
  without.erase(without.begin() + 12, without.begin() + 14);
  ASSERT_EQ(run(without).status, 0);
  // Killed without warning once the first segment is there, then again.
  for (std::size_t segments = 1; segments <= 2; ++segments) {
    const pid_t process = start({command("a.csv"), {}, {}, {}});
    const auto written = [&] {
      std::size_t count = 0;
      std::error_code none;
      for (const auto& entry : std::filesystem::directory_iterator(path("kept"), none)) {
        count += entry.path().filename().string().starts_with(".") ? 0U : 1U;
      }
      return count;
    };
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(100);
    while (written() < segments && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ::kill(process, SIGKILL);
    (void)wait(process);
    ASSERT_GE(written(), segments);
  }
  const Result last = run(command("a.csv"));
  ASSERT_EQ(last.status, 0) << last.err;
  EXPECT_THAT(last.err, HasSubstr("of 700 forecasts were found in kept"));
  EXPECT_THAT(last.err, Not(HasSubstr(" 0 of 700")));
  EXPECT_EQ(read_file(path("a.csv")), read_file(path("expected.csv")));
}

TEST_F(Resume, OtherSettingsFindNothing) {
  write("many.csv", many(3));
  ASSERT_EQ(run(command("a.csv")).status, 0);
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--level", "70"},
           {"--clamp", "2"},
           {"--input-scale", "1"},
           {"--paths", "coherent"},
           {"--tails", "exponential"},
           {"--integer"},
           {"--min", "-1e9"},
           {"--quantiles-from", "samples"},
           {"--no-cache"},
           {"--align", "trim"},
           {"--context", "24"},
       }) {
    std::vector<std::string> all = command("b.csv");
    all.insert(all.end(), more.begin(), more.end());
    const Result result = run(all);
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.err, Not(HasSubstr("were found"))) << more.front();
    std::vector<std::string> without = all;
    without.erase(without.begin() + 12, without.begin() + 14);
    without[13] = "c.csv";
    ASSERT_EQ(run(without).status, 0);
    EXPECT_EQ(read_file(path("b.csv")), read_file(path("c.csv"))) << more.front();
  }
  // A table adds a note, and no other forecasts.
  std::vector<std::string> quiet = command("d.csv");
  quiet.emplace_back("--plot");
  quiet.emplace_back("d.svg");
  EXPECT_THAT(run(quiet).err, HasSubstr("3 of 3 forecasts were found"));
}

TEST_F(Resume, ExcludesWhatItDoesNotKeep) {
  write("many.csv", many(3));
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--aggregate", "p10"}, {"--output-samples", "s.csv"}, {"--parameters", "p.json"}}) {
    std::vector<std::string> all = command("b.csv");
    all.insert(all.end(), more.begin(), more.end());
    expect_failure(run(all), 2, "usage");
  }
}

}  // namespace
}  // namespace toto::test
