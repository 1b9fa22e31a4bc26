// SPDX-License-Identifier: Apache-2.0
// Effects of covariates: found where they are, not where there is none, and put back as they were.
#include "toto/tools/regress.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <string>

#include "support/test_files.h"
#include "tools/regress/solve.h"
#include "toto/error.hpp"

namespace toto::regress {
namespace {

struct Made {
  std::vector<float> y, x;
  std::vector<std::uint8_t> mask;
};

/// Values with a week, a walk and noise; one covariate of ones and zeros, or smooth; with `effect`.
Made made(std::size_t steps, double effect, bool smooth, unsigned seed, double walk = 0) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  Made out;
  double level = 100;
  double slow = 0;
  for (std::size_t t = 0; t < steps; ++t) {
    level += walk * normal(random);
    slow = 0.9 * slow + normal(random);
    const double x = smooth ? slow : (uniform(random) < 0.05 ? 1.0 : 0.0);
    const double week = 10 * std::sin(2 * std::numbers::pi * static_cast<double>(t) / 7);
    out.x.push_back(static_cast<float>(x));
    out.y.push_back(static_cast<float>(level + week + effect * x + 3 * normal(random)));
  }
  out.mask.assign(steps, 1);
  return out;
}

TEST(Regress, FindsEffects) {
  for (const bool smooth : {false, true}) {
    for (const double walk : {0.0, 2.0}) {
      const Made data = made(600, 25, smooth, 7, walk);
      const Fit found = fit(data.y, data.mask, data.x);
      ASSERT_TRUE(found.found) << smooth << walk;
      const double sigma = std::sqrt(found.covariance[0]);
      EXPECT_NEAR(found.coefficient[0], 25, 1.0) << smooth << walk;
      EXPECT_LT(std::abs(found.coefficient[0] - 25), 4 * sigma) << smooth << walk;
      EXPECT_GT(found.gain, 0.3);
    }
  }
}

TEST(Regress, AConstantHasNoEffectHoweverManyRows) {
  const Made data = made(400'000, 25, false, 7);
  std::vector<float> both = data.x;
  both.resize(2 * data.x.size(), 0.1F);
  const Fit found = fit(data.y, data.mask, both);
  ASSERT_TRUE(found.found);
  EXPECT_NEAR(found.coefficient[0], 25, 0.1);
  EXPECT_EQ(found.coefficient[1], 0);
}

TEST(Regress, FindsNoneWhereThereIsNone) {
  std::size_t found = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    // A covariate that moves slowly beside a walk: least squares would see an effect.
    const Made data = made(400, 0, true, seed, 5);
    found += fit(data.y, data.mask, data.x).found ? 1 : 0;
  }
  EXPECT_LE(found, 12U);  // one standard error
}

TEST(Regress, IsNotMisledByGapsAndConstants) {
  Made data = made(500, 25, false, 3);
  for (std::size_t t = 100; t < 130; ++t) {
    data.mask[t] = 0;
    data.y[t] = 0;
  }
  data.x.resize(1000, 4.0F);  // a second covariate that never changes
  const Fit found = fit(data.y, data.mask, data.x);
  ASSERT_TRUE(found.found);
  EXPECT_NEAR(found.coefficient[0], 25, 1.5);
  EXPECT_EQ(found.coefficient[1], 0);
}

TEST(Regress, DoesNotTryWithTooFewValues) {
  const Made data = made(17, 25, false, 3);
  EXPECT_FALSE(fit(data.y, data.mask, data.x).found);
}

/// A series of "y" and its covariate "x", whose last steps lie ahead.
data::TimeSeries covaried(const Made& made, std::size_t ahead) {
  const auto cut = static_cast<std::ptrdiff_t>(made.y.size() - ahead);
  data::TimeSeries series;
  series.id = "a";
  series.variates = {"y", "x"};
  series.covariates = 1;
  series.steps = made.y.size() - ahead;
  series.values.assign(made.y.begin(), made.y.begin() + cut);
  series.values.insert(series.values.end(), made.x.begin(), made.x.begin() + cut);
  series.mask.assign(2 * series.steps, 1);
  series.future_covariates.assign(made.x.begin() + cut, made.x.end());
  return series;
}

TEST(Regress, RefusesInfinitiesWhereverTheyAre) {
  const Made data = made(200, 25, true, 5);
  const data::TimeSeries good = covaried(data, 2);
  EXPECT_NO_THROW((void)take_out(good));
  const auto refused = [](const data::TimeSeries& series) {
    return test::error_of([&] { (void)take_out(series); });
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::size_t variate : {0, 1}) {
    data::TimeSeries bad = good;
    bad.values[variate * 198 + 7] = kInfinity;
    const Error error = refused(bad);
    EXPECT_EQ(error.code(), "not_finite");
    const std::string place = "variate " + std::to_string(variate) + ", step 7 ";
    EXPECT_NE(std::string(error.what()).find(place), std::string::npos) << error.what();
  }
  data::TimeSeries ahead = good;
  ahead.future_covariates[1] = -kInfinity;
  EXPECT_EQ(refused(ahead).code(), "not_finite");
}

TEST(Regress, TakesOutWhatItPutsBack) {
  const Made data = made(400, 25, true, 5);
  const data::TimeSeries series = covaried(data, 2);
  const Regressed taken = take_out(series);
  EXPECT_EQ(taken.residuals.covariates, 0U);
  EXPECT_EQ(taken.residuals.values.size(), 398U);
  const Fit& found = taken.fits[0];
  for (std::size_t t = 0; t < 398; ++t) {
    const double x = data.x[t];
    EXPECT_NEAR(taken.residuals.values[t] + found.effect({&x, 1}), data.y[t], 1e-3);
  }

  Forecast forecast;
  forecast.variates = 1;
  forecast.horizon = 2;
  forecast.levels = {0.1, 0.5, 0.9};
  forecast.mean = {1, 2};
  forecast.median = {1, 2};
  forecast.std = {3, 3};
  forecast.quantiles = {-3, -2, 1, 2, 5, 6};
  put_back(forecast, taken);
  for (std::size_t h = 0; h < 2; ++h) {
    const double x = series.future_covariates[h];
    const double effect = found.effect({&x, 1});
    EXPECT_NEAR(forecast.median[h], static_cast<double>(1 + h) + effect, 1e-4);
    EXPECT_NEAR(forecast.quantiles[2 + h], static_cast<double>(1 + h) + effect, 1e-4);
    const double width = forecast.quantiles[4 + h] - forecast.quantiles[h];
    const double model = 8 / (2 * 1.2815515655446004);
    EXPECT_NEAR(width, 8 * std::sqrt(1 + found.variance({&x, 1}) / model / model), 1e-4);
    EXPECT_GE(forecast.std[h], 3);
  }
}

TEST(Regress, LeavesBoundsToTheSum) {
  ForecastOptions options;
  options.guards = {.clamp = 2, .min = 0, .max = 9, .integer = true};
  const ForecastOptions own = options_of_residuals(options);
  EXPECT_EQ(own.guards, Guards{.clamp = 2});
  options.guards.min = 10;
  try {
    options_of_residuals(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "invalid_guard");
  }
}

TEST(RegressSolve, IsLeastSquaresWithoutARidge) {
  Moments moments(2);
  for (int t = 0; t < 20; ++t) {
    const double x[] = {std::sin(t * 1.3), std::cos(t * 0.7) + 2};
    moments.add(x, 5 + 3 * x[0] - 2 * x[1]);
  }
  const Ridge exact = solve(moments, 0);
  EXPECT_NEAR(exact.coefficient[0], 3, 1e-9);
  EXPECT_NEAR(exact.coefficient[1], -2, 1e-9);
  EXPECT_NEAR(exact.intercept, 5, 1e-9);
  // One column alone: the ridge divides its coefficient by 1 + strength.
  Moments one(1);
  for (int t = 0; t < 10; ++t) {
    const double x = t;
    one.add({&x, 1}, 4.0 * t);
  }
  EXPECT_NEAR(solve(one, 3).coefficient[0], 1, 1e-12);
}

TEST(RegressSolve, FindsAnAutoregression) {
  // Autocovariances of x[t] = 0.6 x[t-1] - 0.3 x[t-2] + e.
  const double r1 = 0.6 / 1.3;
  const double r2 = 0.6 * r1 - 0.3;
  const double r3 = 0.6 * r2 - 0.3 * r1;
  const std::vector<double> phi = levinson(std::vector<double>{1, r1, r2, r3});
  ASSERT_EQ(phi.size(), 3U);
  EXPECT_NEAR(phi[0], 0.6, 1e-12);
  EXPECT_NEAR(phi[1], -0.3, 1e-12);
  EXPECT_NEAR(phi[2], 0, 1e-12);
}

}  // namespace
}  // namespace toto::regress
