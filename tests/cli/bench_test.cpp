// SPDX-License-Identifier: Apache-2.0
// What a row of toto bench says it is, and whose memory it shows.
#include <nlohmann/json.hpp>

#include "support/program.h"

namespace toto::test {
namespace {

using nlohmann::json;

class BenchCommand : public Program {
 protected:
  json rows(std::vector<std::string> more,
            std::vector<std::pair<std::string, std::string>> environment = {}) {
    std::vector<std::string> arguments = {"bench", "--model",   tiny_model(), "--runs",
                                          "2",     "--seconds", "0",          "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Result result = run(Invocation{std::move(arguments), {}, std::move(environment), {}});
    EXPECT_EQ(result.status, 0) << result.err;
    return json::parse(result.out)["rows"];
  }
};

// A large row leaves nothing in the peak of a small one after it.
TEST_F(BenchCommand, RowsNameTheModeInForceAndHaveTheMemoryOfTheirOwnProcess) {
  const json all = rows({"256x1x2048x8x16", "1x1x16x8"}, {{"TOTO_COMPILE_MODE", "default"}});
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
  const json all = rows({"1x1x16x8", "--mode", "default"}, {{"TOTO_DISABLE_COMPILE", "1"}});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].at("subject"), "eager float32");
}

}  // namespace
}  // namespace toto::test
