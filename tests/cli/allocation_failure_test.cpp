// SPDX-License-Identifier: Apache-2.0
// The n-th allocation of a forecast fails. There are two ends: the same bytes, where whoever asked
// could do without, or one line that says so and status 70. Never a crash, another result, a file
// left behind.
#include <algorithm>
#include <cstdlib>

#include "support/program.h"

namespace toto::test {
namespace {

#ifndef TOTO_SANITIZED  // whose own malloc could not be replaced

constexpr long kParts = 4;
constexpr long kSites = 88;  // of each part

class AllocationFailure : public Program, public testing::WithParamInterface<long> {
 protected:
  Result forecast(const std::string& name, long failing) {
    return shell("FAIL_ALLOCATION=" + std::to_string(failing) + " FAIL_ALLOCATION_COUNT='" +
                 path("count") + "' LD_PRELOAD='" TOTO_FAILING_MALLOC "' " + program_path() +
                 " forecast in.csv --threads 2 --horizon 16 --samples 8 --plan-cache never "
                 "--model '" +
                 tiny_model() + "' --output " + name + " --plot p.svg");
  }
};

bool is_clean_failure(const Result& result) {
  const bool told = result.err.starts_with("toto: [out_of_memory] ") ||
                    // pthread_create does not say which of the two it lacked
                    result.err.starts_with("toto: [no_threads] ");
  return result.status == 70 && told && std::ranges::count(result.err, '\n') == 1;
}

TEST_P(AllocationFailure, EndsCleanly) {
  write("in.csv", two_columns());
  const Result whole = forecast("whole.csv", 0);
  ASSERT_EQ(whole.status, 0) << whole.err;
  const std::string expected = read_file(path("whole.csv"));
  const long count = std::atol(read_file(path("count")).c_str());
  ASSERT_GT(count, 1000);
  long refused = 0;
  for (long i = 0; i < kSites; ++i) {
    const long site = 1 + (kParts * i + GetParam()) * (count - 1) / (kParts * kSites);
    const Result result = forecast("y.csv", site);
    const bool same = result.status == 0 && result.out == whole.out && result.err == whole.err &&
                      read_file(path("y.csv")) == expected;
    refused += same ? 0 : 1;
    EXPECT_TRUE(same || is_clean_failure(result))
        << "allocation " << site << " of " << count << ": status " << result.status << "\n"
        << result.err;
    std::filesystem::remove(path("y.csv"));
    std::filesystem::remove(path("p.svg"));
    std::filesystem::remove(path("count"));
    EXPECT_EQ(listing(), (std::vector<std::string>{"in.csv", "whole.csv"})) << site;
  }
  EXPECT_GT(refused, kSites / 4);  // the failing allocation was there
}

INSTANTIATE_TEST_SUITE_P(Sites, AllocationFailure, testing::Range(0L, kParts));

#endif

}  // namespace
}  // namespace toto::test
