// SPDX-License-Identifier: Apache-2.0
// The golden cases of the official implementation, on the reference backend and the fast one.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
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

TEST_P(Golden, RoundedMore) {
  const std::vector<std::string> folders = {test::golden(GetParam())};
  for (const Precision precision : {Precision::bfloat16, Precision::int8}) {
    LoadOptions options;
    options.precision = precision;
    expect_holds(verify_golden(folders, options));
  }
}

TEST_P(Golden, Float64) {
  const std::vector<std::string> folders = {test::golden(GetParam())};
  LoadOptions options;
  options.backend = "reference";
  options.precision = Precision::float64;
  expect_holds(verify_golden(folders, options));
}

TEST(GoldenBounds, AreThoseOfTheType) {
  const std::vector<std::string> folders = {test::golden("toto2-tiny-uni")};
  const auto bound = [&](Precision precision) {
    LoadOptions options;
    options.backend = "cpu";
    options.precision = precision;
    return verify_golden(folders, options).cases.front().checks.front().bound;
  };
  const double plain = bound(Precision::float32);
  EXPECT_LE(plain, 3e-5);
  EXPECT_EQ(bound(Precision::tf32), plain);  // a CPU computes it in float32
  EXPECT_EQ(bound(Precision::bfloat16), 3e4 * plain);
  EXPECT_EQ(bound(Precision::int8), 3e4 * plain);
}

// The float64 oracle is the official model, where that is not rounded to float32 on the way.
TEST(GoldenFloat64, IsTheOfficialModelOfToto2) {
  LoadOptions options;
  options.backend = "reference";
  options.precision = Precision::float64;
  const std::vector<std::pair<std::string, int>> cases = {
      {"toto2-tiny-uni", 12},     {"toto2-tiny-multi", 7},    {"toto2-tiny-cov", 5},
      {"toto2-tiny-onepatch", 5}, {"toto2-tiny-switches", 2}, {"toto2-tiny-long", 4}};
  for (const auto& [name, calls] : cases) {
    const std::vector<std::string> folders = {test::golden(name)};
    std::map<std::string, int> found;  // by execution
    double largest = 0;
    const GoldenReport report = verify_golden(folders, options);
    for (const TensorCheck& check : report.cases.front().checks) {
      if (!check.tensor.ends_with(".quantiles64.exact")) continue;
      ++found[check.execution];
      largest = std::max(largest, check.error);
      EXPECT_LE(check.bound, 1e-9) << name << " " << check.tensor;
    }
    EXPECT_EQ(found, (std::map<std::string, int>{{"eager", calls}, {"planned", calls}})) << name;
    EXPECT_LE(largest, 1e-9) << name;
    EXPECT_GT(largest, 0) << name;
  }
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
