// SPDX-License-Identifier: Apache-2.0
// The checks of `toto verify` on a small model: a healthy one passes, and each planted fault is
// found by the check that is there for it. Time is counted, not measured.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "models/backend_choice.h"
#include "models/checkpoint/checkpoint.h"
#include "models/model_impl.h"
#include "support/faulty_backend.h"
#include "support/test_files.h"
#include "tools/verify/groups.h"

namespace toto {
namespace {

using test::Faults;
using verify::Harness;
using verify::Item;
using verify::SuiteState;
using verify::Variant;

const std::string kModel = test::golden("toto1-tiny-a");

/// The small checkpoint, with faults in one mode. A clock that goes on by one with every product.
class FaultyLaboratory : public Harness {
 public:
  FaultyLaboratory(const VerifyOptions& options, Faults faults)
      : Harness(options), faults_(std::move(faults)) {}

  [[nodiscard]] Model load(const Variant& variant, int threads) const override {
    if (variant.precision == Precision::float64) return Harness::load(variant, threads);
    LoadOptions load = options_.load;
    load.mode = variant.mode;
    load.precision = variant.precision;
    if (threads != 0) load.threads = threads;
    Checkpoint checkpoint = open_checkpoint(options_.query);
    auto impl = std::make_shared<Model::Impl>();
    impl->info = std::move(checkpoint.info);
    impl->mode = *load.mode;
    impl->precision = load.precision;
    impl->content_hash = checkpoint.weights.source().content_hash();
    const bool eager = variant.mode == Mode::eager;
    Faults faults = eager ? eager_faults : faults_;
    faults.on_linear = [this, mine = faults.on_linear] {
      clock_ = clock_ + 1;
      if (mine) mine();
    };
    impl->net = checkpoint.config->build(
        checkpoint.weights, std::make_shared<test::FaultyBackend>(make_backend(load), faults),
        eager ? Build::eager : Build::planned);
    return Model(std::move(impl));
  }
  [[nodiscard]] double now() const override { return clock_; }
  [[nodiscard]] std::uint64_t allocations() const override { return allocations_; }
  [[nodiscard]] std::string second_process() const override {
    const Harness healthy(options_);
    SuiteState state(options_, healthy);
    return verify::bits_of_all(state);
  }
  void before_forecast(Forecaster& forecaster) const override {
    if (before) before(forecaster);
  }

  std::function<void(Forecaster&)> before;
  Faults eager_faults;
  mutable std::atomic<std::uint64_t> allocations_ = 0;
  mutable double clock_ = 0;

 private:
  Faults faults_;
};

VerifyOptions options_for_test() {
  VerifyOptions o;
  o.query.model = kModel;
  o.load.threads = 2;
  o.load.mode = Mode::reduce_overhead;
  o.load = complete(o.load);
  o.modes = {Mode::eager, Mode::planned, Mode::reduce_overhead, Mode::max_autotune};
  o.command = "toto verify";
  return o;
}

/// Runs the items of a group, of all variants or one.
VerifyReport run(const Harness& harness, const VerifyOptions& options, const std::string& group,
                 const std::string& name = {}) {
  SuiteState state(options, harness);
  std::vector<Item> items = verify::items_of(state);
  std::erase_if(items, [&](const Item& item) {
    return !item.group.starts_with(group) || item.name.find(name) == std::string::npos;
  });
  return verify::run_items(state, items);
}

const Check* find(const VerifyReport& report, const std::string& name) {
  for (const Check& c : report.checks) {
    if (c.name.find(name) != std::string::npos) return &c;
  }
  return nullptr;
}

/// That this check fails, and with it the report.
void expect_found(const VerifyReport& report, const std::string& name,
                  Verdict verdict = Verdict::fails) {
  const Check* c = find(report, name);
  ASSERT_NE(c, nullptr) << name;
  EXPECT_EQ(c->verdict, verdict) << c->name << ": " << c->value << " " << c->why;
  EXPECT_EQ(report.status(), ExitStatus::verification_failed);
}

void expect_holds(const VerifyReport& report) {
  EXPECT_FALSE(report.checks.empty());
  for (const Check& c : report.checks) {
    EXPECT_TRUE(c.holds()) << c.group << ": " << c.name << ": " << c.value << " > " << c.bound
                           << " " << c.why;
  }
  EXPECT_EQ(report.status(), ExitStatus::ok);
}

const std::string kMode = "reduce-overhead float32";

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

/// The names of items, group and variant.
std::vector<std::string> items_for(const VerifyOptions& options) {
  const FaultyLaboratory harness(options, {});
  const SuiteState state(options, harness);
  std::vector<std::string> names;
  for (const Item& item : verify::items_of(state)) names.push_back(item.group + ": " + item.name);
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

/// One short series cannot be split into thirds: the smallest piece is more than that.
TEST(VerifySuite, OneSeriesIsEnoughForDeterminism) {
  VerifyOptions options = options_for_test();
  const verify::OwnedSeries owned = verify::made_series(1, 40);
  const Series series = owned.view();
  options.data = {&series, 1};
  const FaultyLaboratory harness(options, {});
  expect_holds(run(harness, options, "determinism"));
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

TEST(VerifySuite, APartOfASuiteIsNoVerdict) {
  VerifyOptions options = options_for_test();
  options.only = "environment";
  const VerifyReport report = verify_suite(options);
  EXPECT_EQ(report.checks.size(), 4U);
  EXPECT_TRUE(report.checks.front().holds());
  EXPECT_EQ(report.status(), ExitStatus::attention);
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
  expect_found(verify::run_items(state, {nothing}), "nothing", Verdict::could_not_run);
  EXPECT_EQ(verify::run_items(state, {}).status(), ExitStatus::verification_failed);
}

TEST(VerifyFault, ANameInTheEnvironmentThatNothingReads) {
  VerifyOptions options = options_for_test();
  options.unknown_variables = {"TOTO_COMPILE_MOD"};
  const FaultyLaboratory harness(options, {});
  expect_found(run(harness, options, "environment"), "names");
}

}  // namespace
}  // namespace toto
