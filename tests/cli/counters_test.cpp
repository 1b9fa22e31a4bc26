// SPDX-License-Identifier: Apache-2.0
// --counters, --warmup, --strict-counters and --deterministic-checks of toto forecast.
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
  const Result ready =
      forecast({"--output", "-", "--preset", "production", "--warmup", "64x4x1x2"});
  EXPECT_EQ(ready.err, "");
}

TEST_F(CountersFlag, DeterministicChecksChangeNothing) {
  const Result plain = forecast({"--output", "-"});
  const Result checked = forecast({"--output", "-", "--deterministic-checks"});
  ASSERT_EQ(checked.status, 0) << checked.err;
  EXPECT_EQ(checked.out, plain.out);
}

}  // namespace
}  // namespace toto::test
