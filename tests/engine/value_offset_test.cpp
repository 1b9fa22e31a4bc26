// SPDX-License-Identifier: Apache-2.0
// Series that are differences from an exact offset: forecasts are differences from it as well, and
// guards are of offset + value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "support/requests.h"
#include "support/small_model.h"
#include "support/test_files.h"
#include "toto/forecast.hpp"
#include "toto/service.hpp"

namespace toto {
namespace {

using test::expect_same;
using test::OwnedSeries;
using test::wave;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

ForecastOptions drawn(std::size_t horizon) {
  ForecastOptions options;
  options.horizon = horizon;
  options.num_samples = 32;
  options.keep_samples = true;
  return options;
}

class ValueOffset : public testing::Test {
 protected:
  Forecast forecast(const OwnedSeries& owned, const ForecastOptions& options,
                    std::span<const double> offsets = {}) {
    Series series = owned.view();
    series.value_offsets = offsets;
    return forecaster_.forecast({&series, 1}, options).front();
  }
  Forecaster forecaster_{test::make_model(test::spec_config())};
};

TEST_F(ValueOffset, ChangesNoBitAndIsRecorded) {
  const OwnedSeries series = wave(3, 80, 2);
  const std::vector<double> offsets = {1e7, -1e12};
  for (const double clamp : {0.0, 0.25, 4.0}) {
    ForecastOptions options = drawn(40);
    options.guards.clamp = clamp;
    const Forecast plain = forecast(series, options);
    const Forecast found = forecast(series, options, offsets);
    expect_same(found, plain);
    EXPECT_EQ(found.samples, plain.samples);
    EXPECT_EQ(found.applied.clamped, plain.applied.clamped);
    EXPECT_THAT(found.applied.value_offset, ElementsAre(1e7, -1e12));
    EXPECT_THAT(plain.applied.value_offset, IsEmpty());
  }
}

TEST_F(ValueOffset, BoundsAreOfTheSum) {
  const OwnedSeries series = wave(5, 80);
  const std::vector<double> offsets = {1e9};
  ForecastOptions plain = drawn(20);
  plain.guards.min = 0.1;
  plain.guards.max = 51;
  ForecastOptions shifted = drawn(20);
  shifted.guards.min = 1e9 + 0.125;
  shifted.guards.max = 1e9 + 51;
  const Forecast found = forecast(series, shifted, offsets);
  EXPECT_GT(found.applied.bounded, 0U) << "the case shows nothing";
  for (const auto* all : {&found.mean, &found.median, &found.quantiles, &found.samples}) {
    for (const float x : *all) {
      EXPECT_GE(1e9 + double{x}, shifted.guards.min);
      EXPECT_LE(1e9 + double{x}, shifted.guards.max);
    }
  }
  plain.guards.min = 0.125;
  expect_same(found, forecast(series, plain));
}

TEST_F(ValueOffset, WholeNumbersAreOfTheSum) {
  const OwnedSeries series = wave(5, 80);
  ForecastOptions options = drawn(20);
  options.guards.integer = true;
  const std::vector<double> offsets = {1e9 + 0.25};
  const Forecast found = forecast(series, options, offsets);
  for (const auto* all : {&found.median, &found.quantiles, &found.samples}) {
    for (const float x : *all) {
      const double sum = offsets[0] + double{x};
      EXPECT_EQ(sum, std::nearbyint(sum));
    }
  }
}

// The range of a value that never changes is its size, which is that of the sum.
TEST_F(ValueOffset, TheRangeOfAConstantIsThatOfTheSum) {
  OwnedSeries series = wave(1, 64);
  std::ranges::fill(series.values, 2.0F);
  OwnedSeries high = series;
  std::ranges::fill(high.values, 10.0F);
  const std::vector<double> offsets = {8};
  ForecastOptions options = drawn(30);
  options.guards.clamp = 0.001;
  const Forecast found = forecast(series, options, offsets);
  const auto [low, most] =
      std::ranges::minmax(std::span(found.samples).subspan(0, found.samples.size()));
  EXPECT_GE(most - low, 0);
  for (std::size_t n = 0; n < found.num_samples; ++n) {
    for (std::size_t t = found.exact_steps; t < 30; ++t) {
      EXPECT_NEAR(found.samples[n * 30 + t], 2, 0.0100001);
    }
  }
  EXPECT_GT(found.applied.clamped, 0U) << "the case shows nothing";
}

TEST_F(ValueOffset, AcrossAMissingEnd) {
  OwnedSeries series = wave(2, 60);
  series.mask.assign(60, 1);
  std::fill(series.mask.end() - 5, series.mask.end(), std::uint8_t{0});
  const std::vector<double> offsets = {1e8};
  const Forecast found = forecast(series, drawn(12), offsets);
  expect_same(found, forecast(series, drawn(12)));
  EXPECT_EQ(found.applied.missing_end, 5U);
  EXPECT_THAT(found.applied.value_offset, ElementsAre(1e8));
}

TEST_F(ValueOffset, OthersThanOneForEachVariateAreRefused) {
  const OwnedSeries series = wave(2, 60, 2);
  const std::vector<double> one = {1e8};
  const std::vector<double> odd = {1e8, std::nan("")};
  EXPECT_EQ(test::error_of([&] { (void)forecast(series, drawn(4), one); }).code(),
            "invalid_series");
  EXPECT_EQ(test::error_of([&] { (void)forecast(series, drawn(4), odd); }).code(), "not_finite");
}

TEST_F(ValueOffset, TheServiceCopiesThem) {
  const OwnedSeries owned = wave(3, 80);
  const Forecast plain = forecast(owned, drawn(12));
  Service service(test::make_model(test::spec_config()));
  Request request;
  request.series = owned.view();
  request.options = drawn(12);
  std::vector<double> offsets = {1e7};
  request.series.value_offsets = offsets;
  Future future = service.submit(request);
  offsets[0] = 5;
  const Forecast found = future.get();
  EXPECT_EQ(found.quantiles, plain.quantiles);
  EXPECT_THAT(found.applied.value_offset, ElementsAre(1e7));
}

}  // namespace
}  // namespace toto
