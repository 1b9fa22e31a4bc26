// SPDX-License-Identifier: Apache-2.0
// Log events say what they are about by their type, not by the words of their message.
#include <gmock/gmock.h>

#include <algorithm>

#include "support/log_lines.h"
#include "support/requests.h"
#include "support/test_files.h"

namespace toto {
namespace {

using test::events_into;
using test::KeptEvent;

const KeptEvent* find(const std::vector<KeptEvent>& events, std::string_view code) {
  const auto at = std::find_if(events.begin(), events.end(),
                               [code](const KeptEvent& event) { return event.code == code; });
  return at == events.end() ? nullptr : &*at;
}

void expect(const std::vector<KeptEvent>& events, std::string_view code, Topic topic,
            Severity severity) {
  const KeptEvent* const event = find(events, code);
  ASSERT_NE(event, nullptr) << code;
  EXPECT_EQ(event->topic, topic) << code;
  EXPECT_EQ(event->severity, severity) << code;
  EXPECT_FALSE(event->message.empty()) << code;
  EXPECT_EQ(event->message.find('\n'), std::string::npos) << code;
}

std::vector<KeptEvent> run(ForecasterOptions options, std::size_t steps, Mode mode) {
  std::vector<KeptEvent> events;
  options.log = events_into(events);
  LoadOptions how;
  how.mode = mode;
  Forecaster forecaster(test::make_model(test::spec_config(), false, {}, 1, how), options);
  const std::vector<test::OwnedSeries> owned = {test::wave(1, 64), test::wave(2, steps)};
  ForecastOptions o;
  o.horizon = 8;
  const WarmupShape shape{64, 8, 1, 2};
  forecaster.warm_up({&shape, 1}, o);
  (void)forecaster.forecast(test::views(owned), o);
  return events;
}

TEST(Log, EveryEventSaysItsTopic) {
  const test::TempFolder folder;
  ForecasterOptions options;
  options.plan_cache_dir = folder.path();
  options.max_plans = 1;
  options.strict_counters = true;
  const auto events = run(options, 4096, Mode::max_autotune);
  expect(events, "plan_built", Topic::plans, Severity::info);
  expect(events, "plan_evicted", Topic::plans, Severity::info);
  expect(events, "kernel_chosen", Topic::plans, Severity::info);
  expect(events, "not_steady", Topic::plans, Severity::warning);
  EXPECT_EQ(find(events, "plan_cache_loaded"), nullptr);
  expect(run(options, 64, Mode::planned), "plan_cache_loaded", Topic::cache, Severity::info);
}

TEST(Log, WarningsAreOfTheirTopicToo) {
  const test::TempFolder folder;
  ForecasterOptions options;
  options.plan_cache_dir = folder.write("a file", "");
  expect(run(options, 64, Mode::planned), "plan_cache_unusable", Topic::cache, Severity::warning);
}

TEST(Log, MemoryThatDoesNotSufficeIsOfMemory) {
  ForecasterOptions options;
  const Model model = test::make_model(test::spec_config());
  const auto working_bytes = [&](std::size_t series) {
    Forecaster forecaster(model);
    std::vector<test::OwnedSeries> owned;
    for (std::size_t i = 0; i < series; ++i) owned.push_back(test::wave(i, 512));
    (void)forecaster.forecast(test::views(owned), {});
    return forecaster.counters().working_bytes;
  };
  options.memory_limit = working_bytes(2);
  std::vector<KeptEvent> events;
  options.log = events_into(events);
  Forecaster forecaster(model, options);
  std::vector<test::OwnedSeries> owned;
  for (std::size_t i = 0; i < 64; ++i) owned.push_back(test::wave(i, 512));
  (void)forecaster.forecast(test::views(owned), {});
  ASSERT_GT(forecaster.counters().splits, 0U);
  expect(events, "batch_split", Topic::memory, Severity::info);
}

TEST(Log, EveryTopicAndSeverityHasAWord) {
  for (const Topic topic :
       {Topic::plans, Topic::graphs, Topic::cache, Topic::memory, Topic::device, Topic::settings}) {
    EXPECT_FALSE(word(topic).empty());
    LogCategories all;
    EXPECT_FALSE(all.has(topic));
  }
  LogCategories graphs;
  graphs.graphs = true;
  EXPECT_TRUE(graphs.has(Topic::graphs));
  EXPECT_FALSE(graphs.has(Topic::plans));
  EXPECT_EQ(word(Severity::warning), "warning");
  EXPECT_EQ(word(Severity::info), "info");
}

TEST(Log, EveryAllocationOfWorkingMemoryIsTold) {
  std::vector<KeptEvent> events;
  ForecasterOptions options;
  options.log = events_into(events);
  Forecaster forecaster(test::make_model(test::spec_config()), options);
  const auto grown = [&] {
    return static_cast<std::uint64_t>(
        std::ranges::count(events, std::string("memory_grown"), &KeptEvent::code));
  };
  for (const std::size_t steps : {64, 64, 1024, 512, 4096, 64}) {
    const std::vector<test::OwnedSeries> owned = {test::wave(1, steps)};
    (void)forecaster.forecast(test::views(owned), {});
    EXPECT_EQ(grown(), forecaster.counters().allocations) << steps;
  }
  EXPECT_GT(grown(), 2U);
  expect(events, "memory_grown", Topic::memory, Severity::info);
}

}  // namespace
}  // namespace toto
