// SPDX-License-Identifier: Apache-2.0
// Each planted fault is found by the check that is there for it.
#include "laboratory.h"

namespace toto::verify {
namespace {

TEST(VerifyFault, ABiasOfAModelOfQuantiles) {
  VerifyOptions options = options_for_test();
  options.query.model = test::golden("toto2-tiny-uni");
  Faults faults;
  faults.bias = 1e-4;
  const FaultyLaboratory harness(options, faults);
  const VerifyReport report = run(harness, options, "correctness", kMode);
  for (const char* name : {"single pass", "autoregressive, 8 patches, cached", "masks"}) {
    expect_found(report, name);
  }
}

TEST(VerifyFault, ABiasOffByOneTenThousandth) {
  const VerifyOptions options = options_for_test();
  Faults faults;
  faults.bias = 1e-4;
  const FaultyLaboratory harness(options, faults);
  expect_found(run(harness, options, "correctness", kMode), kMode + ": single pass");
}

TEST(VerifyFault, AWrongRotaryCentre) {
  const VerifyOptions options = options_for_test();
  Faults faults;
  faults.rotary_centre = 1;
  const FaultyLaboratory harness(options, faults);
  const VerifyReport report = run(harness, options, "correctness", kMode);
  expect_found(report, kMode + ": autoregressive, 8 patches, cached");
  EXPECT_TRUE(find(report, kMode + ": single pass")->holds());
}

TEST(VerifyFault, AStaleEntryOfTheKeyCache) {
  const VerifyOptions options = options_for_test();
  Faults faults;
  faults.stale_keys = true;
  const FaultyLaboratory harness(options, faults);
  const VerifyReport report = run(harness, options, "correctness", kMode);
  expect_found(report, kMode + ": autoregressive, 8 patches, cached");
  EXPECT_TRUE(find(report, kMode + ": context 512")->holds());
}

TEST(VerifyFault, AStaleEntryOfThePlanCache) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("toto-verify-plans-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "plan-0123456789abcdef0123456789abcdef.bin") << "totoplan of another time";
  VerifyOptions options = options_for_test();
  options.forecaster.plan_cache = CachePolicy::prefer;
  options.forecaster.plan_cache_dir = folder.string();
  const FaultyLaboratory harness(options, {});
  expect_found(run(harness, options, "environment"), "plan cache");
  std::filesystem::remove_all(folder);
}

TEST(VerifyFault, AChangedDrawAddress) {
  const VerifyOptions options = options_for_test();
  Faults faults;
  faults.draw_sample = 1;
  const FaultyLaboratory harness(options, faults);
  const VerifyReport report = run(harness, options, "determinism");
  expect_found(report, kMode + ": draw addresses");
  expect_found(report, "another process: " + kMode);
}

TEST(VerifyFault, ADrawAddressThatDependsOnTheBatch) {
  const VerifyOptions options = options_for_test();
  Faults faults;
  faults.draw_sample = 1;
  faults.only_in_batches = true;
  const FaultyLaboratory harness(options, faults);
  expect_found(run(harness, options, "determinism", kMode), kMode + ": alone or in a batch");
}

TEST(VerifyFault, APlanBuiltEveryTime) {
  const VerifyOptions options = options_for_test();
  FaultyLaboratory harness(options, {});
  std::size_t variates = 1;
  harness.before = [&](Forecaster& forecaster) {
    const WarmupShape shape{8, 8, ++variates, 4};
    forecaster.warm_up({&shape, 1}, {});
  };
  const VerifyReport report = run(harness, options, "stability", kMode);
  expect_found(report, kMode + ": plan builds");
  expect_found(report, kMode + ": plans of a family");
}

TEST(VerifyFault, AnAllocationInsideAForecast) {
  const VerifyOptions options = options_for_test();
  Faults faults;
  const FaultyLaboratory* counter = nullptr;
  faults.once_a_forecast = [&] { ++counter->allocations_; };
  const FaultyLaboratory harness(options, faults);
  counter = &harness;
  expect_found(run(harness, options, "stability", kMode), kMode + ": allocations");
}

TEST(VerifyFault, AModeThatIsSlowerThanEager) {
  const VerifyOptions options = options_for_test();
  Faults faults;
  const FaultyLaboratory* clock = nullptr;
  faults.on_linear = [&] { clock->clock_ = clock->clock_ + 20; };
  const FaultyLaboratory harness(options, faults);
  clock = &harness;
  expect_found(run(harness, options, "performance", kMode), kMode + ": one patch, slowdown");
}

TEST(VerifyFault, ABusyMachineIsNoSlowBuild) {
  const VerifyOptions options = options_for_test();
  Faults faults;
  const FaultyLaboratory* clock = nullptr;
  faults.on_linear = [&] { clock->clock_ = clock->clock_ + 20; };  // not of the processor
  FaultyLaboratory harness(options, faults);
  harness.others = 1;
  clock = &harness;
  const VerifyReport report = run(harness, options, "performance", kMode);
  const Check* c = find(report, kMode + ": one patch, slowdown");
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->verdict, Verdict::warning) << c->why;
  EXPECT_NE(c->why.find("this build is not slow"), std::string::npos) << c->why;
}

TEST(VerifyFault, ASlowBuildIsFoundOnABusyMachineToo) {
  const VerifyOptions options = options_for_test();
  Faults faults;
  const FaultyLaboratory* clock = nullptr;
  faults.on_linear = [&] {
    clock->clock_ = clock->clock_ + 20;
    clock->processor_ = clock->processor_ + 20;
  };
  FaultyLaboratory harness(options, faults);
  harness.others = 1;
  clock = &harness;
  const VerifyReport report = run(harness, options, "performance", kMode);
  expect_found(report, kMode + ": one patch, slowdown");
  EXPECT_NE(find(report, kMode + ": one patch, slowdown")->why.find("this build is slow"),
            std::string::npos);
}

TEST(VerifyFault, TimesThatScatter) {
  const VerifyOptions options = options_for_test();
  Faults faults;
  const FaultyLaboratory* clock = nullptr;
  int calls = 0;
  faults.once_a_forecast = [&] { clock->clock_ = clock->clock_ + (++calls % 4 == 0 ? 5000 : 0); };
  const FaultyLaboratory harness(options, faults);
  clock = &harness;
  expect_found(run(harness, options, "performance", kMode), kMode + ": trajectories, spread");
}

TEST(VerifyFault, AForecastThatIsNotFinite) {
  const VerifyOptions options = options_for_test();
  Faults faults;
  faults.not_finite = true;
  const FaultyLaboratory harness(options, faults);
  expect_found(run(harness, options, "stability", kMode), kMode + ": odd series");
  expect_found(run(harness, options, "correctness", kMode), kMode + ": single pass");
  // What needs the forecast cannot run, and that is a failure.
  expect_found(run(harness, options, "accuracy", kMode), kMode, Verdict::could_not_run);
}

TEST(VerifyFault, AMebibyteLeakedByEachForecast) {
  const VerifyOptions options = options_for_test();
  std::vector<void*> leaked;
  Faults faults;
  faults.once_a_forecast = [&] {
    leaked.push_back(std::calloc(1, 1 << 20));
    std::fill_n(static_cast<volatile char*>(leaked.back()), 1 << 20, 'x');
  };
  const FaultyLaboratory harness(options, faults);
  expect_found(run(harness, options, "stability", kMode), kMode + ": memory of forecasts");
  for (void* memory : leaked) std::free(memory);
}

// A fraction of what the issue asks for, so that there is a margin.
TEST(VerifyFault, AnEighthOfAMebibyteLeakedByEachForecast) {
  const VerifyOptions options = options_for_test();
  std::vector<std::vector<char>> leaked;
  Faults faults;
  faults.once_a_forecast = [&] { leaked.emplace_back(1 << 17, 'x'); };
  const FaultyLaboratory harness(options, faults);
  expect_found(run(harness, options, "stability", kMode), kMode + ": memory of forecasts");
}

TEST(VerifyFault, EagerThatIsWrongInOneNumber) {
  const VerifyOptions options = options_for_test();
  FaultyLaboratory harness(options, {});
  harness.eager_faults.outlier = 1.2e-3;
  const VerifyReport report = run(harness, options, "correctness", "eager against float64");
  expect_found(report, "eager against float64: batch 7");
  EXPECT_EQ(find(report, "eager against float64: batch 7")->measure,
            "largest difference to float64");
}

TEST(VerifyFault, TheSameDrawsForEverySeed) {
  const VerifyOptions options = options_for_test();
  Faults faults;
  faults.one_seed = true;
  const FaultyLaboratory harness(options, faults);
  expect_found(run(harness, options, "accuracy", kMode), kMode + ": sampling noise, too little");
  expect_found(run(harness, options, "determinism", kMode), kMode + ": another seed");
}

TEST(VerifyFault, ALimitThatIsInForceAndTooSmall) {
  VerifyOptions options = options_for_test();
  options.forecaster.memory_limit = 1;
  const FaultyLaboratory harness(options, {});
  for (const char* group : {"correctness", "determinism", "accuracy", "stability"}) {
    const VerifyReport report = run(harness, options, group, kMode);
    expect_found(report, kMode, Verdict::could_not_run);
    EXPECT_NE(report.checks.front().why.find("memory_limit"), std::string::npos) << group;
  }
}

TEST(VerifyFault, APlanCacheThatIsInForceAndHasNoPlans) {
  const test::TempFolder folder;
  VerifyOptions options = options_for_test();
  options.forecaster.plan_cache_dir = folder.path();
  options.forecaster.plan_cache = CachePolicy::only;
  const FaultyLaboratory harness(options, {});
  const VerifyReport report = run(harness, options, "accuracy", kMode);
  expect_found(report, kMode, Verdict::could_not_run);
  EXPECT_NE(report.checks.front().why.find("plan_cache_miss"), std::string::npos);
}

TEST(VerifyFault, ACheckThatCannotRun) {
  const VerifyOptions options = options_for_test();  // without a second process, a counter
  const Harness harness(options);
  expect_found(run(harness, options, "determinism", "another process"), "another process",
               Verdict::could_not_run);
  expect_found(run(harness, options, "stability", kMode), kMode, Verdict::could_not_run);
}

TEST(VerifyFault, AnItemThatMeasuresNothing) {
  const VerifyOptions options = options_for_test();
  const Harness harness(options);
  SuiteState state(options, harness);
  const Item nothing{"stability", "nothing", [](SuiteState&) { return std::vector<Check>(); }};
  expect_found(run_items(state, {nothing}), "nothing", Verdict::could_not_run);
  EXPECT_EQ(run_items(state, {}).status(), ExitStatus::verification_failed);
}

TEST(VerifyFault, ANameInTheEnvironmentThatNothingReads) {
  VerifyOptions options = options_for_test();
  options.unknown_variables = {"TOTO_COMPILE_MOD"};
  const FaultyLaboratory harness(options, {});
  expect_found(run(harness, options, "environment"), "names");
}

}  // namespace
}  // namespace toto::verify
