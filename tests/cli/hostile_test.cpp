// SPDX-License-Identifier: Apache-2.0
// Input that is meant to break something: devices, pipes, names, numbers at the edge, caches that
// others wrote.
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/program.h"

namespace toto::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class Hostile : public Program {
 protected:
  static std::string toto(const std::string& arguments) {
    return std::string(program_path()) + " " + arguments;
  }
  static std::string with_model() { return " --model '" + tiny_model() + "' "; }
};

std::string table(double scale) {
  std::string text = "step,web,other\n";
  for (int i = 0; i < 96; ++i) {
    std::ostringstream line;
    line << i << ',' << 100 + 10 * std::sin(i) << ',' << scale * (1.5 + std::sin(i * 1.3)) << '\n';
    text += line.str();
  }
  return text;
}

std::string bars(int days, double step) {
  std::string text = "date,open,high,low,close,volume\n";
  double close = 100;
  for (const std::string two = two_columns(days); int day : {0}) {
    std::istringstream lines(two);
    std::string line;
    for (std::getline(lines, line); std::getline(lines, line); ++day) {
      close *= 1 + step * std::sin(day * 0.7);
      std::ostringstream row;
      row << line.substr(0, 10) << ',' << close << ',' << close * 1.01 << ',' << close * 0.99 << ','
          << close << ",1000\n";
      text += row.str();
    }
  }
  return text;
}

TEST_F(Hostile, OneSeriesBeyondTheRangeCostsNoOtherOne) {
  write("good.csv", table(1));
  write("in.csv", table(1.3e38));
  ASSERT_EQ(
      shell(toto("forecast good.csv --values web --output good.out.csv" + with_model())).status, 0);
  const Result result = shell(toto("forecast in.csv --output y.csv" + with_model()));
  EXPECT_EQ(result.status, 65);
  EXPECT_THAT(result.err, HasSubstr("toto: [nonfinite_forecast] series 'other'"));
  EXPECT_EQ(read_file(path("y.csv")), read_file(path("good.out.csv")));
  EXPECT_EQ(shell(toto("forecast in.csv --values other" + with_model())).status, 65);
}

TEST_F(Hostile, OneSeriesWithoutAFutureCostsNoOtherOne) {
  std::string text = "unique_id,ds,y\n";
  const auto date = [](int year, unsigned month, int day) {  // days from the first of a month
    using namespace std::chrono;
    const year_month_day d{sys_days{std::chrono::year{year} / std::chrono::month{month} / 1} +
                           days{day}};
    std::ostringstream out;
    out << int(d.year()) << '-' << std::setw(2) << std::setfill('0') << unsigned(d.month()) << '-'
        << std::setw(2) << unsigned(d.day());
    return out.str();
  };
  for (int i = 0; i < 64; ++i) {
    text += "near," + date(2001, 1, i) + ",1" + std::to_string(i % 7) + "\n";
    text += "late," + date(9999, 10, i) + ",1" + std::to_string(i % 7) + "\n";
  }
  write("in.csv", text);
  const Result result =
      shell(toto("forecast in.csv --horizon 64 -q --output y.csv" + with_model()));
  expect_failure(result, 65, "timestamp_overflow");
  EXPECT_THAT(read_file(path("y.csv")), HasSubstr("near,"));
}

TEST_F(Hostile, ParametersMayComeThroughAPipe) {
  write("in.csv", bars(64, 0.01));
  write(
      "p.json",
      R"({"format": "toto-parameters", "version": 1, "symbols": {"in": {"context": 32, "samples": 16,
            "transform": "log-return", "input_scale": 100.0, "aggregate": "median"}}})");
  const std::string rest = " --layout bars --values close --horizon 5" + with_model() + "--output ";
  const Result file = shell(toto("forecast in.csv --parameters p.json" + rest + "a.csv"));
  ASSERT_EQ(file.status, 0) << file.err;
  const Result pipe = shell(toto("forecast in.csv --parameters <(cat p.json)" + rest + "b.csv"));
  ASSERT_EQ(pipe.status, 0) << pipe.err;
  EXPECT_EQ(read_file(path("a.csv")), read_file(path("b.csv")));
}

TEST_F(Hostile, AnInputScaleThatOverflowsIsAnError) {
  write("in.csv", bars(200, 0.01));
  write(
      "p.json",
      R"({"format": "toto-parameters", "version": 1, "symbols": {"in": {"context": 32, "samples": 16,
            "transform": "none", "input_scale": 5e-324, "aggregate": "median"}}})");
  expect_failure(shell(toto("forecast in.csv --parameters p.json --horizon 5" + with_model())), 65,
                 "invalid_parameters");
  const std::string backtest = toto(
      "backtest in.csv --horizon 5 --windows 2 --samples 16 --transform log-return" + with_model());
  const Result result = shell(backtest + "--out bad --input-scale 1e-12");
  EXPECT_EQ(result.status, 65);
  EXPECT_THAT(result.err, HasSubstr("[nonfinite_forecast]"));
  EXPECT_FALSE(std::filesystem::exists(path("bad/forecasts.csv")));
  // Beside a symbol that can be forecast only the other one is lost.
  write(
      "p2.json",
      R"({"format": "toto-parameters", "version": 1, "symbols": {"in": {"context": 32, "samples": 16,
            "transform": "log-return", "input_scale": 1e-12, "aggregate": "median"}}})");
  write("good.csv", bars(200, 0.02));
  const Result both = shell(toto("backtest in.csv good.csv --horizon 5 --windows 2 --samples 16 "
                                 "--out both --parameters p2.json") +
                            with_model());
  EXPECT_EQ(both.status, 65);
  EXPECT_THAT(both.err, HasSubstr("[nonfinite_forecast]"));
  const std::string forecasts = read_file(path("both/forecasts.csv"));
  EXPECT_THAT(forecasts, HasSubstr("good,"));
  EXPECT_EQ(forecasts.find("inf"), std::string::npos);
  EXPECT_EQ(forecasts.find("nan"), std::string::npos);
}

TEST_F(Hostile, ResultsNameTheWeightsAsModelInfoDoes) {
  write("in.csv", bars(100, 0.01));
  const Result result =
      shell(toto("backtest in.csv --horizon 5 --windows 2 --out out -q" + with_model()));
  ASSERT_EQ(result.status, 0) << result.err;
  const std::string summary = read_file(path("out/summary.json"));
  const Result info = shell(toto("model info '" + tiny_model() + "' --json"));
  const json described = json::parse(info.out);
  for (const auto& [file, hash] : described["sha256"].items()) {
    EXPECT_THAT(summary, HasSubstr("\"weights\": \"" + hash.get<std::string>() + "\""));
  }
}

#ifndef TOTO_SANITIZED
TEST_F(Hostile, DevicesAndHolesDoNotFillTheMemory) {
  ASSERT_EQ(shell("truncate -s 3G hole.csv").status, 0);
  for (const char* input : {"/dev/zero", "hole.csv"}) {
    const Result result =
        shell("ulimit -v 2000000; " + toto("backtest " + std::string(input) + with_model()));
    expect_failure(result, 65, "encoding");
  }
}

TEST_F(Hostile, ALargeDamagedCacheSegmentIsAMiss) {
  write("in.csv", bars(100, 0.01));
  std::filesystem::create_directory(path("cache"));
  const std::string segment = "cache/predictions-0123456789abcdef0123456789abcdef.bin";
  write(segment, "totopred0001");
  ASSERT_EQ(shell("truncate -s 1900M " + segment).status, 0);
  const Result result = shell("ulimit -v 1500000; " +
                              toto("backtest in.csv --horizon 5 --windows 2 --threads 1 --out out "
                                   "--cache-dir cache -q" +
                                   with_model()));
  EXPECT_EQ(result.status, 0) << result.err;
}
#endif

TEST_F(Hostile, NamesThatAreNotTextAreShownAsWellAsCanBe) {
  const std::string folder = "m\xff";
  std::filesystem::copy(tiny_model(), folder_ / folder);
  write("in.csv", two_columns());
  const Result info = shell(toto("model info $'m\\xff' --json"));
  ASSERT_EQ(info.status, 0) << info.err;
  EXPECT_EQ(json::parse(info.out)["name"], "m\xEF\xBF\xBD");
  const Result forecast = shell(toto("forecast in.csv --json --model $'m\\xff'"));
  ASSERT_EQ(forecast.status, 0) << forecast.err;
  EXPECT_EQ(json::parse(forecast.out)["model"], "m\xEF\xBF\xBD");
}

TEST_F(Hostile, RingsOfLinksAreNoDefectOfTheProgram) {
  std::filesystem::create_symlink("ring", path("ring"));
  write("in.csv", two_columns());
  for (const std::string& line :
       {"forecast ring" + with_model(), std::string("forecast in.csv --model ring"),
        "backtest ring" + with_model(), "forecast in.csv --output ring/y.csv" + with_model(),
        std::string("verify --golden ring"), "verify --record ring" + with_model(),
        std::string("model info ring")}) {
    const Result result = shell(toto(line));
    EXPECT_NE(result.status, 0) << line;
    EXPECT_NE(result.status, 70) << line << ": " << result.err;
    EXPECT_EQ(result.err.find("[internal]"), std::string::npos) << result.err;
  }
}

TEST_F(Hostile, AnEarlierReportOfAnotherShapeIsNamed) {
  for (const char* text : {"3", "[]", "{}", R"({"rows": 3})", R"({"rows": [3]})",
                           R"({"rows": [{"workload": 1, "subject": "x", "median_ms": 1}]})"}) {
    write("before.json", text);
    expect_failure(shell(toto("bench 1x1x8x8 --compare before.json")), 65, "invalid_report");
  }
}

TEST_F(Hostile, ANumberOfThreadsIsJudgedWhereItIsUsed) {
  write("in.csv", two_columns());
  const Result result = shell("TOTO_NUM_THREADS=0 " + toto("forecast in.csv" + with_model()));
  expect_failure(result, 78, "invalid_threads");
  EXPECT_THAT(result.err, HasSubstr("TOTO_NUM_THREADS"));
  EXPECT_EQ(shell("TOTO_NUM_THREADS=0 " + toto("model info" + with_model().substr(8))).status, 0);
}

TEST_F(Hostile, WithoutThreadsToBeHadTheLimitIsNamed) {
  write("in.csv", two_columns());
  std::string as;
  if (::getuid() == 0) {  // root has no limit
    as = "setpriv --reuid 65534 --regid 65534 --clear-groups ";
    std::filesystem::permissions(
        folder_, std::filesystem::perms::others_read | std::filesystem::perms::others_exec,
        std::filesystem::perm_options::add);
    if (shell(as + toto("model info '" + tiny_model() + "'")).status != 0) {
      GTEST_SKIP() << "no other user can run the program";
    }
  }
  const std::string line =
      toto("forecast in.csv --threads 8 --plan-cache never --output /dev/null" + with_model());
  ASSERT_EQ(shell(as + line).status, 0);
  // The search for leaks at the end of a sanitized program wants a thread of its own.
  const std::string no_search = "export ASAN_OPTIONS=\"$ASAN_OPTIONS:detect_leaks=0\"; ";
  expect_failure(shell(no_search + "ulimit -u 1; exec " + as + line), 70, "no_threads");
}

TEST_F(Hostile, AMarkdownReportCarriesNoHtml) {
  std::string text = two_columns();
  text.replace(text.find("web"), 3, "<img src=x>[a](b)");
  write("in.csv", text);
  const Result report =
      shell(toto("verify --data in.csv --only 'accuracy' --report r.md" + with_model()));
  const std::string page = read_file(path("r.md"));
  ASSERT_FALSE(page.empty()) << report.err;
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_NE(page.find("img src=x"), std::string::npos);  // it is there, as text
}

TEST_F(Hostile, ReportsAndRecordsDoNotNameThePlanCache) {
  write("in.csv", two_columns());
  const Result result =
      shell("TOTO_PLAN_CACHE_DIR='" + path("secret") + "' " +
            toto("verify --data in.csv --only history --record h.json --report r.md "
                 "--report r.html --report r.json") +
            with_model());
  EXPECT_EQ(result.status, 1) << result.err;
  for (const char* name : {"h.json", "r.md", "r.html", "r.json"}) {
    const std::string text = read_file(path(name));
    EXPECT_FALSE(text.empty()) << name;
    EXPECT_EQ(text.find("secret"), std::string::npos) << name;
    EXPECT_EQ(text.find("plan-cache-dir"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace toto::test
