// SPDX-License-Identifier: Apache-2.0
// The golden cases of the official implementation, on the reference backend and the fast one.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/test_files.h"
#include "toto/tools/verify.hpp"

namespace toto {
namespace {

class Golden : public testing::TestWithParam<std::string> {};

void expect_holds(const GoldenReport& report) {
  for (const GoldenCase& c : report.cases) {
    EXPECT_FALSE(c.checks.empty());
    for (const TensorCheck& check : c.checks) {
      EXPECT_TRUE(check.holds()) << c.folder << " " << check.execution << " " << check.tensor
                                 << ": error " << check.error << " at " << check.place << ", bound "
                                 << check.bound << ", expected " << check.expected << ", found "
                                 << check.found;
    }
  }
  EXPECT_TRUE(report.holds());
}

TEST_P(Golden, Float32) {
  const std::vector<std::string> folders = {test::golden(GetParam())};
  LoadOptions options;
  options.backend = "reference";
  expect_holds(verify_golden(folders, options));
}

TEST_P(Golden, Cpu) {
  const std::vector<std::string> folders = {test::golden(GetParam())};
  expect_holds(verify_golden(folders, {}));
}

TEST_P(Golden, Float64) {
  const std::vector<std::string> folders = {test::golden(GetParam())};
  LoadOptions options;
  options.backend = "reference";
  options.precision = Precision::float64;
  expect_holds(verify_golden(folders, options));
}

INSTANTIATE_TEST_SUITE_P(Tiny, Golden,
                         testing::Values("toto1-tiny-a", "toto1-tiny-b", "toto1-tiny-c",
                                         "toto1-tiny-exogenous", "toto1-tiny-extreme",
                                         "toto1-tiny-scaler-global", "toto1-tiny-scaler-step"),
                         [](const auto& test) {
                           std::string name = test.param.substr(11);
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

// Two series that start at different patches, in one batch: larger, and so on the fast backend
// only.
TEST(GoldenFullSize, Toto2OnTheCpu) {
  const std::vector<std::string> folders = {test::golden("toto2-22m-512")};
  expect_holds(verify_golden(folders, {}));
}

INSTANTIATE_TEST_SUITE_P(Toto2, Golden,
                         testing::Values("toto2-tiny-uni", "toto2-tiny-multi", "toto2-tiny-cov",
                                         "toto2-tiny-degenerate", "toto2-tiny-onepatch",
                                         "toto2-tiny-overflow", "toto2-tiny-inf",
                                         "toto2-tiny-switches", "toto2-tiny-long",
                                         "toto2-4m-512x5"),
                         [](const auto& test) {
                           std::string name = test.param.substr(7);
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace toto
