// SPDX-License-Identifier: Apache-2.0
// Spans reach a profiler as NVTX loads one, and the others where there is none (no GPU is needed).
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "backend/cuda/runtime/profiler_ranges.h"
#include "core/trace.h"
#include "support/requests.h"
#include "support/test_files.h"

namespace toto {
namespace {

TEST(Nvtx, RangesHaveTheNamesOfTheTrace) {
#ifndef TOTO_NVTX_TOOL
  EXPECT_FALSE(cuda::send_spans_to_profiler());
  EXPECT_EQ(SpanRanges::active(), nullptr);
  GTEST_SKIP() << "this build has no NVTX";
#else
  const test::TempFolder folder;
  const std::string log = folder.path("ranges.txt");
  const test::ScopedEnvironment tool("NVTX_INJECTION64_PATH", TOTO_NVTX_TOOL);
  const test::ScopedEnvironment to("TOTO_NVTX_LOG", log);
  ASSERT_TRUE(cuda::send_spans_to_profiler());
  std::map<std::string, int> traced, ranges;
  {
    Forecaster forecaster(test::make_model(test::odd_config()));
    const Trace trace;
    (void)forecaster.forecast(test::views(test::many(3)), test::six_samples());
    SpanRanges::set(nullptr);
    const auto all = nlohmann::json::parse(trace.chrome_json());
    for (const auto& event : all.at("traceEvents")) {
      ++traced[event.at("name").get<std::string>()];
    }
  }
  std::ifstream lines(log);
  std::string what, domain, name;
  int open = 0;
  while (lines >> what >> domain) {
    EXPECT_EQ(domain, "toto");
    open += what == "push" ? 1 : -1;
    EXPECT_GE(open, 0);
    if (what == "push" && lines >> name) ++ranges[name];
  }
  EXPECT_EQ(open, 0);
  EXPECT_EQ(ranges, traced);
  EXPECT_GT(ranges["linear"], 0);
  EXPECT_GT(ranges["decode"], 0);
#endif
}

}  // namespace
}  // namespace toto
