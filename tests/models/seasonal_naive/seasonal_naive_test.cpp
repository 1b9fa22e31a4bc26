// SPDX-License-Identifier: Apache-2.0
// A family of models that nothing in src knows of, added by its own folder and one registration:
// it loads from disk, forecasts, backtests, verifies and serves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/registry.h"
#include "seasonal_naive/family.h"
#include "support/small_model.h"
#include "support/test_files.h"
#include "tools/backtest/run_fixture.h"
#include "tools/verify/groups.h"
#include "toto/service.hpp"
#include "toto/tools/verify.hpp"

namespace toto {
namespace {

constexpr std::size_t kSeason = 5;
const char* const kConfig = R"({"patch_size": 8, "season": 5})";

/// A folder with config.json and model.safetensors; the spread is 0.5.
class SeasonalNaive : public backtest::Run {
 protected:
  static void SetUpTestSuite() { register_family(test::seasonal_naive_family()); }
  void SetUp() override {
    backtest::Run::SetUp();
    write_synthetic_checkpoint(kConfig, 1, path("model"));
  }
  [[nodiscard]] Model model(const LoadOptions& options = {}) const {
    return Model::load({.model = path("model")}, options);
  }
};

void expect_naive(const Forecast& f, const test::OwnedSeries& from) {
  const std::size_t steps = from.values.size() / from.variates;
  for (std::size_t v = 0; v < f.variates; ++v) {
    for (std::size_t t = 0; t < f.horizon; ++t) {
      const std::size_t cell = v * f.horizon + t;
      const float wanted = from.values[(v + 1) * steps - kSeason + t % kSeason];
      EXPECT_FLOAT_EQ(f.median[cell], wanted) << v << ", " << t;
      EXPECT_FLOAT_EQ(f.quantiles[cell], wanted - 2);  // four spreads below
    }
  }
}

TEST_F(SeasonalNaive, IsDescribed) {
  const ModelInfo info = inspect_model({.model = path("model")});
  EXPECT_EQ(info.architecture, "seasonal-naive");
  EXPECT_EQ(info.patch_size, 8);
  EXPECT_EQ(info.parameters, 1U);
  EXPECT_TRUE(info.synthetic);
  EXPECT_EQ(Model::synthesise("seasonal-naive-24", 0).info().architecture, "seasonal-naive");
}

TEST_F(SeasonalNaive, OthersAreWhatTheyWere) {
  EXPECT_EQ(inspect_model({.model = toto::test::golden("toto1-tiny-a")}).architecture, "toto-1.0");
  EXPECT_EQ(inspect_model({.model = toto::test::golden("toto2-tiny-uni")}).architecture,
            "toto-2.0");
}

TEST_F(SeasonalNaive, MalformedCheckpointsAreRefused) {
  const auto code_of = [&](const std::string& config) {
    write("model/config.json", config);
    return test::error_of([&] { (void)model(); }).code();
  };
  EXPECT_EQ(code_of(R"({"season": 5})"), "missing_key");
  EXPECT_EQ(code_of(R"({"season": 0, "patch_size": 8})"), "invalid_value");
  // The tensors are those of another family.
  write("model/config.json", kConfig);
  std::filesystem::copy_file(test::golden("toto1-tiny-a/model.safetensors"),
                             path("model/model.safetensors"),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(test::error_of([&] { (void)model(); }).code(), "missing_tensor");
}

TEST_F(SeasonalNaive, DrawsNoCoherentPaths) {
  const test::OwnedSeries owned = test::wave(0, 60);
  const Series series = owned.view();
  ForecastOptions options;
  options.horizon = 8;
  options.keep_samples = true;
  options.paths = Paths::coherent;
  Forecaster forecaster(model());
  const Error refused = test::error_of([&] { (void)forecaster.forecast({&series, 1}, options); });
  EXPECT_EQ(refused.code(), "unsupported_paths");
  EXPECT_EQ(refused.status(), ExitStatus::usage);
}

TEST_F(SeasonalNaive, Forecasts) {
  for (const Mode mode : {Mode::eager, Mode::planned, Mode::reduce_overhead}) {
    LoadOptions load;
    load.mode = mode;
    Forecaster forecaster(model(load));
    const test::OwnedSeries one = test::wave(0, 43, 2);
    const test::OwnedSeries other = test::wave(1, 70);
    ForecastOptions options;
    options.horizon = 21;
    options.num_samples = 7;
    options.keep_samples = true;
    as_reference(options);  // its spread is in units of the series
    const std::vector<Series> series = {one.view(), other.view()};
    const std::vector<Forecast> found = forecaster.forecast(series, options);
    expect_naive(found[0], one);
    expect_naive(found[1], other);
    EXPECT_EQ(found[0].exact_steps, 21U);
    EXPECT_EQ(found[0].samples.size(), 7U * 2U * 21U);
  }
}

TEST_F(SeasonalNaive, Serves) {
  Service service(model());
  std::vector<test::OwnedSeries> owned;
  for (std::size_t i = 0; i < 20; ++i) owned.push_back(test::wave(i, 30 + i, 1 + i % 3));
  std::vector<Future> futures;
  for (std::size_t i = 0; i < owned.size(); ++i) {
    Request request;
    request.series = owned[i].view();
    request.options.horizon = 3 + i;
    as_reference(request.options);
    futures.push_back(service.submit(request));
  }
  for (std::size_t i = 0; i < owned.size(); ++i) expect_naive(futures[i].get(), owned[i]);
}

TEST_F(SeasonalNaive, BacktestsAsTheBaselineOfThatName) {
  backtest::Options options = small();
  options.season = kSeason;
  Forecaster forecaster(model());
  const backtest::Result result =
      backtest::run(backtest::test::market_of({write("AA.csv", backtest::test::bars(90, 0))}),
                    forecaster, options);
  ASSERT_FALSE(result.cells.empty());
  constexpr auto kNaive = static_cast<std::size_t>(backtest::Source::seasonal_naive) - 1;
  for (const backtest::Cell& cell : result.cells) {
    EXPECT_NEAR(cell.model.point, cell.baseline[kNaive], 1e-5 * std::abs(cell.model.point));
  }
}

/// Every group of checks; those of performance say no more than that they ran.
TEST_F(SeasonalNaive, Verifies) {
  VerifyOptions options;
  options.query.model = path("model");
  options.load.threads = 2;
  const verify::Harness harness(options);
  verify::SuiteState state(options, harness);
  std::vector<verify::Item> items = verify::items_of(state);
  std::erase_if(items, [](const verify::Item& item) {
    return item.group != "correctness" && item.group != "determinism" && item.group != "accuracy";
  });
  const VerifyReport report = verify::run_items(state, items);
  EXPECT_GT(report.checks.size(), 30U);
  for (const Check& c : report.checks) {
    if (c.name.find("process") != std::string::npos) continue;  // which nobody starts here
    EXPECT_TRUE(c.holds()) << c.group << ": " << c.name << ": " << c.value << " > " << c.bound
                           << " " << c.why;
  }
}

TEST_F(SeasonalNaive, HasNoGoldenFolders) {
  std::filesystem::copy_file(test::golden("toto1-tiny-a/inputs.safetensors"),
                             path("model/inputs.safetensors"));
  std::filesystem::copy_file(test::golden("toto1-tiny-a/expected.safetensors"),
                             path("model/expected.safetensors"));
  const std::string folder = path("model");
  EXPECT_EQ(test::error_of([&] {
              (void)verify_golden({&folder, 1}, {});
            }).code(),
            "invalid_golden");
}

TEST_F(SeasonalNaive, ANameIsTakenOnce) {
  EXPECT_EQ(test::error_of([] { register_family(test::seasonal_naive_family()); }).code(),
            "internal");
}

}  // namespace
}  // namespace toto
