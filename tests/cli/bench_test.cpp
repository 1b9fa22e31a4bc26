// SPDX-License-Identifier: Apache-2.0
// What a row of toto bench says it is, and whose memory it shows.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "support/program.h"

namespace toto::test {
namespace {

using nlohmann::json;

class BenchCommand : public Program {
 protected:
  std::string bench(std::vector<std::string> more,
                    std::vector<std::pair<std::string, std::string>> environment = {}) {
    std::vector<std::string> arguments = {"bench", "--model",   tiny_model(), "--runs",
                                          "2",     "--seconds", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Result result = run(Invocation{std::move(arguments), {}, std::move(environment), {}});
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  }
  json report(std::vector<std::string> more,
              std::vector<std::pair<std::string, std::string>> environment = {}) {
    more.emplace_back("--json");
    return json::parse(bench(std::move(more), std::move(environment)));
  }
};

// A large row leaves nothing in the peak of a small one after it.
TEST_F(BenchCommand, RowsNameTheModeInForceAndHaveTheMemoryOfTheirOwnProcess) {
  const json all =
      report({"256x1x2048x8x16", "1x1x16x8"}, {{"TOTO_COMPILE_MODE", "default"}}).at("rows");
  ASSERT_EQ(all.size(), 2U);
  for (const json& row : all) {
    EXPECT_EQ(row.at("subject"), "default float32");
    EXPECT_TRUE(row.at("peak_device_mib").is_null());  // on a CPU
  }
  const double large = all[0].at("peak_rss_mib"), small = all[1].at("peak_rss_mib");
  EXPECT_GT(small, 1);
  EXPECT_LT(small + 8, large);
}

TEST_F(BenchCommand, ARollbackOutranksTheFlag) {
  const json all =
      report({"1x1x16x8", "--mode", "default", "--no-ceilings"}, {{"TOTO_DISABLE_COMPILE", "1"}})
          .at("rows");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].at("subject"), "eager float32");
}

TEST_F(BenchCommand, SharesAreKnownWhereCeilingsAreMeasured) {
  for (const bool ceilings : {true, false}) {
    const json all = report({"1x1x16x8", ceilings ? "--ceilings" : "--no-ceilings"});
    const json& machine = all.at("machine");
    const json& row = all.at("rows").at(0);
    EXPECT_GT(machine.at("threads"), 0);
    EXPECT_NE(machine.at("processor"), "");
    EXPECT_GT(row.at("median_ms"), 0);
    for (const char* rate : {"float32_gflops", "bfloat16_gflops", "read_gb_per_second",
                             "usual_read_gb_per_second", "jitter"}) {
      EXPECT_EQ(machine.at(rate) > 0, ceilings) << rate;
    }
    EXPECT_EQ(row.at("percent_of_compute") > 0, ceilings);
    EXPECT_EQ(row.at("percent_of_memory") > 0, ceilings);
  }
  const std::string text = bench({"1x1x16x8", "--no-ceilings"});
  EXPECT_NE(text.find(" threads; what they can do at best was not measured\n"), std::string::npos)
      << text;
  EXPECT_EQ(std::ranges::count(text, '%'), 3) << text;  // of two columns, and the spread
}

}  // namespace
}  // namespace toto::test
