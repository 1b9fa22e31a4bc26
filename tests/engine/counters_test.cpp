// SPDX-License-Identifier: Apache-2.0
// Counters as text, shapes to warm up for, and the checks that the presets switch on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/log_lines.h"
#include "support/small_model.h"

namespace toto {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string code_of(std::string_view text) {
  try {
    parse_warmup(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::usage);
    return std::string(error.code());
  }
  return "none";
}

TEST(Warmup, ReadsShapes) {
  const auto shapes = parse_warmup("512x8,4096x336x7,64x1x2x300");
  ASSERT_EQ(shapes.size(), 3U);
  EXPECT_EQ(shapes[0].context, 512U);
  EXPECT_EQ(shapes[0].horizon, 8U);
  EXPECT_EQ(shapes[0].variates, 1U);
  EXPECT_EQ(shapes[0].batch, 1U);
  EXPECT_EQ(shapes[1].variates, 7U);
  EXPECT_EQ(shapes[2].batch, 300U);
}

TEST(Warmup, RefusesWhatIsNoShape) {
  for (const char* text : {"", "512", "512x", "x8", "512x8,", "512x0", "512x8x1x1x1", "512x-8",
                           "512X8", "99999999x1", "a"}) {
    EXPECT_EQ(code_of(text), "invalid_warmup") << text;
  }
}

class Counted : public testing::Test {
 protected:
  static Forecast run(Forecaster& forecaster, std::size_t steps) {
    const test::OwnedSeries s = test::wave(1, steps);
    const Series view = s.view();
    ForecastOptions o;
    o.horizon = 8;
    return forecaster.forecast({&view, 1}, o).front();
  }
  Model model_ = test::make_model(test::spec_config(), false, {}, 1, {});
};

TEST_F(Counted, AreOneLineAndOneObject) {
  Forecaster forecaster(model_);
  run(forecaster, 100);
  run(forecaster, 100);
  const Counters counters = forecaster.counters();
  EXPECT_THAT(summary(counters), HasSubstr("2 forecasts of 2 series"));
  EXPECT_THAT(summary(counters), HasSubstr("1 built"));
  EXPECT_THAT(summary(counters), Not(HasSubstr("\n")));
  const auto json = nlohmann::json::parse(to_json(counters, 4));
  EXPECT_EQ(json.at("forecasts"), 2);
  EXPECT_EQ(json.at("plan_builds"), 1);
  EXPECT_EQ(json.at("plan_hits"), 1);
  EXPECT_EQ(json.at("builds").at(0), "no plan yet");
  EXPECT_GT(json.at("operations"), 0);
}

TEST_F(Counted, StrictCountersTellOfPlansAfterWarmUp) {
  std::vector<std::string> told;
  ForecasterOptions options;
  options.strict_counters = true;
  options.log = test::warnings_into(told);
  Forecaster forecaster(model_, options);
  run(forecaster, 20);  // not yet warmed up: nothing to tell
  EXPECT_THAT(told, IsEmpty());
  const WarmupShape shape{100, 8, 1, 1};
  ForecastOptions o;
  o.horizon = 8;
  forecaster.warm_up({&shape, 1}, o);
  run(forecaster, 100);
  run(forecaster, 50);
  EXPECT_THAT(told, IsEmpty());
  run(forecaster, 1000);
  ASSERT_FALSE(told.empty());
  EXPECT_THAT(told.front(), HasSubstr("after warm-up: 1 plans built"));
  EXPECT_THAT(told.front(), HasSubstr("rows"));
}

TEST_F(Counted, DeterministicChecksComputeTwiceAndChangeNothing) {
  ForecasterOptions options;
  options.deterministic_checks = true;
  Forecaster checked(model_, options);
  Forecaster plain(model_);
  const Forecast a = run(checked, 100);
  const Forecast b = run(plain, 100);
  EXPECT_EQ(a.quantiles, b.quantiles);
  EXPECT_EQ(checked.counters().operations, 2 * plain.counters().operations);
}

}  // namespace
}  // namespace toto
