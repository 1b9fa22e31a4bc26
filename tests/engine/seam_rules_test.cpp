// SPDX-License-Identifier: Apache-2.0
// The rules of backend/backend.h on every backend: operations allocate nothing, keep no state, and
// a row's bits do not depend on the rows beside it.
#include <gtest/gtest.h>

#include "backend/cuda/runtime/cuda_backend.h"
#include "support/counted_allocations.h"
#include "support/requests.h"

namespace toto {
namespace {

using test::OwnedSeries;
using test::wave;

class SeamRules : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string_view(GetParam()) != "cuda") return;
    if (const std::string why = cuda_unavailable(); !why.empty()) GTEST_SKIP() << why;
  }
  /// Operation by operation: graphs have tests of their own.
  static Model make() {
    LoadOptions load;
    load.backend = GetParam();
    load.mode = Mode::planned;
    load.threads = 2;
    return test::make_model(test::odd_config(), true, {}, 5, load);
  }
};

TEST_P(SeamRules, OperationsAllocateNothing) {
  if (!test::allocations_are_counted()) GTEST_SKIP() << "a sanitizer has the allocator";
  Forecaster forecaster(make());
  ForecastOptions o = test::six_samples();
  o.keep_samples = false;
  std::vector<Forecast> out(3);
  const auto series_of = [](std::size_t steps) {
    return std::vector<OwnedSeries>{wave(0, steps, 2), wave(1, steps / 2), wave(2, steps, 2)};
  };
  const std::vector<OwnedSeries> largest = series_of(64);
  forecaster.forecast(test::views(largest), o, out);
  for (const std::size_t steps : {64U, 9U, 33U, 64U, 50U}) {
    const std::vector<OwnedSeries> owned = series_of(steps);
    const std::vector<Series> series = test::views(owned);
    o.horizon = 1 + steps / 4;
    const std::uint64_t before = test::allocations();
    forecaster.forecast(series, o, out);
    EXPECT_EQ(test::allocations(), before) << steps << " steps";
  }
}

TEST_P(SeamRules, OperationsKeepNoState) {
  const Model model = make();
  const std::vector<OwnedSeries> a = {wave(0, 77, 3), wave(1, 20)};
  const std::vector<OwnedSeries> b = {wave(5, 64), wave(6, 111, 2), wave(7, 5)};
  ForecastOptions of_a = test::six_samples(20), of_b = test::six_samples(9);
  of_b.seed = 4;
  of_b.levels = {0.25};
  Forecaster one(model), other(model);
  const auto first = one.forecast(test::views(a), of_a);
  for (int turn = 0; turn < 3; ++turn) {
    (void)other.forecast(test::views(b), of_b);  // between two of the same model
    const auto again = one.forecast(test::views(a), of_a);
    for (std::size_t i = 0; i < a.size(); ++i) test::expect_same(first[i], again[i]);
  }
}

TEST_P(SeamRules, ARowDoesNotFeelItsNeighbours) {
  const Model model = make();
  const std::vector<OwnedSeries> owned = test::many(12);
  const ForecastOptions o = test::six_samples(12);
  Forecaster forecaster(model);
  const auto all = forecaster.forecast(test::views(owned), o);
  for (const std::size_t i : {0U, 1U, 6U, 11U}) {
    test::expect_same(forecaster.forecast(test::views({owned[i]}), o).front(), all[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SeamRules, testing::Values("cpu", "reference", "cuda"),
                         [](const auto& it) { return std::string(it.param); });

}  // namespace
}  // namespace toto
