// SPDX-License-Identifier: Apache-2.0
// --counters, --warmup, --strict-counters and --deterministic-checks of toto forecast.
#include <map>
#include <nlohmann/json.hpp>

#include "support/program.h"

namespace toto::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class CountersFlag : public Program {
 protected:
  Result forecast(std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "forecast", write("in.csv", two_columns()), "--model", tiny_model(), "--horizon", "4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
};

TEST_F(CountersFlag, AddsAMemberToJsonAndALine) {
  const Result plain = forecast({"--json"});
  const Result counted = forecast({"--json", "--counters"});
  ASSERT_EQ(counted.status, 0) << counted.err;
  EXPECT_THAT(counted.err, HasSubstr("toto: 1 forecast of 2 series"));
  json result = json::parse(counted.out);
  EXPECT_EQ(result["counters"]["plan_builds"], 1);
  EXPECT_EQ(result["counters"]["host_reads"], 0);
  EXPECT_EQ(result["counters"]["graph_fallbacks"], 0);
  EXPECT_GT(result["counters"]["operations"], 0);
  EXPECT_THAT(forecast({"--json", "--counters", "-q"}).err, HasSubstr("toto: 1 forecast of 2"));
  result.erase("counters");
  EXPECT_EQ(result, json::parse(plain.out));
  EXPECT_EQ(plain.out, forecast({"--json"}).out);  // without them the bytes stay the same
}

TEST_F(CountersFlag, WarmUpBuildsThePlanFirst) {
  const Result plain = forecast({"--output", "-"});
  const Result warm = forecast({"--output", "-", "--warmup", "64x4x1x2", "--counters"});
  ASSERT_EQ(warm.status, 0) << warm.err;
  EXPECT_EQ(warm.out, plain.out);
  EXPECT_THAT(warm.err, HasSubstr("2 forecasts of 4 series"));
  EXPECT_THAT(warm.err, HasSubstr("plans: 1 built"));
  const Result known = forecast({"--output", "-", "--warmup", "known", "--counters"});
  EXPECT_EQ(known.out, plain.out);
  EXPECT_THAT(known.err, HasSubstr("1 built"));
  expect_failure(forecast({"--warmup", "64"}), 2, "invalid_warmup");
}

TEST_F(CountersFlag, StrictCountersTellWhatWarmUpMissed) {
  const Result warm =
      forecast({"--output", "-", "--plan-cache", "never", "--strict-counters", "--warmup", "8x4"});
  ASSERT_EQ(warm.status, 0) << warm.err;
  EXPECT_THAT(warm.err, HasSubstr("warning: after warm-up: 1 plans built"));
  // The preset brings them.
  const Result preset = forecast(
      {"--output", "-", "--plan-cache", "never", "--preset", "production", "--warmup", "8x4"});
  EXPECT_THAT(preset.err, HasSubstr("warning: after warm-up: 1 plans built"));
  const Result ready =
      forecast({"--output", "-", "--preset", "production", "--warmup", "64x4x1x2"});
  EXPECT_EQ(ready.err, "");
}

TEST_F(CountersFlag, SecondsAreCountedWhereTheyGo) {
  const auto seconds = [&](const std::string& mode) {
    const Result result =
        forecast({"--json", "--counters", "--mode", mode, "--plan-cache", "never"});
    EXPECT_EQ(result.status, 0) << result.err;
    return json::parse(result.out)["counters"];
  };
  const json tuned = seconds("max-autotune");
  const json plain = seconds("default");
  EXPECT_GT(tuned["autotune_runs"], 0);
  EXPECT_GT(tuned["autotune_seconds"], 0);
  EXPECT_EQ(plain["autotune_seconds"], 0);
  for (const json& counters : {tuned, plain}) {
    EXPECT_GT(counters["plan_seconds"], 0);
    EXPECT_GT(counters["load_seconds"], 0);
    EXPECT_EQ(counters["capture_seconds"], 0);  // on a CPU
    EXPECT_FALSE(counters.contains("graph_splits"));
    EXPECT_FALSE(counters.contains("build_seconds"));
  }
}

TEST_F(CountersFlag, TheResultSaysHowItWasComputed) {
  const json result = json::parse(forecast({"--json", "--mode", "eager"}).out);
  EXPECT_EQ(result["mode"], "eager");
  EXPECT_EQ(result["type"], "float32");
  EXPECT_EQ(result["device"], "cpu");
  EXPECT_NE(result["isa"], "");
  EXPECT_EQ(result["version"], TOTO_VERSION);
  EXPECT_EQ(result["weights"].get<std::string>().size(), 64U);
  EXPECT_FALSE(result.contains("kv_cache"));  // that of the mode
  const json apart = json::parse(forecast({"--json", "--kv-cache", "private"}).out);
  EXPECT_EQ(apart["kv_cache"], "private");
  const Result logged = forecast({"--output", "-", "--log", "device"});
  EXPECT_THAT(logged.err, HasSubstr("toto: model loaded: "));
  EXPECT_THAT(logged.err, HasSubstr("reduce-overhead, float32 on cpu ("));
}

TEST_F(CountersFlag, ATraceSaysWhereTheTimeGoes) {
  const Result plain = forecast({"--output", "-"});
  const Result traced = run({"forecast", path("in.csv"), "--model", tiny_model(), "--horizon", "40",
                             "--output", "-", "--trace", path("t.json")});
  ASSERT_EQ(traced.status, 0) << traced.err;
  const json trace = json::parse(read_file(path("t.json")));
  std::map<std::string, json> spans;
  for (const json& event : trace["traceEvents"]) spans.emplace(event["name"], event);
  for (const char* stage : {"read", "load", "plan", "forecast", "prepare", "prefill", "decode",
                            "statistics", "write", "linear", "time_attention"}) {
    EXPECT_TRUE(spans.contains(stage)) << stage;
  }
  EXPECT_GE(spans["prefill"]["ts"].get<double>(), spans["forecast"]["ts"].get<double>());
  EXPECT_EQ(forecast({"--output", "-", "--trace", path("t.json")}).out, plain.out);
  expect_failure(forecast({"--json", "--trace", "-"}), 2, "conflicting_flags");
  expect_failure(forecast({"--trace", path("nowhere/t.json")}), 74, "write_failed");
}

TEST_F(CountersFlag, DeterministicChecksChangeNothing) {
  const Result plain = forecast({"--output", "-"});
  const Result checked = forecast({"--output", "-", "--deterministic-checks"});
  ASSERT_EQ(checked.status, 0) << checked.err;
  EXPECT_EQ(checked.out, plain.out);
}

// Twice the work, which only happens where they are on.
TEST_F(CountersFlag, TheValidationPresetComputesTwice) {
  const auto operations = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--json", "--counters", "--mode", "eager"});
    return json::parse(forecast(std::move(more)).out)["counters"]["operations"].get<double>();
  };
  const double once = operations({});
  EXPECT_EQ(operations({"--deterministic-checks"}), 2 * once);
  EXPECT_EQ(operations({"--preset", "validation"}), 2 * once);
  EXPECT_EQ(operations({"--preset", "validation", "--no-deterministic-checks"}), once);
}

}  // namespace
}  // namespace toto::test
