// SPDX-License-Identifier: Apache-2.0
// Operations as spans: a trace and the ranges of a profiler get the same names, out of one table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "backend/operation.h"
#include "core/trace.h"
#include "support/needs_device.h"
#include "support/requests.h"
#include "support/test_files.h"

namespace toto {
namespace {

using Names = std::multiset<std::string>;
using testing::Contains;
using testing::IsEmpty;
using testing::IsSubsetOf;

/// What a profiler would get.
Names pushed;
int open_ranges = 0;
const SpanRanges kRecorded = {[](const char* name) noexcept {
                                pushed.emplace(name);
                                ++open_ranges;
                              },
                              []() noexcept { --open_ranges; }};

class OperationSpans : public testing::Test {
 protected:
  OperationSpans() {
    pushed.clear();
    open_ranges = 0;
    SpanRanges::set(&kRecorded);
  }
  ~OperationSpans() override { SpanRanges::set(nullptr); }
};

std::set<std::string> operations() { return {kOperationNames.begin(), kOperationNames.end()}; }

const std::set<std::string> kStages = {"load", "plan",    "autotune", "capture", "replay",
                                       "wait", "prepare", "prefill",  "decode",  "statistics"};

Names names_in(const Trace& trace) {
  Names names;
  const auto all = nlohmann::json::parse(trace.chrome_json());
  for (const auto& event : all.at("traceEvents")) {
    names.insert(event.at("name").get<std::string>());
  }
  return names;
}

std::set<std::string> operations_in(const Names& names) {
  std::set<std::string> found;
  const auto known = operations();
  std::ranges::set_intersection(names, known, std::inserter(found, found.end()));
  return found;
}

/// Two patches of trajectories with a known covariate, their mean alone, and parameters.
void forecast_every_way(const Model& model) {
  test::OwnedSeries owned = test::wave(1, 100, 3);
  owned.exogenous = 1;
  owned.future.assign(20, 2.0F);
  Forecaster forecaster(model);
  ForecastOptions o = test::six_samples(20);
  o.decoding.decode_block_size = static_cast<std::size_t>(model.info().patch_size);
  (void)forecaster.forecast(test::views({owned}), o);
  o.keep_samples = false;
  o.mean_only = true;
  (void)forecaster.forecast(test::views({owned}), o);
  o.mean_only = false;
  o.keep_parameters = true;
  (void)forecaster.forecast(test::views({owned}), o);
}

Model golden_model(const char* name, const LoadOptions& load) {
  return Model::load({.model = test::golden(name)}, load);
}

std::set<std::string> traced(const Model& model) {
  const Trace trace;
  pushed.clear();
  forecast_every_way(model);
  const Names names = names_in(trace);
  EXPECT_EQ(names, pushed);
  EXPECT_EQ(open_ranges, 0);
  for (const std::string& name : names) {
    EXPECT_TRUE(operations().contains(name) || kStages.contains(name) || name == "forecast")
        << name;
  }
  EXPECT_THAT(names, Contains("prefill"));
  EXPECT_THAT(names, Contains("statistics"));
  return operations_in(names);
}

const std::set<std::string> kOfMixtures = {
    "scale",          "repeat_state",  "linear",           "rms_norm",
    "set_labels",     "rotary_append", "time_attention",   "variate_attention",
    "gather_last",    "distribution",  "predict_mean",     "predict_draw",
    "inject",         "keep",          "exact_statistics", "sample_statistics",
    "keep_parameters"};
const std::set<std::string> kOfKnots = {
    "inputs", "quantiles", "knot_results",   "feed_back",         "linear_silu",
    "gather", "rms_norm",  "time_attention", "variate_attention", "linear"};

/// With labels, so that these are an operation too.
Model labelled(const LoadOptions& load) {
  return test::make_model(test::odd_config(), true, {}, 5, load);
}

TEST_F(OperationSpans, ATraceAndAProfilerGetTheSameNames) {
  EXPECT_EQ(traced(labelled({})), kOfMixtures);
  const std::set<std::string> found = traced(golden_model("toto2-tiny-multi", {}));
  EXPECT_THAT(kOfKnots, IsSubsetOf(found));
}

TEST_F(OperationSpans, OfTheReferenceHaveTheNamesOfTheCpu) {
  LoadOptions load;
  load.backend = "reference";
  EXPECT_EQ(traced(labelled(load)), kOfMixtures);
}

TEST_F(OperationSpans, AreNowhereWhenNobodyListens) {
  SpanRanges::set(nullptr);
  forecast_every_way(labelled({}));
  EXPECT_THAT(pushed, IsEmpty());
}

// On a device the products take norms along, and the first copy the scaler.
TEST_F(OperationSpans, OfADeviceAreInTheTable) {
  TOTO_NEEDS_DEVICE();
  LoadOptions load;
  load.backend = "cuda";
  load.mode = Mode::planned;
  const Model mixtures = labelled(load);
  SpanRanges::set(&kRecorded);  // if a profiler is attached it has been set
  std::set<std::string> found = traced(mixtures);
  for (const char* name : {"scale", "copy_in_and_scale", "copy_in", "copy_out", "norm_linear"}) {
    EXPECT_THAT(found, Contains(name));
  }
  std::set<std::string> missing;
  std::ranges::set_difference(kOfMixtures, found, std::inserter(missing, missing.end()));
  EXPECT_THAT(missing, IsSubsetOf(std::set<std::string>{"rms_norm"}));
  const Model knots = golden_model("toto2-tiny-multi", load);
  SpanRanges::set(&kRecorded);
  found = traced(knots);
  EXPECT_THAT(kOfKnots, IsSubsetOf(found));
}

}  // namespace
}  // namespace toto
