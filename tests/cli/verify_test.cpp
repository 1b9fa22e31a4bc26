// SPDX-License-Identifier: Apache-2.0
// toto verify as a user runs it: a suite on a small model, its reports, and doctored inputs. Checks
// of speed are left aside, since the machine that runs tests is busy with other tests.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "json_schema.h"
#include "support/paths.h"
#include "support/program.h"

namespace toto::test {
namespace {

using nlohmann::json;

class Verify : public Program {
 protected:
  Result verify(std::vector<std::string> more) {
    std::vector<std::string> arguments = {"verify", "--model", tiny_model()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(Invocation{arguments, "", environment_, ""});
  }
  /// The checks that do not hold, by group and name.
  static std::vector<std::string> failed(const json& report) {
    std::vector<std::string> names;
    for (const json& check : report["checks"]) {
      const std::string verdict = check["verdict"];
      if (verdict == "holds" || verdict == "warning" || check["group"] == "performance") continue;
#ifdef TOTO_SANITIZED  // AddressSanitizer keeps what was freed for a while
      if (check["name"].get<std::string>().find("memory") != std::string::npos) continue;
#endif
      names.push_back(check["group"].get<std::string>() + ": " + check["name"].get<std::string>());
    }
    return names;
  }
  std::vector<std::pair<std::string, std::string>> environment_;
};

json schema() { return json::parse(read_file(source_path("docs/verify.schema.json"))); }

TEST_F(Verify, QuickSuiteWithDataReportsAndHistory) {
  write("in.csv", two_columns(96));
  const Result result = verify({"--data", "in.csv", "--report", "r.md", "--report", "r.html",
                                "--report", "r.json", "--record", "before.json"});
  const json report = json::parse(read_file(path("r.json")));
  EXPECT_EQ(failed(report), std::vector<std::string>());
  EXPECT_EQ(problems_of(schema(), report), std::vector<std::string>());
  EXPECT_EQ(result.status, report["holds"] == true ? 0 : 3) << result.err;
  for (const char* group : {"environment", "correctness", "determinism", "performance", "stability",
                            "accuracy", "history"}) {
    EXPECT_TRUE(std::any_of(report["checks"].begin(), report["checks"].end(), [&](const json& c) {
      return c["group"] == group;
    })) << group;
  }
  EXPECT_TRUE(read_file(path("r.md")).starts_with("# Verification of "));
  EXPECT_TRUE(read_file(path("r.html")).starts_with("<!DOCTYPE html>"));
  EXPECT_EQ(listing(),
            (std::vector<std::string>{"before.json", "in.csv", "r.html", "r.json", "r.md"}));
  EXPECT_THAT(json::parse(read_file(path("before.json")))["format"], "toto-forecasts 1");
}

TEST_F(Verify, JsonOfAFailureFitsTheSchemaToo) {
  const Result result = verify({"--only", "history", "--against", "nowhere.json", "--json"});
  json report = json::parse(result.out);
  EXPECT_TRUE(report["checks"][0]["value"].is_null());
  EXPECT_EQ(problems_of(schema(), report), std::vector<std::string>());
  // And the schema is one that can fail.
  report["checks"][0]["verdict"] = "perhaps";
  report["checks"][0]["value"] = "1";
  report["surplus"] = 1;
  report.erase("seconds");
  EXPECT_EQ(problems_of(schema(), report).size(), 4U);
}

TEST_F(Verify, HistoryThatDrifts) {
  write("in.csv", two_columns(96));
  ASSERT_EQ(verify({"--data", "in.csv", "--record", "h.json", "--only", "history"}).status, 1);
  const auto against = [&](double factor) {
    json history = json::parse(read_file(path("h.json")));
    json& value = history["series"][1]["scale"][5];
    value = value.get<double>() * factor;
    write("changed.json", history.dump());
    const Result result =
        verify({"--data", "in.csv", "--against", "changed.json", "--only", "history", "--json"});
    EXPECT_EQ(result.status, factor < 1.0005 ? 1 : 3) << factor;  // a part approves nothing
    return json::parse(result.out)["checks"];
  };
  EXPECT_EQ(against(1.0)[2]["verdict"], "holds");
  EXPECT_EQ(against(1 + 1e-5)[2]["verdict"], "warning");
  const json checks = against(1.001);
  EXPECT_EQ(checks[1]["verdict"], "holds");
  EXPECT_EQ(checks[2]["verdict"], "fails");
  EXPECT_THAT(checks[2]["why"], testing::HasSubstr("step 2"));  // of 3 components, the sixth number
}

TEST_F(Verify, APartialRunSaysThatItApprovesNothing) {
  const Result result = verify({"--only", "environment"});
  EXPECT_EQ(result.status, 1) << result.out;
  EXPECT_THAT(result.out, testing::HasSubstr("approves nothing"));
  const Result broken = verify({"--only", "environment: modes judged", "--modes", "eager"});
  EXPECT_EQ(broken.status, 3);
  EXPECT_THAT(broken.out, testing::HasSubstr("DO NOT DEPLOY"));
}

TEST_F(Verify, APartThatIsInNoSuiteIsAnError) {
  const Result result = verify({"--only", "determinizm", "--report", "r.json"});
  expect_failure(result, 2, "unknown_check");
  EXPECT_THAT(result.err, testing::HasSubstr("did you mean determinism?"));
  EXPECT_EQ(listing(), std::vector<std::string>());
}

TEST_F(Verify, OneSeriesIsEnough) {
  std::string one = "ds,y\n";
  for (int i = 0; i < 96; ++i) one += std::to_string(i) + "," + std::to_string(i % 7 + 3) + "\n";
  write("one.csv", one);
  const Result result = verify({"--data", "one.csv", "--only", "determinism: reduce", "--json"});
  EXPECT_EQ(failed(json::parse(result.out)), std::vector<std::string>());
  EXPECT_EQ(result.status, 1) << result.out;
}

TEST_F(Verify, OnlyTheModeInForceIsJudged) {
  environment_ = {{"TOTO_DISABLE_COMPILE", "1"}};
  const Result result = verify({"--only", "accuracy", "--json"});
  EXPECT_EQ(result.status, 1) << result.out;
  const json report = json::parse(result.out);
  for (const json& check : report["checks"]) {
    EXPECT_TRUE(std::string(check["name"]).starts_with("eager float32")) << check["name"];
  }
  environment_.clear();
  expect_failure(verify({"--modes", "fast"}), 2, "invalid_choice");
}

TEST_F(Verify, DriftIsTold) {
  write("in.csv", two_columns(96));
  ASSERT_EQ(verify({"--data", "in.csv", "--record", "h.json", "--only", "history"}).status, 1);
  const auto drift = [&](const std::string& data, const std::string& against) {
    return run({"drift", "--model", tiny_model(), "--data", data, "--against", against, "--json"});
  };
  const Result same = drift("in.csv", "h.json");
  EXPECT_EQ(same.status, 0) << same.out << same.err;
  EXPECT_EQ(json::parse(same.out)["status"], "same");
  EXPECT_EQ(json::parse(same.out)["largest"], 0.0);

  json history = json::parse(read_file(path("h.json")));
  json& value = history["series"][1]["scale"][5];
  value = value.get<double>() * 1.001;
  write("changed.json", history.dump());
  const Result drifted = drift("in.csv", "changed.json");
  EXPECT_EQ(drifted.status, 1);
  EXPECT_EQ(json::parse(drifted.out)["status"], "drifted");
  EXPECT_GT(json::parse(drifted.out)["largest"], 1e-5);

  write("other.csv", two_columns(90));
  const Result other = drift("other.csv", "h.json");
  EXPECT_EQ(other.status, 3);
  EXPECT_EQ(json::parse(other.out)["status"], "not compared");
  EXPECT_EQ(drift("in.csv", "nowhere.json").status, 3);
}

TEST_F(Verify, HistoryOfOtherData) {
  write("in.csv", two_columns(96));
  ASSERT_EQ(verify({"--data", "in.csv", "--record", "h.json", "--only", "history"}).status, 1);
  write("other.csv", two_columns(90));
  const Result result =
      verify({"--data", "other.csv", "--against", "h.json", "--only", "history", "--json"});
  EXPECT_EQ(json::parse(result.out)["checks"][1]["verdict"], "could not run");
  write("broken.json", "{\"format\": \"toto-forecasts 1\"}");
  const Result broken = verify({"--against", "broken.json", "--only", "history", "--json"});
  EXPECT_EQ(broken.status, 3);
  EXPECT_EQ(json::parse(broken.out)["checks"][0]["verdict"], "could not run");
}

TEST_F(Verify, HistoryOfASeriesThatIsGone) {
  write("in.csv", two_columns(96));
  ASSERT_EQ(verify({"--data", "in.csv", "--record", "h.json", "--only", "history"}).status, 1);
  json history = json::parse(read_file(path("h.json")));
  json gone = history["series"][0];
  gone["id"] = "gone";
  history["series"].push_back(gone);
  write("more.json", history.dump());
  const Result result =
      verify({"--data", "in.csv", "--against", "more.json", "--only", "history", "--json"});
  const json report = json::parse(result.out);
  const json& last = report["checks"].back();
  EXPECT_EQ(last["verdict"], "could not run");
  EXPECT_THAT(last["name"], testing::HasSubstr("gone"));
}

TEST_F(Verify, ARecordIsReplacedOnlyByAWholeRunThatHeld) {
  write("in.csv", two_columns(96));
  write("h.json", "of an earlier release");
  const auto kept = [&](const Result& result) {
    EXPECT_EQ(result.status, 3);
    EXPECT_EQ(read_file(path("h.json")), "of an earlier release");
    const json checks = json::parse(result.out)["checks"];
    const auto file = std::find_if(checks.begin(), checks.end(),
                                   [](const json& c) { return c["name"] == "record: file"; });
    ASSERT_NE(file, checks.end());
    EXPECT_EQ((*file)["verdict"], "fails");
    EXPECT_THAT((*file)["why"], testing::HasSubstr("is kept as it was"));
  };
  kept(verify({"--data", "in.csv", "--record", "h.json", "--only", "history", "--json"}));
  environment_ = {{"TOTO_COMPILE_MOD", "eager"}};
  kept(verify({"--data", "in.csv", "--record", "h.json", "--json"}));
  EXPECT_EQ(listing(), (std::vector<std::string>{"h.json", "in.csv"}));
}

/// A copy of the small checkpoint with one bias of layer 2 off by 1e-4.
std::string write_doctored_model(const std::string& folder) {
  std::filesystem::copy(tiny_model(), folder);
  const std::string file = folder + "/model.safetensors";
  std::string bytes = read_file(file);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const json header = json::parse(bytes.substr(8, length));
  std::string name;
  for (const auto& [key, tensor] : header.items()) {
    if (key.find("layers.2.") != std::string::npos && key.ends_with("bias")) name = key;
  }
  EXPECT_FALSE(name.empty());
  char* const at = bytes.data() + 8 + length + header[name]["data_offsets"][0].get<std::size_t>();
  float bias = 0;
  std::memcpy(&bias, at, sizeof bias);
  bias += 1e-4F;
  std::memcpy(at, &bias, sizeof bias);
  std::filesystem::permissions(file, std::filesystem::perms::owner_write,
                               std::filesystem::perm_options::add);
  std::ofstream(file, std::ios::binary) << bytes;
  return folder;
}

TEST_F(Verify, PlantedFaultsFailAWholeRun) {
  write("in.csv", two_columns(96));
  ASSERT_EQ(verify({"--data", "in.csv", "--record", "h.json", "--only", "history"}).status, 1);
  std::filesystem::create_directory(folder_ / "plans");
  std::filesystem::permissions(folder_ / "plans", std::filesystem::perms::owner_all);
  write("plans/plan-0123456789abcdef0123456789abcdef.bin", "totoplan");
  environment_ = {{"TOTO_COMPILE_MOD", "eager"}, {"TOTO_PLAN_CACHE_DIR", path("plans")}};
  const std::vector<std::string> arguments = {
      "verify", "--model",  write_doctored_model(path("doctored")),
      "--data", "in.csv",   "--against",
      "h.json", "--golden", "nowhere",
      "--json"};
  const Result result = run(Invocation{arguments, "", environment_, ""});
  EXPECT_EQ(result.status, 3);
  const json report = json::parse(result.out);
  EXPECT_FALSE(report["partial"]);
  EXPECT_EQ(failed(report),
            (std::vector<std::string>{"environment: names", "environment: plan cache",
                                      "history: against: model", "history: against: drift of 'web'",
                                      "history: against: drift of 'api'", "golden: nowhere"}));
}

TEST_F(Verify, FilesOfTheSameColumns) {
  write("bars/one.csv", two_columns(96));
  write("bars/two.csv", two_columns(90));
  const Result result = verify({"--data", "bars", "--record", "h.json", "--only", "history"});
  ASSERT_EQ(result.status, 1) << result.err;
  std::vector<std::string> ids;
  const json history = json::parse(read_file(path("h.json")));
  for (const json& series : history["series"]) ids.push_back(series["id"]);
  EXPECT_EQ(ids, (std::vector<std::string>{"one/web", "one/api", "two/web", "two/api"}));
  write("more/one.csv", two_columns(96));
  expect_failure(verify({"--data", "bars", "more", "--only", "environment"}), 65, "duplicate_id");
}

TEST_F(Verify, LimitsOfTheCommandLineAreInForceAndTheOtherProcessFailsWithThem) {
  expect_failure(verify({"--memory-limit", "1", "--second-process"}), 2, "memory_limit");
  const Result result =
      verify({"--memory-limit", "1", "--only", "determinism: another process", "--json"});
  EXPECT_EQ(result.status, 3);
  const json report = json::parse(result.out);
  EXPECT_EQ(report["checks"][0]["verdict"], "could not run");
  EXPECT_THAT(report["checks"][0]["why"], testing::HasSubstr("the other process failed"));
  EXPECT_THAT(report["checks"][0]["why"], testing::HasSubstr("memory_limit"));
}

TEST_F(Verify, GoldenFoldersArePartOfEverySuite) {
  const Result result = verify({"--golden", tiny_model(), "--only", "golden", "--json"});
  const json checks = json::parse(result.out)["checks"];
  ASSERT_FALSE(checks.empty());
  EXPECT_EQ(checks[0]["group"], "golden");
  EXPECT_EQ(checks[0]["verdict"], "holds");
}

TEST_F(Verify, WhatIsInForceAndNotRunIsNoVerdict) {
  const Result result = verify({"--precision", "float64", "--only", "environment", "--json"});
  const json report = json::parse(result.out);
  EXPECT_THAT(failed(report), testing::Contains("environment: modes judged"));
}

TEST_F(Verify, ATypeInForceIsHeldToItsBounds) {
  struct Held {
    std::string type, mode;
    double bound;
    const char* why;
  };
  for (const Held& held : {Held{"tf32", "reduce-overhead", 1e-6, "absolute criterion"},
                           Held{"float32", "eager", 1e-6, "absolute criterion"},
                           Held{"bfloat16", "eager", 0.01, "documented bound of bfloat16"},
                           Held{"int8", "eager", 0.03, "documented bound of int8"}}) {
    const Result result = verify({"--precision", held.type, "--mode", held.mode, "--only",
                                  "accuracy: " + held.mode + " " + held.type, "--json"});
    const json checks = json::parse(result.out)["checks"];
    ASSERT_FALSE(checks.empty()) << result.out << result.err;
    const auto same = [&](const json& c) { return c["name"] == checks[0]["name"]; };
    EXPECT_EQ(std::count_if(checks.begin(), checks.end(), same), 1);
    EXPECT_EQ(checks[0]["bound"], held.bound);
    EXPECT_EQ(checks[0]["verdict"], "holds");
    EXPECT_THAT(std::string(checks[0]["why"]), testing::HasSubstr(held.why));
  }
}

TEST_F(Verify, NameThatNothingReadsAndDamagedPlan) {
  std::filesystem::create_directory(folder_ / "plans");
  std::filesystem::permissions(folder_ / "plans", std::filesystem::perms::owner_all);
  write("plans/plan-0123456789abcdef0123456789abcdef.bin", "totoplan");
  environment_ = {{"TOTO_COMPILE_MOD", "eager"}, {"TOTO_PLAN_CACHE_DIR", path("plans")}};
  const Result result = verify({"--only", "environment", "--json"});
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(failed(json::parse(result.out)),
            (std::vector<std::string>{"environment: names", "environment: plan cache"}));
}

TEST_F(Verify, Refusals) {
  expect_failure(verify({"--suite", "thorough"}), 2, "invalid_choice");
  expect_failure(verify({"--report", "r.pdf"}), 2, "unknown_suffix");
  expect_failure(verify({"--report", "nowhere/r.md"}), 74, "write_failed");
  expect_failure(verify({"--data", "nowhere.csv"}), 66, "file_not_found");
  std::filesystem::create_directory(folder_ / "empty");
  expect_failure(verify({"--data", "empty"}), 66, "no_input");
  EXPECT_EQ(listing(), std::vector<std::string>{"empty"});
}

TEST_F(Verify, InterruptLeavesNoReportAndTheOldRecord) {
  write("h.json", "of an earlier release");
  const pid_t process =
      start({{"verify", "--model", tiny_model(), "--suite", "soak", "--soak-seconds", "1000",
              "--report", "r.md", "--report", "r.html", "--record", "h.json", "--json"},
             "",
             {},
             ""});
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // so that it is at work by now
  ASSERT_EQ(kill(process, SIGINT), 0);
  const Result result = wait(process);
  EXPECT_EQ(result.status, 130);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(listing(), std::vector<std::string>{"h.json"});
  EXPECT_EQ(read_file(path("h.json")), "of an earlier release");
}

}  // namespace
}  // namespace toto::test
