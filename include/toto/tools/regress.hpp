// SPDX-License-Identifier: Apache-2.0
// Covariates for any model: a ridge regression on them is taken out of a series, what is left is
// forecast, and the effect is put back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "toto/forecast.hpp"
#include "toto/tools/data.hpp"

#pragma GCC visibility push(default)
namespace toto::regress {

/// A linear effect of E covariates on one series: y = ... + sum of coefficient * (x - mean).
struct Fit {
  bool found = false;   ///< false: the covariates do not help, and all coefficients are 0
  double strength = 0;  ///< of the ridge, relative to the variance of a covariate
  double gain = 0;      ///< share of the one-step error that cross-validation says is saved
  std::vector<double> coefficient;  ///< [E] in units of y per unit of x
  std::vector<double> mean;         ///< [E] of x over the context
  std::vector<double> covariance;   ///< [E][E] of the coefficients

  /// The effect of one step's covariates, [E].
  [[nodiscard]] double effect(std::span<const double> x) const;
  /// Its variance, as far as the coefficients are uncertain.
  [[nodiscard]] double variance(std::span<const double> x) const;
};

/// Fits one series. `y` and `mask` (1 = observed) are [T], `x` is [E][T], all finite.
///
/// Series depend on their past, which ordinary least squares takes for an effect of whatever moves
/// slowly as well. So y and x are first filtered by an autoregression of y (Yule-Walker, up to 28
/// lags; generalised least squares after Cochrane and Orcutt 1949), which leaves the coefficients
/// as they are. The strength of the ridge is the one with the least error over eight blocks of
/// time, each left out once. Where that does not save more than its standard error there is no
/// effect.
Fit fit(std::span<const float> y, std::span<const std::uint8_t> mask, std::span<const float> x);

/// A series without the effect of its covariates.
struct Regressed {
  data::TimeSeries residuals;     ///< the targets alone; gaps repeat the value before
  std::size_t horizon = 0;        ///< H
  std::vector<double> effect;     ///< [V][H] of the future covariates
  std::vector<double> deviation;  ///< [V][H] of it
  std::vector<Fit> fits;          ///< [V]
};

/// Takes the effect out. `series` has covariates at their own time (data::add_future with patch 0).
/// Throws Error (65) not_finite of values, hidden ones too, and of what is known ahead.
Regressed take_out(const data::TimeSeries& series);

/// What residuals are forecast with: `options` without min, max and integer, which are those of the
/// sum. Throws Error (2) invalid_guard where no value is within them.
ForecastOptions options_of_residuals(ForecastOptions options);

/// Adds the effect to a forecast of the residuals. All around the median is stretched by
/// sqrt(1 + d^2/s^2), with d the deviation of the effect and s that of the model (from its
/// outermost quantiles, as if it were normal), as if the two errors were independent. Then the sum
/// keeps the bounds of `guards` (min, max, integer), which the residuals must not have been given.
void put_back(Forecast& forecast, const Regressed& regressed, const Guards& guards = {});

/// The stretch: `spread` is the distance between the quantiles of levels `low` and `high`.
double stretch(double deviation, double spread, double low, double high);

}  // namespace toto::regress
#pragma GCC visibility pop
