// SPDX-License-Identifier: Apache-2.0
// toto detect: what it reports, and with what exit status.
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/program.h"

namespace toto::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Detect : public Program {
 protected:
  /// Five-minute values of a cycle; row 500 is an anomaly.
  static std::string table(std::size_t rows, bool anomaly = true) {
    std::string text = "time,latency\n";
    for (std::size_t t = 0; t < rows; ++t) {
      const double x = static_cast<double>(t);
      double y = 50 + 10 * std::sin(x * 2 * 3.14159265 / 48) + 0.7 * std::sin(x * x);
      if (anomaly && t == 500) y += 40;
      char line[64];
      std::snprintf(line, sizeof(line), "2024-03-%02dT%02d:%02d:00,%.4f\n",
                    static_cast<int>(1 + t / 288), static_cast<int>(t % 288 / 12),
                    static_cast<int>(t % 12 * 5), y);
      text += line;
    }
    return text;
  }
  static std::vector<nlohmann::json> lines(const std::string& text) {
    std::vector<nlohmann::json> all;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }
};

TEST_F(Detect, TellsPeople) {
  write("a.csv", table(600));
  const Result result = run({"detect", "a.csv", "--false-alarms", "0.02"});
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("latency   472 scored, 1 anomaly"));
  EXPECT_THAT(result.out, HasSubstr("0.02 false alarms a day"));
  EXPECT_THAT(result.out, HasSubstr("2024-03-02T17:40:00"));
}

TEST_F(Detect, SaysWhyNothingWasScored) {
  write("short.csv", table(100));
  Result result = run({"detect", "short.csv"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("latency   nothing scored: 100 steps, and the first 128 are not "
                        "scored (--min-history)"));
  // Enough history, and nothing observed among the steps that are reported.
  std::string text = table(400);
  std::size_t at = 0;
  for (int row = 0; row <= 390; ++row) at = text.find('\n', at) + 1;
  while (at < text.size()) {
    const std::size_t comma = text.find(',', at), end = text.find('\n', at);
    text.erase(comma + 1, end - comma - 1);
    at = text.find('\n', at) + 1;
  }
  write("dead.csv", text);
  result = run({"detect", "dead.csv", "--last", "5"});
  EXPECT_THAT(result.out, HasSubstr("nothing scored: nothing was observed there"));
}

TEST_F(Detect, HasAnExitStatusForCron) {
  write("a.csv", table(600));
  EXPECT_EQ(run({"detect", "a.csv", "--threshold", "1e-4", "--quiet"}).status, 1);
  EXPECT_EQ(run({"detect", "a.csv", "--threshold", "1e-4", "--quiet", "--last", "100"}).status, 1);
  EXPECT_EQ(run({"detect", "a.csv", "--threshold", "1e-4", "--quiet", "--last", "99"}).status, 0);
  EXPECT_EQ(run({"detect", "missing.csv", "--quiet"}).status, 66);
}

TEST_F(Detect, WritesLines) {
  write("a.csv", table(600));
  const Result result =
      run({"detect", "a.csv", "--json", "--score", "bits", "--output", "o.jsonl"});
  EXPECT_EQ(result.status, 1) << result.err;
  const std::vector<nlohmann::json> all = lines(result.out);
  ASSERT_EQ(all.size(), 472U);
  EXPECT_EQ(result.out, read_file(path("o.jsonl")));
  const nlohmann::json& found = all[500 - 128];
  EXPECT_EQ(found["id"], "latency");
  EXPECT_EQ(found["ds"], "2024-03-02T17:40:00");
  EXPECT_EQ(found["anomaly"], true);
  EXPECT_GT(found["score"], 10);
  EXPECT_GT(found["y"], found["high"]);
  const Result only = run({"detect", "a.csv", "--json", "--anomalies"});
  for (const nlohmann::json& line : lines(only.out)) EXPECT_EQ(line["anomaly"], true);
  EXPECT_LT(lines(only.out).size(), 5U);
}

TEST_F(Detect, FollowsStandardInput) {
  write("a.csv", table(600));
  const Result whole = run({"detect", "a.csv", "--json"});
  const Result followed = run(Invocation{{"detect", "--follow", "--json"}, table(600), {}, {}});
  EXPECT_EQ(followed.status, 1) << followed.err;
  EXPECT_EQ(followed.out, whole.out);
  // The past from a file, the rest from a pipe, whose head is the same.
  write("past.csv", table(400));
  std::string rest = table(600);
  rest.erase(rest.find('\n') + 1, table(400).size() - rest.find('\n') - 1);
  const Result after = run(Invocation{{"detect", "past.csv", "--follow"}, rest, {}, {}});
  EXPECT_EQ(after.out, whole.out.substr(whole.out.size() - after.out.size()));
  EXPECT_EQ(lines(after.out).size(), 200U);
}

TEST_F(Detect, GoesOnAfterABrokenRow) {
  std::string text = table(600);
  const std::size_t at = text.find("2024-03-02T00:00:00");
  text.insert(at, "2024-03-02T00:00:00,oops\n");
  const Result result = run(Invocation{{"detect", "--follow"}, text, {}, {}});
  EXPECT_EQ(result.status, 65);
  EXPECT_THAT(result.err, HasSubstr("oops"));
  EXPECT_EQ(lines(result.out).size(), 472U);
}

TEST_F(Detect, NeedsTimesToFollow) {
  std::string text = "y\n";
  for (int t = 0; t < 200; ++t) text += {static_cast<char>('0' + t % 7), '\n'};
  const Result result = run(Invocation{{"detect", "--follow"}, text, {}, {}});
  EXPECT_EQ(result.status, 65);
  EXPECT_THAT(result.err, HasSubstr("[no_timestamps]"));
}

TEST_F(Detect, Draws) {
  write("a.csv", table(600));
  EXPECT_EQ(run({"detect", "a.csv", "--plot", "a.html", "--quiet"}).status, 1);
  EXPECT_THAT(read_file(path("a.html")), HasSubstr(">Anomaly</text>"));
  EXPECT_EQ(run({"detect", "a.csv", "--plot", "a.svg", "--quiet"}).status, 1);
  EXPECT_THAT(read_file(path("a.svg")), HasSubstr("Outside the band"));
}

TEST_F(Detect, RefusesWhatDoesNotFit) {
  write("a.csv", table(200));
  const auto fails = [&](std::vector<std::string> more, const char* code, int status = 2) {
    std::vector<std::string> command = {"detect", "a.csv"};
    command.insert(command.end(), more.begin(), more.end());
    const Result result = run(command);
    EXPECT_EQ(result.status, status) << result.err;
    EXPECT_THAT(result.err, HasSubstr(code));
  };
  fails({"--false-alarms", "288"}, "[invalid_false_alarms]");
  fails({"--block", "33"}, "[invalid_block]");
  fails({"--threshold", "2"}, "[invalid_threshold]");
  fails({"--plot", "a.png"}, "[unknown_suffix]");
  fails({"--follow", "--last", "3"}, "[conflicting_flags]");
  fails({"--output", "a.csv"}, "a.csv");
  fails({"--json", "--output", "-"}, "[conflicting");
}

}  // namespace
}  // namespace toto::test
