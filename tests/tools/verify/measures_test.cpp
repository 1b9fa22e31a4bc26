// SPDX-License-Identifier: Apache-2.0
// What the checks of `toto verify` make of numbers: nothing that was not measured, and nothing that
// is not finite, may hold.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/test_files.h"
#include "tools/verify/groups.h"
#include "tools/verify/request.h"
#include "tools/verify/without_parameters.h"

namespace toto::verify {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(VerifyMeasures, WhatIsNotFiniteNeverHolds) {
  EXPECT_TRUE(measured("a", "b", 1, 1).holds());
  for (const double value : {std::nan(""), kInfinity, -kInfinity}) {
    EXPECT_EQ(measured("a", "b", value, kInfinity).verdict, Verdict::fails);
  }
  EXPECT_TRUE(std::isnan(ratio(1, kInfinity)));
  EXPECT_TRUE(std::isnan(ratio(kInfinity, 1)));
  EXPECT_TRUE(std::isnan(ratio(kInfinity, kInfinity)));
  EXPECT_TRUE(std::isinf(ratio(1, 0)));
  EXPECT_EQ(ratio(0, 0), 1);
}

// Times that vary because other programs take the cores are no defect of this one.
TEST(VerifyMeasures, ASpreadBesideOtherProgramsIsNoFailure) {
  EXPECT_EQ(judge_spread("a", 0.04, 0.04, 0).verdict, Verdict::holds);
  EXPECT_EQ(judge_spread("a", 0.4, 0.04, 0).verdict, Verdict::warning);
  EXPECT_EQ(judge_spread("a", 0.6, 0.04, 0.1).verdict, Verdict::fails);
  const Check busy = judge_spread("a", 1.17, 1.37, 2);
  EXPECT_EQ(busy.verdict, Verdict::warning);
  EXPECT_NE(busy.why.find("other programs kept 2.0 cores busy"), std::string::npos) << busy.why;
  EXPECT_EQ(judge_spread("a", kInfinity, 1, 2).verdict, Verdict::fails);
}

// A slow build is told from a busy machine by its processor time.
TEST(VerifyMeasures, ASlowdownIsTheBuildsOrTheMachines) {
  EXPECT_EQ(judge_slowdown("a", 1.9, NAN, 0, "").verdict, Verdict::holds);
  EXPECT_EQ(judge_slowdown("a", 1.9, 3, 2, "").verdict, Verdict::holds);
  const Check slow = judge_slowdown("a", 2.1, NAN, 0.1, "t");
  EXPECT_EQ(slow.verdict, Verdict::fails);
  EXPECT_NE(slow.why.find("this build is slow"), std::string::npos) << slow.why;
  const Check busy = judge_slowdown("a", 5, 1.1, 2, "t");
  EXPECT_EQ(busy.verdict, Verdict::warning);
  EXPECT_NE(busy.why.find("this machine was busy"), std::string::npos) << busy.why;
  EXPECT_NE(busy.why.find("this build is not slow"), std::string::npos) << busy.why;
  const Check both = judge_slowdown("a", 5, 2.5, 2, "t");
  EXPECT_EQ(both.verdict, Verdict::fails);
  EXPECT_EQ(both.value, 2.5);
  EXPECT_NE(both.why.find("this build is slow"), std::string::npos) << both.why;
  // Nothing was measured that could tell them apart: fail closed.
  EXPECT_EQ(judge_slowdown("a", 5, NAN, 2, "t").verdict, Verdict::fails);
  EXPECT_EQ(judge_slowdown("a", kInfinity, 1, 2, "t").verdict, Verdict::fails);
}

class VerifyRequest : public testing::Test {
 protected:
  static Model model() {
    LoadOptions load;
    load.threads = 1;
    return Model::load({.model = test::golden("toto1-tiny-a")}, load);
  }
  VerifyRequest() : lab_(options_), e_(options_, lab_), forecaster_(model()) {
    request_ = request_for(e_, patch_of(forecaster_.model()));
    all_ = forecaster_.forecast(request_.series, request_.options);
  }
  static Check named(const std::vector<Check>& checks, const std::string& name) {
    for (const Check& c : checks) {
      if (c.name == name) return c;
    }
    ADD_FAILURE() << name;
    return {};
  }

  VerifyOptions options_;
  Harness lab_;
  SuiteState e_;
  Forecaster forecaster_;
  Request request_;
  std::vector<Forecast> all_;
};

TEST_F(VerifyRequest, DrawsThatAreRightHold) {
  for (const Check& c : check_draws(forecaster_, request_, all_)) EXPECT_TRUE(c.holds()) << c.why;
}

TEST_F(VerifyRequest, WithoutDrawsNothingIsMeasured) {
  request_.options.keep_samples = false;
  const auto none = forecaster_.forecast(request_.series, request_.options);
  for (const Check& c : check_draws(forecaster_, request_, none)) {
    EXPECT_EQ(c.verdict, Verdict::fails) << c.name;
  }
}

TEST_F(VerifyRequest, AForecastWithoutParametersThatSaysSomethingElse) {
  const auto check = [&](const std::string& name) {
    return named(without_parameters(forecaster_, request_.series, request_.options, all_, "plain"),
                 name);
  };
  EXPECT_TRUE(check("plain, statistics").holds());
  EXPECT_TRUE(check("plain, trajectories").holds());
  float& quantile = all_[1].quantiles[3];
  quantile = std::nextafter(quantile, 1e9F);
  EXPECT_EQ(check("plain, statistics").verdict, Verdict::fails);
  EXPECT_TRUE(check("plain, trajectories").holds());
  all_[0].samples.back() += 1;
  EXPECT_EQ(check("plain, trajectories").verdict, Verdict::fails);
}

TEST_F(VerifyRequest, DigestsSeeEveryPartOfAForecast) {
  const auto before = digests_of(forecaster_, request_, all_);
  ASSERT_EQ(before.size(), all_.size());
  EXPECT_NE(before[0], before[1]);
  all_[0].parameters.df[2] += 1e-9;
  all_[1].samples[0] += 1;
  const auto after = digests_of(forecaster_, request_, all_);
  EXPECT_NE(before[0], after[0]);
  EXPECT_NE(before[1], after[1]);
  EXPECT_EQ(before[2], after[2]);
}

}  // namespace
}  // namespace toto::verify
