// SPDX-License-Identifier: Apache-2.0
// From records of steps to rows of statistics: every number where it belongs, whatever is selected.
#include "engine/forecast_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/requests.h"

namespace toto {
namespace {

using test::bits_of;

constexpr std::size_t kVariates = 2;
constexpr std::size_t kHorizon = 11;
constexpr std::size_t kExact = 8;    // the first patch of the model
constexpr std::size_t kRoom = 16;    // steps that results have room for: more than were asked for
constexpr std::size_t kStride = 10;  // likewise of levels

/// Records whose quantiles mostly ascend, and some are no numbers.
std::vector<float> records(std::size_t steps, float first) {
  std::vector<float> all(kVariates * steps * kStride);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t of = i % kStride;
    all[i] = first + static_cast<float>(i / kStride) + 0.1F * static_cast<float>(of);
    if (of == 1 && i / kStride % 4 == 0) all[i] = std::numeric_limits<float>::quiet_NaN();
    if (of > 3 && i / kStride % 3 == 0) all[i] -= 0.15F;  // below the level before
  }
  return all;
}

class Rows : public testing::Test {
 protected:
  /// What the writer makes of the records, and that it is what they say.
  void expect_rows(const ForecastOptions& options, std::size_t array_rows = 0) {
    const test::OwnedSeries owned = test::wave(0, 30, kVariates);
    const Series series = owned.view();
    Forecast out;
    std::vector<float> array(array_rows * kVariates * kHorizon, -1.0F);
    const ForecastJob job{&series, &options, &out, array};
    ForecastWriter writer(*model_.impl().net, {});
    std::vector<SeriesRequest> requests;
    writer.start({&job, 1}, nullptr, requests);
    writer.expect(0);
    SeriesResults r;
    r.stride = kStride;
    r.exact_steps = kExact;
    r.horizon = kRoom;
    r.exact = exact_;
    r.sampled = sampled_;
    writer.results(r);

    std::vector<double> wide(requests[0].levels.begin(), requests[0].levels.end());
    const StatisticsTarget to = ForecastWriter::target_of(job);
    for (std::size_t v = 0; v < kVariates; ++v) {
      for (std::size_t t = 0; t < kHorizon; ++t) {
        SCOPED_TRACE(testing::Message() << "variate " << v << ", step " << t);
        const bool exact = t < kExact;
        const std::size_t row = exact ? v * kExact + t : v * (kRoom - kExact) + t - kExact;
        const float* const record = (exact ? exact_ : sampled_).data() + row * kStride;
        const std::size_t cell = v * to.variate + t;
        if (to.mean != nullptr) expect_bits(to.mean[cell], record[0]);
        if (to.std != nullptr) expect_bits(to.std[cell], record[1]);
        float value = record[2];
        std::size_t level = 0;
        for (std::size_t i = 0; i < wide.size(); ++i) {
          if (!exact || !(record[2 + i] < value)) value = record[2 + i];
          if (options.select.median && wide[i] == 0.5) expect_bits(to.median[cell], value);
          if (level == out.levels.size() || out.levels[level] != wide[i]) continue;
          expect_bits(to.quantiles[level++ * to.level + cell], value);
        }
        EXPECT_EQ(level, out.levels.size());
      }
    }
  }
  static void expect_bits(float found, float expected) {
    EXPECT_EQ(bits_of({found}), bits_of({expected}));
  }
  static ForecastOptions asked(std::vector<double> levels) {
    ForecastOptions o;
    o.horizon = kHorizon;
    o.levels = std::move(levels);
    return o;
  }

  Model model_ = test::make_model(test::spec_config());
  std::vector<float> exact_ = records(kExact, 5);
  std::vector<float> sampled_ = records(kRoom - kExact, 100);
};

TEST_F(Rows, TheMedianIsOneOfTheLevels) { expect_rows(asked({0.9, 0.1, 0.5, 0.3})); }

TEST_F(Rows, TheMedianIsBesideTheLevels) {
  expect_rows(asked({0.9, 0.1, 0.3}));
  expect_rows(asked({0.7, 0.8}));
  expect_rows(asked({0.2, 0.1}));
}

TEST_F(Rows, NoLevelsAreTheMedianAlone) { expect_rows(asked({})); }

TEST_F(Rows, WhatIsNotSelectedIsNotThere) {
  ForecastOptions o = asked({0.25, 0.5, 0.75});
  o.select = {.mean = false, .median = false, .std = true};
  expect_rows(o);
  o.select = {.mean = true, .median = true, .std = false};
  expect_rows(o);
  o.levels = {0.25};
  o.select = {.mean = false, .median = false, .std = false};
  expect_rows(o);
}

TEST_F(Rows, AnArrayHasTheSameRows) {
  expect_rows(asked({0.1, 0.9}), 5);
  ForecastOptions o = asked({0.1, 0.5, 0.9});
  expect_rows(o, 6);
  o.select.std = false;
  expect_rows(o, 5);
}

// Memory that is used again holds an earlier forecast.
TEST_F(Rows, NothingOfAnEarlierForecastIsLeft) {
  const auto run = [&](std::size_t seed, Forecast& out) {
    const test::OwnedSeries owned = test::wave(seed, 40, kVariates);
    const Series series = owned.view();
    ForecastOptions o = asked({0.3, 0.6});
    o.keep_samples = true;
    o.num_samples = 4;
    Forecaster(model_).forecast({&series, 1}, o, {&out, 1});
  };
  Forecast fresh, used;
  run(1, used);
  run(2, used);
  run(2, fresh);
  test::expect_same(used, fresh);
  EXPECT_EQ(used.median, fresh.median);
}

}  // namespace
}  // namespace toto
