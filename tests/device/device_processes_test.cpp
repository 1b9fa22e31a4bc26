// SPDX-License-Identifier: Apache-2.0
// Several processes on one device. Skipped where there is none.
#include "support/program.h"
#include "toto/model.hpp"

namespace toto::test {
namespace {

class CudaProcesses : public Program {};

TEST_F(CudaProcesses, TwoAtOnceGiveTheBitsOfOne) {
  if (const std::string why = cuda_unavailable(); !why.empty()) GTEST_SKIP() << why;
  write("in.csv", two_columns(300));
  const auto forecast = [&](const std::string& out) {
    return Invocation{{"forecast", "in.csv", "--model", tiny_model(), "--device", "cuda",
                       "--horizon", "40", "--samples", "256", "--output", "-"},
                      "",
                      {},
                      path(out)};
  };
  const Result one = run(forecast("one"));
  ASSERT_EQ(one.status, 0) << one.err;
  const std::string alone = read_file(path("one"));
  ASSERT_NE(alone, "");
  for (int i = 0; i < 3; ++i) {
    const pid_t first = start(forecast("first"));
    const pid_t second = start(forecast("second"));
    EXPECT_EQ(wait(first).status, 0);
    EXPECT_EQ(wait(second).status, 0);
    EXPECT_EQ(read_file(path("first")), alone);
    EXPECT_EQ(read_file(path("second")), alone);
  }
}

}  // namespace
}  // namespace toto::test
