// SPDX-License-Identifier: Apache-2.0
// A missing end, the input scale and guards: what a forecast does beside the model's arithmetic.
#include "engine/adapted.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/requests.h"
#include "support/seasonal_series.h"
#include "support/small_model.h"
#include "toto/forecast.hpp"

namespace toto {
namespace {

using test::OwnedSeries;
using test::wave;

Model nano() { return Model::load({.model = test::source_path("models/toto-nano")}); }

OwnedSeries from(std::vector<float> values) {
  OwnedSeries s;
  s.id = "made";
  s.values = std::move(values);
  return s;
}

Forecast forecast(Forecaster& forecaster, const OwnedSeries& owned,
                  const ForecastOptions& options) {
  const Series series = owned.view();
  return forecaster.forecast({&series, 1}, options).front();
}

ForecastOptions drawn(std::size_t horizon, std::size_t samples = 32) {
  ForecastOptions options;
  options.horizon = horizon;
  options.num_samples = samples;
  options.keep_samples = true;
  options.keep_parameters = true;
  return options;
}

std::vector<float> times(const std::vector<float>& values, double factor) {
  std::vector<float> out(values.size());
  std::ranges::transform(values, out.begin(),
                         [&](float x) { return static_cast<float>(x * factor); });
  return out;
}

/// The last `missing` steps are not observed, and hold what the reader would fill in.
void lose_end(OwnedSeries& s, std::size_t missing) {
  s.mask.assign(s.values.size(), 1);
  const std::size_t steps = s.values.size() / s.variates;
  for (std::size_t v = 0; v < s.variates; ++v) {
    const std::size_t end = (v + 1) * steps;
    for (std::size_t t = end - missing; t < end; ++t) {
      s.values[t] = s.values[end - missing - 1];
      s.mask[t] = 0;
    }
  }
}

class AdaptedTest : public testing::Test {
 protected:
  Forecaster forecaster_{test::make_model(test::spec_config())};
};

TEST_F(AdaptedTest, AcrossAMissingEndIsALongerForecastOfAShorterSeries) {
  for (const std::size_t missing : {1UL, 5UL, 8UL, 13UL, 40UL}) {
    OwnedSeries shorter = wave(2, 60, 2);
    OwnedSeries series = wave(2, 60 + missing, 2);
    lose_end(series, missing);
    for (std::size_t v = 0; v < 2; ++v) {
      for (std::size_t t = 0; t < 60; ++t) {
        shorter.values[v * 60 + t] = series.values[v * (60 + missing) + t];
      }
    }
    const ForecastOptions asked = drawn(12);
    const Forecast whole = forecast(forecaster_, shorter, drawn(12 + missing));
    const Forecast found = forecast(forecaster_, series, asked);
    EXPECT_EQ(found.applied.missing_end, missing);
    EXPECT_EQ(found.horizon, 12U);
    EXPECT_EQ(found.exact_steps, whole.exact_steps - std::min(missing, whole.exact_steps));
    ASSERT_EQ(found.mean.size(), 24U);
    const std::size_t longer = whole.horizon;
    for (std::size_t v = 0; v < 2; ++v) {
      for (std::size_t t = 0; t < 12; ++t) {
        const std::size_t at = v * longer + missing + t;
        EXPECT_EQ(found.mean[v * 12 + t], whole.mean[at]);
        EXPECT_EQ(found.median[v * 12 + t], whole.median[at]);
        EXPECT_EQ(found.quantiles[3 * 24 + v * 12 + t], whole.quantiles[3 * 2 * longer + at]);
        EXPECT_EQ(found.samples[5 * 24 + v * 12 + t], whole.samples[5 * 2 * longer + at]);
        EXPECT_EQ(found.parameters.loc[(v * 12 + t) * 3 + 1], whole.parameters.loc[at * 3 + 1]);
      }
    }
    // The same into an array of the caller's.
    ForecastOptions plain = asked;
    plain.keep_samples = plain.keep_parameters = false;
    std::vector<float> array(array_size(2, plain));
    const Series view = series.view();
    forecaster_.forecast({&view, 1}, plain, array);
    EXPECT_EQ(array[3], found.mean[3]);
    EXPECT_EQ(array[statistic_rows(plain) * 12 + 12 + 4], found.median[12 + 4]);
    EXPECT_EQ(array.back(), found.quantiles.back());
  }
}

TEST_F(AdaptedTest, AMissingEndOfOneVariateAloneIsLeftToTheModel) {
  OwnedSeries series = wave(1, 50, 2);
  series.mask.assign(100, 1);
  for (std::size_t t = 45; t < 50; ++t) series.mask[t] = 0;
  EXPECT_EQ(missing_end(series.view()), 0U);
  for (std::size_t t = 97; t < 100; ++t) series.mask[t] = 0;
  EXPECT_EQ(missing_end(series.view()), 3U);
  EXPECT_EQ(forecast(forecaster_, series, drawn(4)).applied.missing_end, 3U);
  ForecastOptions as_it_is = drawn(4);
  as_it_is.across_missing = false;
  EXPECT_EQ(forecast(forecaster_, series, as_it_is).applied.missing_end, 0U);
}

TEST_F(AdaptedTest, WhatIsKnownOfCovariatesGoesOnAcrossTheGap) {
  constexpr std::size_t kSteps = 48, kMissing = 5, kHorizon = 10, kHole = 20;
  OwnedSeries whole = wave(4, kSteps + kMissing, 2);
  whole.exogenous = 1;
  whole.mask.assign(whole.values.size(), 1);
  // The last patch of a covariate in the model's form is masked.
  const std::size_t end = whole.values.size();
  std::fill(whole.mask.end() - 8, whole.mask.end(), std::uint8_t{0});
  whole.mask[kSteps + kMissing + kHole] = 0;
  for (std::size_t t = kSteps; t < kSteps + kMissing; ++t) whole.mask[t] = 0;
  for (std::size_t t = 0; t < kHorizon; ++t) whole.future.push_back(0.25F * static_cast<float>(t));

  OwnedSeries shorter = whole;
  shorter.values.clear();
  shorter.mask.clear();
  for (std::size_t v = 0; v < 2; ++v) {
    const auto begin = whole.values.begin() + static_cast<std::ptrdiff_t>(v * (kSteps + kMissing));
    shorter.values.insert(shorter.values.end(), begin, begin + kSteps);
  }
  shorter.mask.assign(2 * kSteps, 1);
  std::fill(shorter.mask.end() - 8, shorter.mask.end(), std::uint8_t{0});
  shorter.mask[kSteps + kHole] = 0;
  shorter.future.assign(whole.values.begin() + static_cast<std::ptrdiff_t>(end - kMissing),
                        whole.values.end());
  shorter.future.insert(shorter.future.end(), whole.future.begin(), whole.future.end());

  ForecastOptions options = drawn(kHorizon);
  options.guards.clamp = 0;
  ForecastOptions longer = drawn(kHorizon + kMissing);
  longer.guards.clamp = 0;
  const Forecast found = forecast(forecaster_, whole, options);
  const Forecast expected = forecast(forecaster_, shorter, longer);
  for (std::size_t t = 0; t < kHorizon; ++t) {
    EXPECT_EQ(found.mean[t], expected.mean[kMissing + t]);
    EXPECT_EQ(found.mean[kHorizon + t], whole.future[t]);
  }
}

TEST_F(AdaptedTest, AnEndOfMoreStepsThanCanBeForecastIsRefused) {
  OwnedSeries series = wave(0, 100'100);
  lose_end(series, 100'000);
  try {
    (void)forecast(forecaster_, series, drawn(1));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "missing_end_too_long");
    EXPECT_EQ(error.status(), ExitStatus::bad_data);
  }
}

/// Statistics and samples of a, times 2^k, are those of b.
void expect_times(const Forecast& a, int k, const Forecast& b) {
  const double factor = std::ldexp(1.0, k);
  EXPECT_EQ(test::bits_of(times(a.mean, factor)), test::bits_of(b.mean)) << k;
  EXPECT_EQ(test::bits_of(times(a.median, factor)), test::bits_of(b.median)) << k;
  EXPECT_EQ(test::bits_of(times(a.std, factor)), test::bits_of(b.std)) << k;
  EXPECT_EQ(test::bits_of(times(a.quantiles, factor)), test::bits_of(b.quantiles)) << k;
  EXPECT_EQ(test::bits_of(times(a.samples, factor)), test::bits_of(b.samples)) << k;
}

TEST(InputScale, PowersOfTwoChangeNoBit) {
  Forecaster forecaster(nano());
  for (std::size_t which = 0; which < 3; ++which) {
    const std::vector<float> values = test::seasonal_series(which, 300);
    const Forecast plain = forecast(forecaster, from(values), drawn(48, 16));
    for (int k = -40; k <= 40; ++k) {
      const OwnedSeries scaled = from(times(values, std::ldexp(1.0, k)));
      const Forecast found = forecast(forecaster, scaled, drawn(48, 16));
      expect_times(plain, k, found);
      EXPECT_EQ(found.applied.input_scale[0], std::ldexp(plain.applied.input_scale[0], -k));
    }
  }
}

TEST(InputScale, OtherFactorsChangeNoBandByTenPercent) {
  Forecaster forecaster(nano());
  ForecastOptions options = drawn(32, 16);  // one patch: nothing is drawn
  options.levels = {0.1, 0.9};
  for (std::size_t which = 0; which < test::kSeasonalSeries; ++which) {
    const std::vector<float> values = test::seasonal_series(which, 512);
    const Forecast plain = forecast(forecaster, from(values), options);
    for (const double factor : {1e-9, 1e-3, 0.01, 0.3, 1.5, 7.0, 1e3, 1e7}) {
      const Forecast found = forecast(forecaster, from(times(values, factor)), options);
      for (std::size_t t = 0; t < 32; ++t) {
        const double width = (plain.quantiles[32 + t] - plain.quantiles[t]) * factor;
        EXPECT_NEAR((found.quantiles[32 + t] - found.quantiles[t]) / width, 1, 0.1)
            << "series " << which << ", times " << factor << ", step " << t;
      }
    }
  }
}

TEST(InputScale, VariatesHaveScalesOfTheirOwn) {
  Forecaster forecaster(nano());
  OwnedSeries series = from(test::seasonal_series(0, 200));
  series.variates = 2;
  const std::vector<float> other = times(test::seasonal_series(1, 200), 1e-5);
  series.values.insert(series.values.end(), other.begin(), other.end());
  const Forecast found = forecast(forecaster, series, drawn(8));
  ASSERT_EQ(found.applied.input_scale.size(), 2U);
  EXPECT_LT(found.applied.input_scale[0], 2);
  EXPECT_GT(found.applied.input_scale[1], 1e5);
}

TEST(InputScale, OneIsTheReference) {
  Forecaster forecaster(nano());
  const std::vector<float> values = times(test::seasonal_series(1, 300), 1e-5);
  ForecastOptions one = drawn(40, 16);
  one.input_scale = 1;
  one.guards.clamp = 0;
  one.paths = Paths::independent;  // the model names others
  ForecastOptions reference = drawn(40, 16);
  as_reference(reference);
  const Forecast a = forecast(forecaster, from(values), one);
  const Forecast b = forecast(forecaster, from(values), reference);
  EXPECT_EQ(a.quantiles, b.quantiles);
  EXPECT_EQ(a.applied.input_scale, std::vector<double>{1.0});
  // The floor of the scaler bites here, so the automatic scale says something else.
  const Forecast automatic = forecast(forecaster, from(values), drawn(40, 16));
  const auto width = [](const Forecast& f) { return f.quantiles[8 * 40] - f.quantiles[0]; };
  EXPECT_GT(std::abs(std::log(width(automatic) / width(a))), 0.2);
}

TEST(InputScale, NothingToGoByIsLeftAsItIs) {
  Forecaster forecaster(nano());
  const Forecast zeros = forecast(forecaster, from(std::vector<float>(100, 0.0F)), drawn(40));
  EXPECT_EQ(zeros.applied.input_scale, std::vector<double>{1.0});
  const Forecast same = forecast(forecaster, from(std::vector<float>(100, 3e-7F)), drawn(40));
  EXPECT_GT(same.applied.input_scale[0], 1e7);
  for (const float x : same.quantiles) EXPECT_NEAR(x, 3e-7F, 1e-8F);
}

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

/// From the smallest numbers of float32 to large ones, the largest times `size`.
std::vector<float> of_all_sizes(double size) {
  std::vector<float> all;
  for (int e = -149; e < 120; e += 3) {
    for (const double digits : {1.0, -1.37, 1.9999}) {
      all.push_back(static_cast<float>(std::ldexp(digits, e) * size));
    }
  }
  return all;
}

// Whatever is done in float32 for speed: values are multiplied, and results divided, in double and
// rounded once.
TEST(InputScale, ProductsAndQuotientsAreRoundedOnce) {
  const auto backend = make_backend({});
  for (const double scale :
       {0.0, 1.0, 0.5, std::ldexp(1.0, 99), std::ldexp(1.0, -99), 3.0, 1e-30}) {
    for (const double size : {1.0, std::ldexp(1.0, -25), std::ldexp(1.0, -128)}) {
      SCOPED_TRACE(testing::Message() << scale << ", " << size);
      const OwnedSeries owned = from(of_all_sizes(size));
      const Series series = owned.view();
      ForecastOptions options;
      options.input_scale = scale;
      options.horizon = owned.values.size();
      options.levels = {0.5};
      const std::vector<float> results = of_all_sizes(std::ldexp(1.0, -10));
      Forecast out;
      out.id = "made";
      out.variates = 1;
      out.horizon = out.exact_steps = results.size();
      out.levels = options.levels;
      out.mean = out.median = out.std = out.quantiles = results;
      const ForecastJob job{&series, &options, &out};
      AdaptedJobs jobs;
      const Series seen = *jobs.start(*backend, {&job, 1}).front().series;
      std::vector<float> fed(seen.values.begin(), seen.values.end());
      bool fits = true;
      try {
        jobs.finish(0);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), "nonfinite_forecast");
        fits = false;
      }
      ASSERT_EQ(out.applied.input_scale.size(), 1U);
      const double factor = out.applied.input_scale[0];
      constexpr double kMost = std::numeric_limits<float>::max();
      for (std::size_t t = 0; t < fed.size(); ++t) {
        const double product = std::clamp(owned.values[t] * factor, -kMost, kMost);
        ASSERT_EQ(bits(fed[t]), bits(static_cast<float>(product))) << t;
      }
      bool finite = true;
      for (std::size_t t = 0; t < results.size(); ++t) {
        const auto quotient = static_cast<float>(results[t] / factor);
        finite = finite && std::isfinite(quotient);
        ASSERT_EQ(bits(out.mean[t]), bits(quotient)) << t;
        ASSERT_EQ(bits(out.median[t]), bits(quotient)) << t;
        ASSERT_EQ(bits(out.quantiles[t]), bits(quotient)) << t;
        ASSERT_EQ(bits(out.std[t]), bits(quotient)) << t;
      }
      EXPECT_EQ(fits, finite);
    }
  }
}

// The sums of a scale are taken in one order, so that its bits are those of any build.
TEST(InputScale, IsThePowerOfTwoOfTheObservedSpread) {
  const auto backend = make_backend({});
  for (const std::size_t steps : {1U, 7U, 8U, 9U, 64U, 300U}) {
    for (const bool gaps : {false, true}) {
      OwnedSeries owned = wave(steps, steps);
      if (gaps) owned.mask.assign(steps, 1);
      double low = 1e9, high = -1e9, sum = 0, squares = 0, count = 0;
      for (std::size_t t = 0; t < steps; ++t) {
        if (gaps && t % 5 == 3) {
          owned.mask[t] = 0;
          owned.values[t] = 1e30F;
          continue;
        }
        const double x = owned.values[t];
        low = std::min(low, x);
        high = std::max(high, x);
        sum += x;
        count += 1;
      }
      for (std::size_t t = 0; t < steps; ++t) {
        if (gaps && owned.mask[t] == 0) continue;
        squares += (owned.values[t] - sum / count) * (owned.values[t] - sum / count);
      }
      const double size = low == high ? std::abs(low) : std::sqrt(squares / count);
      const Series series = owned.view();
      ForecastOptions options;
      Forecast out;
      const ForecastJob job{&series, &options, &out};
      AdaptedJobs jobs;
      (void)jobs.start(*backend, {&job, 1});
      jobs.finish(0);
      EXPECT_EQ(out.applied.input_scale.front(), std::ldexp(1.0, 6 - std::ilogb(size)))
          << steps << (gaps ? " with gaps" : "");
    }
  }
}

TEST_F(AdaptedTest, ScalesAndGuardsThatCannotBeAreRefused) {
  const auto code = [&](const ForecastOptions& options) {
    try {
      (void)forecast(forecaster_, wave(0, 40), options);
    } catch (const Error& error) {
      return std::string(error.code());
    }
    return std::string();
  };
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  for (const double scale : {-1.0, 5e-324, 1e31, kNaN}) {
    ForecastOptions options = drawn(4);
    options.input_scale = scale;
    EXPECT_EQ(code(options), "invalid_input_scale") << scale;
  }
  ForecastOptions options = drawn(4);
  options.guards.clamp = kNaN;
  EXPECT_EQ(code(options), "invalid_guard");
  options = drawn(4);
  options.guards.min = 2;
  options.guards.max = 1;
  EXPECT_EQ(code(options), "invalid_guard");
}

TEST_F(AdaptedTest, ClampMovesSampledStepsAlone) {
  const OwnedSeries series = wave(5, 80);
  const auto [low, high] = std::ranges::minmax(series.values);
  ForecastOptions free = drawn(64, 64);
  free.guards.clamp = 0;
  ForecastOptions tight = free;
  tight.guards.clamp = 0.125;
  const Forecast was = forecast(forecaster_, series, free);
  const Forecast found = forecast(forecaster_, series, tight);
  const double room = 0.125 * (double{high} - low);
  const float edge = static_cast<float>(high + room);
  EXPECT_EQ(was.applied.clamped, 0U);
  EXPECT_GT(found.applied.clamped, 0U) << "the case shows nothing";
  std::size_t moved = 0;
  for (std::size_t level = 0; level < found.levels.size(); ++level) {
    for (std::size_t t = 0; t < 64; ++t) {
      const float before = was.quantiles[level * 64 + t];
      const float after = found.quantiles[level * 64 + t];
      if (t < found.exact_steps) {
        EXPECT_EQ(before, after);
        continue;
      }
      EXPECT_LE(after, edge);
      EXPECT_GE(after, low - room);
      const bool inside = before <= high + room && before >= low - room;
      EXPECT_TRUE(!inside || before == after);
      moved += inside ? 0 : 1;
    }
  }
  EXPECT_GT(moved, 0U);
  for (std::size_t n = 0; n < found.num_samples; ++n) {
    for (std::size_t t = found.exact_steps; t < 64; ++t) EXPECT_LE(found.samples[n * 64 + t], edge);
  }
}

TEST_F(AdaptedTest, BoundsAndWholeNumbersHoldAtEveryStep) {
  const OwnedSeries series = wave(5, 80);
  ForecastOptions options = drawn(20, 16);
  options.guards.min = 0.1;  // no float
  options.guards.max = 51;
  const Forecast found = forecast(forecaster_, series, options);
  EXPECT_GT(found.applied.bounded, 0U) << "the case shows nothing";
  for (const auto* all : {&found.mean, &found.median, &found.quantiles, &found.samples}) {
    for (const float x : *all) {
      EXPECT_GE(double{x}, 0.1);
      EXPECT_LE(x, 51);
    }
  }
  options = drawn(20, 16);
  options.guards.integer = true;
  const Forecast whole = forecast(forecaster_, series, options);
  std::size_t broken = 0;
  for (const auto* all : {&whole.median, &whole.quantiles, &whole.samples}) {
    for (const float x : *all) EXPECT_EQ(x, std::nearbyint(x));
  }
  for (const float x : whole.mean) broken += x == std::nearbyint(x) ? 0 : 1;
  EXPECT_GT(broken, 0U);
}

TEST(MissingEnd, IntervalsHoldAndErrorsStayWithinTwiceThatOfNone) {
  constexpr std::size_t kContext = 4096, kHorizon = 60, kWindows = 3, kApart = 131;
  Forecaster forecaster(nano());
  ForecastOptions options;
  options.horizon = kHorizon;
  options.num_samples = 64;
  options.levels = {0.1, 0.9};
  double none = 0;
  for (const std::size_t missing : {0UL, 32UL, 120UL, 600UL}) {
    double covered = 0, error = 0;
    for (std::size_t which = 0; which < test::kSeasonalSeries; ++which) {
      const std::vector<float> all =
          test::seasonal_series(which, kContext + kWindows * kApart + kHorizon);
      double change = 0;  // from step to step a week apart: the unit of the errors
      const std::size_t week = 7 * test::steps_of_day(which);
      for (std::size_t t = week; t < kContext; ++t) change += std::abs(all[t] - all[t - week]);
      change /= static_cast<double>(kContext - week);
      for (std::size_t window = 0; window < kWindows; ++window) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(window * kApart);
        OwnedSeries series = from({begin, begin + kContext});
        lose_end(series, missing);
        const Forecast found = forecast(forecaster, series, options);
        for (std::size_t t = 0; t < kHorizon; ++t) {
          const float actual = begin[static_cast<std::ptrdiff_t>(kContext + t)];
          const bool inside =
              actual >= found.quantiles[t] && actual <= found.quantiles[kHorizon + t];
          covered += inside ? 1 : 0;
          error += std::abs(actual - found.median[t]) / change;
        }
      }
    }
    const double cells = test::kSeasonalSeries * kWindows * kHorizon;
    covered /= cells;
    error /= cells;
    if (missing == 0) none = error;
    RecordProperty("coverage_" + std::to_string(missing), std::to_string(covered));
    RecordProperty("error_" + std::to_string(missing), std::to_string(error));
    EXPECT_GE(covered, 0.65) << missing;
    EXPECT_LE(covered, 0.95) << missing;
    EXPECT_LE(error, 2 * none) << missing;
  }
}

}  // namespace
}  // namespace toto
