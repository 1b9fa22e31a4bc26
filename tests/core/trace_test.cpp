// SPDX-License-Identifier: Apache-2.0
// A trace: nothing while it is off, nested spans of several threads while it is on.
#include "core/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "core/stopwatch.h"

namespace toto {
namespace {

using nlohmann::json;

TEST(Trace, SpansAreNestedAndOfTheirThread) {
  { const Span before("before"); }
  const Trace trace;
  {
    const Span outer("outer");
    { const Span inner("inner"); }
    double seconds = 0;
    { const Stopwatch watch(seconds, "timed"); }
    { const Stopwatch watch(seconds); }  // without a name it is no span
    EXPECT_GT(seconds, 0);
    std::thread([] { const Span other("other"); }).join();
  }
  const json events = json::parse(trace.chrome_json()).at("traceEvents");
  ASSERT_EQ(events.size(), 4U);
  const char* const names[] = {"outer", "inner", "timed", "other"};
  const json& outer = events[0];
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(events[i].at("name"), names[i]);
    EXPECT_EQ(events[i].at("ph"), "X");
    EXPECT_EQ(events[i].at("tid"), i == 3 ? 2 : 1);
    const double begin = events[i].at("ts");
    EXPECT_GE(begin, outer.at("ts").get<double>());
    EXPECT_LE(begin + events[i].at("dur").get<double>(),
              outer.at("ts").get<double>() + outer.at("dur").get<double>() + 1e-3);
  }
}

TEST(Trace, IsOffWhereNoneLives) {
  EXPECT_EQ(Trace::active(), nullptr);
  { const Trace trace; }
  EXPECT_EQ(Trace::active(), nullptr);
  const Span span("nowhere");
}

}  // namespace
}  // namespace toto
