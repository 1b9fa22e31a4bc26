// SPDX-License-Identifier: Apache-2.0
// A checkpoint of Toto 2.0 as `hf download` leaves it, through every command that takes a model.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "support/paths.h"
#include "support/program.h"

namespace toto::test {
namespace {

using nlohmann::json;

constexpr const char* kId = "Datadog/Toto-2.0-22m";

class HubCache : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    const std::string model = "hub/models--Datadog--Toto-2.0-22m/";
    const std::string snapshot = path(model + "snapshots/0123abcd");
    std::filesystem::create_directories(snapshot);
    std::filesystem::create_directories(path(model + "refs"));
    write(model + "refs/main", "0123abcd");
    for (const char* file : {"/config.json", "/model.safetensors"}) {
      std::filesystem::copy_file(data_path("golden/toto2-tiny-uni") + file, snapshot + file);
    }
    write("in.csv", two_columns(80));
  }
  Result with_model(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--model", kId});
    return run(Invocation{std::move(arguments), {}, {{"HF_HUB_CACHE", path("hub")}}, {}});
  }
};

TEST_F(HubCache, Forecast) {
  const Result result = with_model({"forecast", "in.csv", "--horizon", "12", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const json out = json::parse(result.out);
  EXPECT_EQ(out["model"], kId);
  EXPECT_EQ(out["family"], "toto-2.0");
  EXPECT_EQ(out["series"][0]["exact_steps"], 12);
}

TEST_F(HubCache, Backtest) {
  std::string bars = "Date,Open,High,Low,Close,Volume\n";
  for (int t = 0; t < 60; ++t) {
    char line[80];
    const int close = 50 + t * 7 % 11;
    std::snprintf(line, sizeof line, "2024-%02d-%02d,%d,%d,%d,%d,1000\n", 1 + t / 28, 1 + t % 28,
                  close, close + 1, close - 1, close);
    bars += line;
  }
  write("AA.csv", bars);
  const Result result = with_model(
      {"backtest", "AA.csv", "--horizon", "4", "--context", "32", "--samples", "16", "--out", "b"});
  ASSERT_EQ(result.status, 0) << result.err;
  const json model = json::parse(read_file(path("b/summary.json")))["model"];
  EXPECT_EQ(model["name"], kId);
  EXPECT_EQ(model["family"], "toto-2.0");
}

TEST_F(HubCache, Verify) {
  const Result result = with_model({"verify", "--only", "correctness", "--json"});
  ASSERT_EQ(result.status, 1) << result.err;  // a part of a suite is no verdict
  const json out = json::parse(result.out);
  EXPECT_EQ(out["model"], kId);
  EXPECT_GT(out["checks"].size(), 30U);
  for (const json& check : out["checks"]) EXPECT_EQ(check["verdict"], "holds") << check.dump();
  EXPECT_TRUE(std::ranges::any_of(out["environment"], [](const json& line) {
    return line["name"] == "family" && line["value"] == "toto-2.0";
  }));
}

TEST_F(HubCache, Bench) {
  const Result result =
      with_model({"bench", "1x1x64x16", "--runs", "1", "--mode", "default", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const json out = json::parse(result.out);
  EXPECT_EQ(out["model"], kId);
  EXPECT_EQ(out["family"], "toto-2.0");
  EXPECT_EQ(out["rows"].size(), 1U);
}

// Memory is measured in another process, which must find the model too.
TEST_F(HubCache, BenchOfACacheThatAFlagNames) {
  const Result result = run({"bench", "1x1x64x16", "--runs", "1", "--mode", "default", "--json",
                             "--model", kId, "--hub-cache", path("hub")});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(json::parse(result.out)["model"], kId);
}

}  // namespace
}  // namespace toto::test
