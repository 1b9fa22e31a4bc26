// SPDX-License-Identifier: Apache-2.0
// toto backtest as a user runs it: results that appear whole, the same bytes after any
// interruption, broken files named among good ones.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "support/program.h"

namespace toto::test {
namespace {

const std::vector<std::string> kResults = {"forecasts.csv", "metrics.csv", "report.html",
                                           "summary.json"};

std::string bars(int count, int symbol) {
  std::string text = "Date,Open,High,Low,Close/Last,Volume\n";
  for (int t = 0; t < count; ++t) {
    using namespace std::chrono;
    const year_month_day date = sys_days(2020y / January / 1) + std::chrono::days(t);
    const double p = 50 + 10 * symbol + 5 * std::sin(t / 11.0) + 3 * std::sin(t / 2.3 + symbol);
    char line[120];
    std::snprintf(line, sizeof line, "%04d-%02u-%02u,%.2f,%.2f,%.2f,%.2f,%d\n",
                  static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                  static_cast<unsigned>(date.day()), p, p + 1, p - 1, p + 0.3, 100 + t);
    text += line;
  }
  return text;
}

class Backtest : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    std::filesystem::create_directory(path("bars"));
    write("bars/AA.csv", bars(120, 0));
    write("bars/BB.csv", bars(100, 1));
  }
  static Invocation asked(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"backtest",  "bars", "--model",   tiny_model(),
                                          "--horizon", "4",    "--context", "32",
                                          "--samples", "16"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return {arguments, "", {}, ""};
  }
  Result backtest(const std::vector<std::string>& more) { return run(asked(more)); }
  std::map<std::string, std::string> results(const std::string& folder) {
    std::map<std::string, std::string> all;
    for (const std::string& name : kResults) all[name] = read_file(path(folder + "/" + name));
    return all;
  }
  nlohmann::json json(const std::string& name) {
    return nlohmann::json::parse(read_file(path(name)));
  }
};

TEST_F(Backtest, WritesItsResultsAndTheSameBytesAgain) {
  const Result first = backtest({"--out", "a", "--targets", "close,open", "--trade"});
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, testing::HasSubstr("MASE"));
  EXPECT_THAT(first.out, testing::HasSubstr("illustration, no advice"));
  for (const auto& [name, text] : results("a")) EXPECT_FALSE(text.empty()) << name;
  EXPECT_EQ(json("a/run.json").at("cache_hits"), 0);
  ASSERT_EQ(backtest({"--out", "b", "--targets", "close,open", "--trade", "--threads", "1"}).status,
            0);
  EXPECT_EQ(results("a"), results("b"));
  const auto before = results("a");
  ASSERT_EQ(backtest({"--out", "a", "--targets", "close,open", "--trade"}).status, 0);
  EXPECT_EQ(results("a"), before);
  EXPECT_EQ(json("a/run.json").at("cache_hit_rate"), 1.0);
}

TEST_F(Backtest, RunJsonNamesWhatRanWhere) {
  ASSERT_EQ(backtest({"--out", "a", "--quiet", "--mode", "default"}).status, 0);
  const nlohmann::json run = json("a/run.json");
  EXPECT_EQ(run.at("version"), TOTO_VERSION);
  EXPECT_EQ(run.at("mode"), "default");
  EXPECT_EQ(run.at("type"), "float32");
  EXPECT_EQ(run.at("device"), "cpu");
  EXPECT_NE(run.at("isa"), "");
  EXPECT_EQ(run.at("weights"), json("a/summary.json").at("model").at("weights"));
}

TEST_F(Backtest, CountersAndLatencyOfOneForecast) {
  const Result plain = backtest({"--out", "a", "--quiet"});
  EXPECT_EQ(plain.err, "");
  EXPECT_FALSE(json("a/run.json").contains("counters"));
  const Result counted = backtest({"--out", "b", "--counters", "--quiet"});
  ASSERT_EQ(counted.status, 0) << counted.err;
  EXPECT_THAT(counted.err, testing::HasSubstr(" fallbacks"));
  const nlohmann::json run = json("b/run.json");
  EXPECT_EQ(run.at("counters").at("graph_fallbacks"), 0);
  EXPECT_GT(run.at("forecasts_timed_alone"), 0);
  EXPECT_GT(run.at("forecast_seconds_p50"), 0.0);
  // Each was a call of its own beside the calls that made the results.
  EXPECT_GT(run.at("counters").at("forecasts"), run.at("forecasts_timed_alone"));
  EXPECT_EQ(results("a"), results("b"));
}

TEST_F(Backtest, WhatIsNoPriceIsNotTraded) {
  std::string text = "ds,y\n";
  for (int i = 0; i < 200; ++i) text += std::to_string(i) + "," + std::to_string(i % 11) + "\n";
  write("spots.csv", text);
  const Result result = run({"backtest", "spots.csv", "--model", tiny_model(), "--out", "a",
                             "--windows", "4", "--trade"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, testing::HasSubstr("nothing was traded"));
  EXPECT_FALSE(json("a/summary.json").contains("illustration"));
}

TEST_F(Backtest, SummaryAndPageHoldTogether) {
  ASSERT_EQ(backtest({"--out", "a", "--transform", "pct"}).status, 0);
  const nlohmann::json summary = json("a/summary.json");
  EXPECT_EQ(summary.at("symbols").size(), 2U);
  EXPECT_EQ(summary.at("symbols")[0].at("parameters").at("input_scale"), "automatic");
  EXPECT_GT(summary.at("input_scale_effect").at("contexts"), 0);
  EXPECT_EQ(summary.at("metrics")[0].at("forecaster"), "toto");
  EXPECT_TRUE(summary.at("metrics")[0].at("against").contains("drift"));
  const std::string page = read_file(path("a/report.html"));
  // Nothing is fetched: the one address is the name of SVG.
  for (std::size_t at = page.find("://"); at != std::string::npos; at = page.find("://", at + 1)) {
    EXPECT_EQ(page.substr(at - 4, 24), "http://www.w3.org/2000/s");
  }
  const std::string head = read_file(path("a/forecasts.csv")).substr(0, 100);
  EXPECT_TRUE(head.starts_with("symbol,target,window,step,origin,ds,last,actual,toto,last_value"));
}

TEST_F(Backtest, BrokenFilesAreNamedAndTheOthersEvaluated) {
  ASSERT_EQ(backtest({"--out", "good"}).status, 0);
  write("bars/empty.csv", "");
  write("bars/ragged.csv", "Date,Open,High,Low,Close\n2024-01-01,1,2,3\n");
  write("bars/text.csv", "Date,Open,High,Low,Close\n2024-01-01,1,2,0.5,abc\n");
  write("bars/twice.csv", "Date,Open,High,Low,Close\n2024-01-01,1,2,0.5,1\n2024-01-01,1,2,0.5,2\n");
  write("bars/back.csv", "Date,Open,High,Low,Close\n2024-01-02,1,2,0.5,1\n2024-01-01,1,2,0.5,2\n");
  write("bars/other.csv", "Date,Temperature\n2024-01-01,1\n");
  write("bars/short.csv", bars(5, 0));
  write("bars/utf16.csv",
        "\xFF\xFE"
        "D\0a\0");
  const Result result = backtest({"--out", "some", "--targets", "close"});
  EXPECT_EQ(result.status, 65);
  for (const char* what : {"[no_rows] bars/empty.csv", "[ragged_row] bars/ragged.csv:2",
                           "[not_a_number] bars/text.csv", "[duplicate_timestamp] bars/twice.csv:3",
                           "[too_short] bars/back.csv", "[missing_column] bars/other.csv",
                           "[too_short] bars/short.csv", "[encoding] bars/utf16.csv"}) {
    EXPECT_THAT(result.err, testing::HasSubstr(what));
  }
  EXPECT_EQ(read_file(path("some/forecasts.csv")), read_file(path("good/forecasts.csv")));
  EXPECT_EQ(json("some/summary.json").at("errors").size(), 8U);
  EXPECT_THAT(result.out, testing::HasSubstr("AA"));
}

TEST_F(Backtest, NothingIsWrittenWhereNothingCanBeEvaluated) {
  std::filesystem::create_directory(path("bad"));
  write("bad/one.csv", "");
  const Result result = run({"backtest", "bad", "--model", tiny_model(), "--out", "none"});
  expect_failure(result, 65, "no_rows");
  EXPECT_TRUE(std::filesystem::is_empty(path("none")));
}

TEST_F(Backtest, OnlyTheChosenSymbolsCount) {
  write("bars/empty.csv", "");
  const Result result = backtest({"--out", "a", "--symbols", "AA,BB"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, testing::HasSubstr("bars/empty.csv"));
}

TEST_F(Backtest, EverySymbolThatHasNoWindowIsNamed) {
  std::filesystem::create_directory(path("short"));
  write("short/RR.csv", bars(5, 0));
  write("short/SS.csv", bars(6, 0));
  const Result result = run({"backtest", "short", "--model", tiny_model(), "--out", "a"});
  expect_failure(result, 65, "no_windows");
  EXPECT_THAT(result.err, testing::HasSubstr("RR.csv"));
  EXPECT_THAT(result.err, testing::HasSubstr("SS.csv"));
}

TEST_F(Backtest, AResultThatCannotBeWrittenIsToldBeforeTheRun) {
  std::filesystem::create_directory(path("a"));
  std::filesystem::create_directory(path("a/report.html"));
  const Result result = backtest({"--out", "a"});
  EXPECT_EQ(result.status, 74) << result.err;
  EXPECT_FALSE(std::filesystem::exists(path("a/cache")));  // nothing was forecast
}

TEST_F(Backtest, TheCloseIsTradedAndWithoutDatesNothingIsYearly) {
  const Result close = backtest({"--out", "a", "--targets", "High,Close/Last", "--trade"});
  ASSERT_EQ(close.status, 0) << close.err;
  const auto summary = json("a/summary.json");
  for (const auto& trades : summary.at("illustration")) {
    EXPECT_EQ(trades.at("target"), "Close/Last");
    EXPECT_EQ(trades.at("yearly"), true);
  }
  std::string text = "index,close\n";
  for (int t = 0; t < 90; ++t) {
    text += std::to_string(t) + "," + std::to_string(50 + t % 7) + "\n";
  }
  write("rows.csv", text);
  const Result rows = run({"backtest", "rows.csv", "--model", tiny_model(), "--trade", "--horizon",
                           "2", "--context", "32", "--out", "b"});
  ASSERT_EQ(rows.status, 0) << rows.err;
  EXPECT_THAT(rows.out, testing::HasSubstr("nothing is said per year"));
  EXPECT_TRUE(json("b/summary.json").at("illustration")[0].at("sharpe").is_null());
}

TEST_F(Backtest, RepeatedRowsAreLeftOut) {
  ASSERT_EQ(backtest({"--out", "a"}).status, 0);
  std::string text = bars(120, 0);
  const std::size_t row = text.find("2020-02-01");
  text.insert(row, text.substr(row, text.find('\n', row) + 1 - row));
  write("bars/AA.csv", text);
  const Result result = backtest({"--out", "b"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.err, testing::HasSubstr("repeated_rows: AA: 1 rows"));
  EXPECT_EQ(read_file(path("a/forecasts.csv")), read_file(path("b/forecasts.csv")));
}

TEST_F(Backtest, KilledAtTwentyMomentsItEndsWithTheSameBytes) {
  write("bars/CC.csv", bars(900, 2));
  const std::vector<std::string> flags = {"--stride", "1", "--transform", "pct", "--quiet"};
  const auto with = [&](const std::string& out) {
    std::vector<std::string> all = flags;
    all.insert(all.end(), {"--out", out});
    return asked(all);
  };
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_EQ(run(with("whole")).status, 0);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::mt19937 random(7);
  std::uniform_real_distribution<double> share(0, 1);
  int killed = 0;
  int tries = 0;
  // At the end some work of a killed run must be there to go on from.
  const auto kept = [&] {
    if (!std::filesystem::exists(path("parts/cache"))) return false;
    const std::filesystem::directory_iterator files(path("parts/cache"));
    return std::any_of(begin(files), end(files), [](const auto& file) {
      return !file.path().filename().string().starts_with(".");
    });
  };
  while ((killed < 20 || !kept()) && tries++ < 90) {
    const pid_t process = start(with("parts"));
    std::this_thread::sleep_for(took * share(random));
    kill(process, SIGKILL);
    // A run that was faster has done everything; the next ones begin again. The first one may have
    // been slow for others on the machine.
    if (wait(process).status == 128 + SIGKILL) {
      ++killed;
    } else {
      took *= 0.8;
      std::filesystem::remove_all(path("parts"));
    }
  }
  EXPECT_GE(killed, 20);
  ASSERT_EQ(run(with("parts")).status, 0);
  EXPECT_GT(json("parts/run.json").at("cache_hits"), 0);
  EXPECT_EQ(results("parts"), results("whole"));
}

TEST_F(Backtest, DamagedCacheEntriesAreMisses) {
  ASSERT_EQ(backtest({"--out", "a"}).status, 0);
  const auto before = results("a");
  for (const auto& entry : std::filesystem::directory_iterator(path("a/cache"))) {
    std::string bytes = read_file(entry.path().string());
    bytes[bytes.size() / 2] ^= 1;
    write("a/cache/" + entry.path().filename().string(), bytes);
  }
  ASSERT_EQ(backtest({"--out", "a"}).status, 0);
  const nlohmann::json run = json("a/run.json");
  EXPECT_EQ(run.at("cache_entries_damaged"), 1);
  EXPECT_EQ(run.at("forecasts_made"), 1);
  EXPECT_EQ(results("a"), before);
}

TEST_F(Backtest, InterruptLeavesNoPartialResult) {
  write("bars/CC.csv", bars(6000, 2));
  const pid_t process =
      start({{"backtest", "bars", "--model", tiny_model(), "--context", "512", "--stride", "1",
              "--samples", "4096", "--transform", "pct", "--out", "a"},
             "",
             {},
             ""});
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  ASSERT_EQ(kill(process, SIGINT), 0);
  const Result result = wait(process);
  EXPECT_EQ(result.status, 130);
  EXPECT_THAT(result.err, testing::HasSubstr("toto: [interrupted] "));
  for (const std::string& name : kResults) EXPECT_FALSE(std::filesystem::exists(path("a/" + name)));
}

TEST_F(Backtest, RefusesWhatItCannotDo) {
  expect_failure(backtest({"--aggregate", "best"}), 2, "unknown_aggregate");
  expect_failure(backtest({"--aggregate", "trimmed_mean_0.7"}), 2, "invalid_aggregate");
  expect_failure(backtest({"--transform", "log"}), 2, "invalid_choice");
  expect_failure(backtest({"--rolling", "two-step"}), 2, "invalid_choice");
  expect_failure(backtest({"--stride", "0"}), 2, "invalid_stride");
  expect_failure(backtest({"--windows", "0"}), 2, "invalid_windows");
  expect_failure(backtest({"--input-scale", "0"}), 2, "invalid_input_scale");
  expect_failure(backtest({"--fee", "2"}), 2, "invalid_fee");
  expect_failure(backtest({"--from", "yesterday"}), 2, "invalid_time");
  expect_failure(backtest({"--symbols", "ZZ"}), 66, "missing_symbol");
  expect_failure(run({"backtest", "--model", tiny_model(), "nowhere"}), 66, "file_not_found");
  std::filesystem::create_directory(path("hollow"));
  expect_failure(run({"backtest", "--model", tiny_model(), "hollow"}), 66, "no_input");
}

TEST_F(Backtest, ParametersOfAFileAreThoseOfItsColumns) {
  std::string text = "day,sales,units\n";
  for (int t = 0; t < 90; ++t) {
    text += std::to_string(t) + "," + std::to_string(50 + t % 7) + "," + std::to_string(9 + t % 5) +
            "\n";
  }
  write("shop.csv", text);
  write("shop.json",
        R"({"format":"toto-parameters","version":1,"symbols":{"shop":{"context":24,"samples":8,)"
        R"("transform":"none","input_scale":1,"aggregate":"p90"}}})");
  const Result result = run({"forecast", "shop.csv", "--model", tiny_model(), "--horizon", "2",
                             "--parameters", "shop.json", "--output", "-"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, testing::Not(testing::HasSubstr("has no parameters")));
  EXPECT_TRUE(result.out.starts_with("unique_id,day,point,mean")) << result.out;
  EXPECT_THAT(result.out, testing::Not(testing::HasSubstr(",,")));
}

TEST_F(Backtest, TuneWritesAFileThatForecastAndBacktestRead) {
  const std::vector<std::string> tune = {"tune",
                                         "bars",
                                         "--model",
                                         tiny_model(),
                                         "--horizon",
                                         "3",
                                         "--contexts",
                                         "16,32",
                                         "--samples",
                                         "8",
                                         "--transforms",
                                         "none,pct",
                                         "--aggregates",
                                         "median,quantile_40",
                                         "--validation-windows",
                                         "8",
                                         "--test-windows",
                                         "4",
                                         "--output",
                                         "p.json"};
  const Result tuned = run(tune);
  ASSERT_EQ(tuned.status, 0) << tuned.err;
  EXPECT_THAT(tuned.out, testing::HasSubstr("8 candidates"));
  const std::string first = read_file(path("p.json"));
  ASSERT_EQ(run(tune).status, 0);
  EXPECT_EQ(read_file(path("p.json")), first);

  // A file that differs from the flags, so that what reads it can be told from what does not.
  write("q.json",
        R"({"format":"toto-parameters","version":1,"symbols":{"AA":{"context":24,"samples":8,)"
        R"("transform":"log-return","input_scale":50,"aggregate":"trimmed_mean_20"}}})");
  ASSERT_EQ(backtest({"--out", "a", "--parameters", "q.json"}).status, 0);
  const nlohmann::json symbols = json("a/summary.json").at("symbols");
  EXPECT_EQ(symbols[0].at("parameters").at("transform"), "log-return");
  EXPECT_EQ(symbols[0].at("parameters").at("input_scale"), 50);
  EXPECT_EQ(symbols[1].at("parameters").at("transform"), "none");

  const std::vector<std::string> plain = {
      "forecast", "bars/AA.csv", "bars/BB.csv", "--model", tiny_model(), "--layout", "bars",
      "--values", "Close/Last",  "--horizon",   "2",       "--output",   "-"};
  std::vector<std::string> with = plain;
  with.insert(with.end(), {"--parameters", "q.json"});
  const Result next = run(with);
  ASSERT_EQ(next.status, 0) << next.err;
  EXPECT_TRUE(next.out.starts_with("unique_id,Date,point,mean,q0.1"));
  EXPECT_THAT(next.err, testing::HasSubstr("q.json has no parameters for series \"BB\""));
  // BB is forecast as it is without the file, and has no point.
  const std::string without = run(plain).out;
  const auto row = [](const std::string& text, const std::string& id) {
    const std::string after = text.substr(text.find("\n" + id + ",") + 1);
    return after.substr(0, after.find('\n'));
  };
  // A series whose parameters do not fit it does not keep the others from their forecasts.
  std::filesystem::create_directory(path("odd"));
  write("odd/AA.csv", bars(119, 0) + "2020-04-29,1,1,1,0,1\n");
  std::vector<std::string> odd = with;
  odd[1] = "odd/AA.csv";
  const Result rest = run(odd);
  EXPECT_EQ(rest.status, 65);
  EXPECT_THAT(rest.err, testing::HasSubstr("[non_positive_value]"));
  EXPECT_THAT(rest.out, testing::HasSubstr("\nBB,"));
  EXPECT_THAT(rest.out, testing::Not(testing::HasSubstr("\nAA,")));
  std::string bb = row(next.out, "BB");
  const std::size_t point = bb.find(",,");
  ASSERT_NE(point, std::string::npos);
  EXPECT_EQ(bb.erase(point, 1), row(without, "BB"));
  EXPECT_NE(row(next.out, "AA"), row(without, "AA"));

  // Series with parameters of their own are one batch, each with the bits that it has alone.
  write(
      "both.json",
      R"({"format":"toto-parameters","version":1,"symbols":{"AA":{"context":24,"samples":8,)"
      R"("transform":"log-return","input_scale":50,"aggregate":"trimmed_mean_20"},)"
      R"("BB":{"context":48,"samples":16,"transform":"none","input_scale":1,"aggregate":"quantile_0.6"}}})");
  std::vector<std::string> both = with;
  both.back() = "both.json";
  both.emplace_back("--counters");
  const Result batch = run(both);
  ASSERT_EQ(batch.status, 0) << batch.err;
  EXPECT_THAT(batch.err, testing::HasSubstr("1 forecast of 2 series"));
  EXPECT_EQ(row(batch.out, "AA"), row(next.out, "AA"));
  std::vector<std::string> second = both;
  second.erase(second.begin() + 1);
  EXPECT_EQ(row(run(second).out, "BB"), row(batch.out, "BB"));
}

TEST_F(Backtest, TuneNamesNoFileThatItDoesNotWrite) {
  for (const char* name : {"bars/AA.csv", "bars/BB.csv"}) {
    const std::string text = read_file(path(name));
    write(name, text + text.substr(text.rfind('\n', text.size() - 2) + 1));  // its last row twice
  }
  const Result tuned =
      run({"tune", "bars", "--model", tiny_model(), "--contexts", "32", "--transforms", "none",
           "--aggregates", "median,mean", "--samples", "16", "--validation-windows", "12",
           "--test-windows", "12", "--horizon", "4"});
  ASSERT_EQ(tuned.status, 0) << tuned.err;
  EXPECT_THAT(tuned.err, testing::HasSubstr("(and 1 symbols more)"));
  EXPECT_EQ((tuned.err + tuned.out).find("summary.json"), std::string::npos);
}

TEST_F(Backtest, TuneRefusesWhatItCannotDo) {
  const auto tune = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"tune", "bars", "--model", tiny_model()};
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  };
  expect_failure(tune({"--aggregates", "median,best"}), 2, "unknown_aggregate");
  expect_failure(tune({"--contexts", "64,0"}), 2, "invalid_context");
  expect_failure(tune({"--transforms", "none,log"}), 2, "invalid_choice");
  expect_failure(tune({"--test-windows", "0"}), 2, "invalid_windows");
  expect_failure(tune({"--output", "nowhere/p.json"}), 74, "write_failed");
  expect_failure(backtest({"--parameters", "nowhere.json"}), 66, "file_not_found");
  EXPECT_FALSE(std::filesystem::exists(path("parameters.json")));
}

}  // namespace
}  // namespace toto::test
