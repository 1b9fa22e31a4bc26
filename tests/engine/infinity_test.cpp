// SPDX-License-Identifier: Apache-2.0
// Infinities are refused, also where other variates are scaled: scaling must not turn one into the
// largest number of float32.
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "support/requests.h"
#include "support/small_model.h"
#include "support/test_files.h"
#include "toto/forecast.hpp"

namespace toto {
namespace {

using test::OwnedSeries;
using test::wave;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// By the scale of the input; 0: of each variate by its spread.
class Infinity : public testing::TestWithParam<double> {
 protected:
  void forecast(const OwnedSeries& owned) {
    ForecastOptions options = test::six_samples(3);
    options.input_scale = GetParam();
    const Series series = owned.view();
    (void)forecaster_.forecast({&series, 1}, options);
  }
  std::string code_of(const OwnedSeries& owned) {
    return test::error_of([&] { forecast(owned); }).code();
  }

  Forecaster forecaster_{test::make_model(test::spec_config())};
};

TEST_P(Infinity, OfOneOfSeveralVariatesIsRefused) {
  for (const std::size_t v : {0, 1}) {
    for (const float value : {kInfinity, -kInfinity}) {
      OwnedSeries s = wave(1, 96, 2);
      s.values[v * 96 + 40] = value;
      EXPECT_EQ(code_of(s), "not_finite") << "variate " << v;
    }
  }
}

TEST_P(Infinity, OfAKnownCovariateIsRefused) {
  OwnedSeries s = wave(1, 96, 2);
  s.exogenous = 1;
  s.future = {0, kInfinity, 0};
  EXPECT_EQ(code_of(s), "not_finite");
  s.future = {0, std::numeric_limits<float>::max(), 0};
  EXPECT_NO_THROW(forecast(s));
}

INSTANTIATE_TEST_SUITE_P(Scales, Infinity, testing::Values(0.0, 1.0, 3.0));

}  // namespace
}  // namespace toto
