// SPDX-License-Identifier: Apache-2.0
// A program that embeds the library as README shows obeys the environment, unless it says not to.
#include <gmock/gmock.h>

#include "engine/plan_files.h"
#include "support/log_lines.h"
#include "support/requests.h"
#include "support/test_files.h"
#include "toto/service.hpp"

namespace toto {
namespace {

using test::error_of;
using test::ScopedEnvironment;
using testing::HasSubstr;

const std::string kTiny = test::data_path("golden/toto1-tiny-a");

Model load(const LoadOptions& options = {}) { return Model::load({.model = kTiny}, options); }

std::vector<float> samples(const ForecasterOptions& options,
                           std::optional<std::uint64_t> seed = {}) {
  Forecaster forecaster(load(), options);
  const std::vector<test::OwnedSeries> owned = {test::wave(1, 64)};
  ForecastOptions o = test::six_samples();
  o.seed = seed;
  return forecaster.forecast(test::views(owned), o).front().samples;
}

TEST(Embedding, TheRollbackOutranksTheProgram) {
  LoadOptions tuned;
  tuned.mode = Mode::max_autotune;
  EXPECT_EQ(load().loaded().mode, Mode::reduce_overhead);
  EXPECT_EQ(load(tuned).loaded().mode, Mode::max_autotune);
  const ScopedEnvironment off("TOTO_DISABLE_COMPILE", "1");
  EXPECT_EQ(load().loaded().mode, Mode::eager);
  EXPECT_EQ(load(tuned).loaded().mode, Mode::eager);
  tuned.environment = Environment::ignored;
  EXPECT_EQ(load(tuned).loaded().mode, Mode::max_autotune);
}

TEST(Embedding, TheModeIsThatOfTheVariableWhereTheProgramNamesNone) {
  LoadOptions named;
  named.mode = Mode::planned;
  {
    const ScopedEnvironment mode("TOTO_COMPILE_MODE", "eager");
    EXPECT_EQ(load().loaded().mode, Mode::eager);
    EXPECT_EQ(load(named).loaded().mode, Mode::planned);
  }
  const ScopedEnvironment compile("TOTO_COMPILE", "no");
  EXPECT_EQ(load().loaded().mode, Mode::eager);
}

TEST(Embedding, NonsenseNamesItsVariable) {
  const auto refused = [](const char* name, const auto& run) {
    const ScopedEnvironment variable(name, "nonsense");
    const Error error = error_of(run);
    EXPECT_EQ(error.status(), ExitStatus::bad_config) << name;
    EXPECT_EQ(error.where(), name);
  };
  for (const char* name : {"TOTO_COMPILE_MODE", "TOTO_COMPILE", "TOTO_DISABLE_COMPILE",
                           "TOTO_COMPILE_BACKEND", "TOTO_NUM_THREADS", "TOTO_LOG"}) {
    refused(name, [] { (void)load(); });
    const ScopedEnvironment variable(name, "nonsense");
    LoadOptions closed;
    closed.environment = Environment::ignored;
    EXPECT_NO_THROW((void)load(closed)) << name;
  }
  const Model model = load();
  for (const char* name : {"TOTO_MAX_PLANS", "TOTO_SEED", "TOTO_LOG"}) {
    refused(name, [&] { const Forecaster forecaster(model); });
    const ScopedEnvironment variable(name, "nonsense");
    EXPECT_NO_THROW(Forecaster(model, {.environment = Environment::ignored})) << name;
  }
}

// What the program says is what counts, so that nonsense beside it does no harm.
TEST(Embedding, AValueThatIsOutrankedIsNotLookedAt) {
  const ScopedEnvironment threads("TOTO_NUM_THREADS", "0");
  const ScopedEnvironment device("TOTO_COMPILE_BACKEND", "tpu");
  LoadOptions options;
  options.threads = 2;
  options.device = Device::cpu;
  EXPECT_EQ(load(options).loaded().device, "cpu");
  options.threads = 0;
  EXPECT_EQ(error_of([&] { (void)load(options); }).where(), "TOTO_NUM_THREADS");
  options.backend = "reference";  // has no threads
  options.device = {};
  EXPECT_NO_THROW((void)load(options));
}

TEST(Embedding, TheSeedOfTheVariable) {
  const std::vector<float> zero = samples({}), seven = samples({}, 7);
  EXPECT_NE(zero, seven);
  EXPECT_EQ(samples({.seed = 7}), seven);
  const ScopedEnvironment seed("TOTO_SEED", "7");
  EXPECT_EQ(samples({}), seven);
  EXPECT_EQ(samples({}, 0), zero);
  EXPECT_EQ(samples({.seed = 0}), zero);
  EXPECT_EQ(samples({.environment = Environment::ignored}), zero);
}

// Also where one micro-batch holds requests that name a seed and requests that do not.
TEST(Embedding, TheSeedOfAService) {
  const ScopedEnvironment seed("TOTO_SEED", "7");
  Service service(load());
  const std::vector<test::OwnedSeries> owned = {test::wave(1, 64)};
  Request request;
  request.series = test::views(owned).front();
  request.options = test::six_samples();
  std::vector<Future> futures;
  for (int i = 0; i < 8; ++i) {
    request.options.seed.reset();
    if (i % 2 == 1) request.options.seed = 0;
    futures.push_back(service.submit(request));
  }
  for (std::size_t i = 0; i < futures.size(); ++i) {
    EXPECT_EQ(futures[i].get().samples, samples({}, i % 2 == 1 ? 0 : 7)) << i;
  }
}

TEST(Embedding, ThePlanCacheOfTheVariable) {
  const test::TempFolder folder;
  (void)samples({});
  EXPECT_EQ(folder.files(), 0U);
  const ScopedEnvironment plans("TOTO_PLAN_CACHE_DIR", folder.path("plans").c_str());
  (void)samples({.environment = Environment::ignored});
  (void)samples({.plan_cache = CachePolicy::never});
  EXPECT_EQ(folder.files(), 0U);
  (void)samples({});
  EXPECT_EQ(list_plan_files(folder.path("plans")).size(), 1U);
}

TEST(Embedding, TheNumberOfPlansOfTheVariable) {
  const ScopedEnvironment plans("TOTO_MAX_PLANS", "1");
  const Model model = load();
  const auto evictions = [&](const ForecasterOptions& options) {
    Forecaster forecaster(model, options);
    for (const std::size_t steps : {std::size_t{64}, std::size_t{4096}}) {
      const std::vector<test::OwnedSeries> owned = {test::wave(1, steps)};
      (void)forecaster.forecast(test::views(owned), test::six_samples());
    }
    return forecaster.counters().plan_evictions;
  };
  EXPECT_EQ(evictions({}), 1U);
  EXPECT_EQ(evictions({.max_plans = 2}), 0U);
}

TEST(Embedding, TheModelOfTheVariable) {
  const ScopedEnvironment id("TOTO_MODEL_ID", kTiny.c_str());
  EXPECT_EQ(Model::load({}).info().name, kTiny);
  LoadOptions closed;
  closed.environment = Environment::ignored;
  EXPECT_NE(Model::load({}, closed).info().name, kTiny);
  ModelQuery query;
  EXPECT_EQ(inspect_model(query).name, kTiny);
  query.environment = Environment::ignored;
  EXPECT_NE(inspect_model(query).name, kTiny);
}

TEST(Embedding, AutoGoesToTheCpuWithOneWarning) {
  if (cuda_unavailable().empty()) GTEST_SKIP() << "there is a device";
  std::vector<test::KeptEvent> events;
  LoadOptions options;
  options.device = Device::automatic;
  options.log = test::events_into(events);
  EXPECT_EQ(load(options).loaded().device, "cpu");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].topic, Topic::device);
  EXPECT_EQ(events[0].severity, Severity::warning);
  EXPECT_EQ(events[0].code, "device_unavailable");
  EXPECT_THAT(events[0].message, HasSubstr(cuda_unavailable()));
  EXPECT_EQ(events[1].code, "model_loaded");
  options.device = Device::cuda;
  const Error error = error_of([&] { (void)load(options); });
  EXPECT_EQ(error.code(), "device_unavailable");
  EXPECT_EQ(error.status(), ExitStatus::device_unavailable);
}

TEST(Embedding, WhatPytorchUsersHaveSetIsTold) {
  const ScopedEnvironment backend("TOTO_COMPILE_BACKEND", "inductor");
  const ScopedEnvironment logs("TORCH_LOGS", "recompiles");
  std::vector<test::KeptEvent> events;
  LoadOptions options;
  options.log = test::events_into(events);
  EXPECT_EQ(load(options).loaded().device, "cpu");
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].topic, Topic::settings);
  EXPECT_EQ(events[0].severity, Severity::info);
  EXPECT_THAT(events[0].message, HasSubstr("TORCH_LOGS"));
  EXPECT_THAT(events[1].message, HasSubstr("TOTO_COMPILE_BACKEND=inductor"));
  events.clear();
  options.environment = Environment::ignored;
  (void)load(options);
  EXPECT_EQ(events.size(), 1U);
}

TEST(Embedding, TheLogOfTheVariableGoesToStandardError) {
  const auto told = [](LoadOptions options) {
    testing::internal::CaptureStderr();
    (void)load(options);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(told({}), "");
  const ScopedEnvironment log("TOTO_LOG", "device");
  EXPECT_THAT(told({}), HasSubstr("toto: model loaded: "));
  std::vector<std::string> lines;
  EXPECT_EQ(told({.log = test::infos_into(lines)}), "");  // the program has its own
  EXPECT_EQ(lines.size(), 1U);
  EXPECT_EQ(told({.environment = Environment::ignored}), "");
}

TEST(Embedding, SettingsByHand) {
  const ScopedEnvironment off("TOTO_DISABLE_COMPILE", "1");
  const Settings settings = Settings::from_environment(
      {{"TOTO_COMPILE_MODE", "default"}, {"TOTO_SEED", "7"}, {"TOTO_NUM_THREADS", "1"}});
  LoadOptions how;
  settings.apply(how);
  EXPECT_EQ(load(how).loaded().mode, Mode::planned);
  EXPECT_EQ(how.threads, 1);
  ForecasterOptions forecaster;
  settings.apply(forecaster);
  EXPECT_EQ(forecaster.seed, 7U);
  ForecastOptions options;
  settings.apply(options);
  EXPECT_EQ(options.seed, 7U);
  EXPECT_EQ(Settings::built_in().mode.value, Mode::reduce_overhead);
}

}  // namespace
}  // namespace toto
