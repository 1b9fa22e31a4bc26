// SPDX-License-Identifier: Apache-2.0
// Which checks `toto verify` makes, and that a healthy build passes them.
#include "laboratory.h"

namespace toto::verify {
namespace {

TEST(VerifySuite, AHealthyBuildPasses) {
  const VerifyOptions options = options_for_test();
  const FaultyLaboratory harness(options, {});
  for (const char* group : {"environment", "correctness", "determinism", "accuracy", "stability"}) {
    expect_holds(run(harness, options, group));
  }
}

// A network whose distribution is no mixture: quantiles are compared in the place of parameters.
TEST(VerifySuite, AModelOfQuantilesPasses) {
  VerifyOptions options = options_for_test();
  options.query.model = test::golden("toto2-tiny-uni");
  const FaultyLaboratory harness(options, {});
  for (const char* group : {"environment", "correctness", "determinism", "accuracy", "stability"}) {
    expect_holds(run(harness, options, group));
  }
}

/// The names of items, group and variant.
std::vector<std::string> items_for(const VerifyOptions& options) {
  const FaultyLaboratory harness(options, {});
  const SuiteState state(options, harness);
  std::vector<std::string> names;
  for (const Item& item : items_of(state)) names.push_back(item.group + ": " + item.name);
  return names;
}

bool has(const std::vector<std::string>& names, const std::string& part) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name.find(part) != std::string::npos; });
}

/// After a rollback eager alone can be approved, whatever is wrong with modes that are not in use.
TEST(VerifySuite, OnlyTheModeInForceIsJudgedByItself) {
  VerifyOptions options = options_for_test();
  options.modes.clear();
  const auto names = items_for(options);
  EXPECT_TRUE(has(names, "reduce-overhead float32"));
  EXPECT_TRUE(has(names, "eager float32"));
  EXPECT_FALSE(has(names, "max-autotune"));
  EXPECT_FALSE(has(names, "default"));
  EXPECT_FALSE(has(names, "bfloat16"));

  options.load.mode = Mode::eager;
  EXPECT_FALSE(has(items_for(options), "reduce-overhead"));
  Faults faults;  // in every mode but eager
  faults.on_linear = [] { throw std::runtime_error("broken"); };
  const FaultyLaboratory broken(options, faults);
  for (const char* group : {"environment", "correctness", "determinism", "accuracy", "stability"}) {
    expect_holds(run(broken, options, group));
  }
}

TEST(VerifySuite, AListThatLeavesOutTheModeInForceApprovesNothing) {
  VerifyOptions options = options_for_test();
  options.modes = {Mode::eager};
  const FaultyLaboratory harness(options, {});
  expect_found(run(harness, options, "environment"), "modes judged", Verdict::could_not_run);
}

/// One short series cannot be split into thirds: the smallest piece is more than that. In one pass
/// it is one piece.
TEST(VerifySuite, OneSeriesIsEnoughForDeterminism) {
  VerifyOptions options = options_for_test();
  const verify::OwnedSeries owned = verify::made_series(1, 40);
  const Series series = owned.view();
  options.data = {&series, 1};
  for (const char* model : {"toto1-tiny-a", "toto2-tiny-uni"}) {
    options.query.model = test::golden(model);
    const FaultyLaboratory harness(options, {});
    expect_holds(run(harness, options, "determinism"));
  }
}

TEST(VerifySuite, APartialRunHasAStatusOfItsOwn) {
  VerifyReport report;
  report.partial = true;
  report.checks.resize(1);
  report.checks.front().verdict = Verdict::holds;
  EXPECT_EQ(report.status(), ExitStatus::attention);
  EXPECT_FALSE(report.holds());
  report.checks.front().verdict = Verdict::fails;
  EXPECT_EQ(report.status(), ExitStatus::verification_failed);
}

TEST(VerifyDrift, StatusesTellDriftFromWhatCouldNotBeCompared) {
  VerifyReport report;
  EXPECT_EQ(drift_status(report), ExitStatus::verification_failed);
  report.checks.resize(2);
  report.checks[0].name = "against: model";
  report.checks[1].name = "against: drift of 'a'";
  for (Check& c : report.checks) c.verdict = Verdict::holds;
  EXPECT_EQ(drift_status(report), ExitStatus::ok);
  report.checks[1].verdict = Verdict::fails;
  EXPECT_EQ(drift_status(report), ExitStatus::attention);
  report.checks[0].verdict = Verdict::fails;
  EXPECT_EQ(drift_status(report), ExitStatus::verification_failed);
  report.checks[0].verdict = Verdict::holds;
  report.checks[1].verdict = Verdict::could_not_run;
  EXPECT_EQ(drift_status(report), ExitStatus::verification_failed);
}

TEST(VerifySuite, EveryCheckSaysHowToReproduceIt) {
  const VerifyOptions options = options_for_test();
  const FaultyLaboratory harness(options, {});
  for (const Check& c : run(harness, options, "environment").checks) {
    EXPECT_EQ(c.reproduce, "toto verify --only 'environment'");
    EXPECT_FALSE(c.measure.empty());
  }
}

/// A part that nothing is in would be a verdict on nothing.
TEST(VerifySuite, APartThatIsEmptyIsAnErrorThatListsWhatThereIs) {
  VerifyOptions options = options_for_test();
  options.only = "acuracy";
  const FaultyLaboratory harness(options, {});
  try {
    run_suite(options, harness);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "unknown_check");
    EXPECT_EQ(error.status(), ExitStatus::usage);
    const std::string text = error.what();
    EXPECT_NE(text.find("did you mean accuracy?"), std::string::npos) << text;
    const std::string once = "determinism: reduce-overhead float32";
    EXPECT_NE(text.find(once), std::string::npos) << text;
    EXPECT_EQ(text.find(once), text.rfind(once)) << text;
  }
}

TEST(VerifySuite, APartOfASuiteIsNoVerdict) {
  VerifyOptions options = options_for_test();
  options.only = "environment";
  const VerifyReport report = verify_suite(options);
  EXPECT_EQ(report.checks.size(), 4U);
  EXPECT_TRUE(report.checks.front().holds());
  EXPECT_EQ(report.status(), ExitStatus::attention);
}

TEST(VerifySuite, ThePlanCacheIsReadAndNotWritten) {
  const test::TempFolder folder;
  VerifyOptions options = options_for_test();
  options.load.mode = Mode::max_autotune;
  options.forecaster.plan_cache_dir = folder.path();
  const FaultyLaboratory harness(options, {});
  SuiteState state(options, harness);
  const Variant tuned{Mode::max_autotune, Precision::float32};
  EXPECT_EQ(state.forecaster(tuned).counters().cache_loads, 0U);
  EXPECT_EQ(folder.files(), 0U);
  { const Forecaster service(harness.load(tuned, 0), options.forecaster); }
  EXPECT_EQ(folder.files(), 1U);
  EXPECT_EQ(state.forecaster(tuned).counters().cache_loads, 1U);
}

TEST(VerifySuite, OneThreadIsComparedWithMore) {
  VerifyOptions options = options_for_test();
  options.load.threads = 1;
  const FaultyLaboratory harness(options, {});
  const VerifyReport report = run(harness, options, "determinism", kMode);
  EXPECT_EQ(find(report, kMode + ": 1 thread"), nullptr);
  ASSERT_NE(find(report, kMode + ": 3 threads"), nullptr);
  EXPECT_TRUE(find(report, kMode + ": 3 threads")->holds());
}

TEST(VerifySuite, TheReportSaysWhatFloat64Ran) {
  VerifyOptions options = options_for_test();
  const auto count = [&](Suite suite) {
    options.suite = suite;
    const FaultyLaboratory harness(options, {});
    const VerifyReport report = run(harness, options, "correctness", "eager against float64");
    EXPECT_EQ(find(report, "context 4096") != nullptr, suite == Suite::full);
    EXPECT_EQ(find(report, "batch 64") != nullptr, suite == Suite::full);
    EXPECT_NE(find(report, "context 1000"), nullptr);
    const auto table = std::find_if(report.tables.begin(), report.tables.end(),
                                    [](const auto& t) { return t.title == "What was compared"; });
    EXPECT_NE(table, report.tables.end());
    return std::count_if(table->rows.begin(), table->rows.end(), [](const auto& row) {
      return row.back().find("eager and float64") == std::string::npos;
    });
  };
  EXPECT_EQ(count(Suite::quick), 2);
  EXPECT_EQ(count(Suite::full), 0);
}

TEST(VerifySuite, OnlyDigestsAreKeptForTheOtherProcess) {
  const VerifyOptions options = options_for_test();
  const FaultyLaboratory harness(options, {});
  SuiteState state(options, harness);
  (void)verify::same_bits_again(state, {Mode::planned, Precision::float32});
  for (const auto& [label, digests] : state.bits) {
    EXPECT_FALSE(digests.empty());
    for (const std::string& digest : digests) EXPECT_EQ(digest.size(), 64U);
  }
}

}  // namespace
}  // namespace toto::verify
