// SPDX-License-Identifier: Apache-2.0
// Covariates for models that were not trained with them: a regression takes their effect out of the
// series, and puts it back into the forecasts (toto/tools/regress.hpp).
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "toto/forecast.hpp"
#include "toto/model.hpp"
#include "toto/tools/data.hpp"
#include "toto/tools/regress.hpp"

namespace toto::python {

/// Who takes covariates that are known ahead.
enum class CovariatesBy {
  automatic,  ///< the model where it was trained with covariates, else a regression
  model,
  regress,
};

/// Whether a regression does; as the command line chooses.
bool regresses(CovariatesBy asked, const ModelInfo& model);

/// The regressions of one call.
class Effects {
 public:
  /// Series `index` of the call, with covariates at their own time and ahead.
  void add(std::size_t index, data::TimeSeries given);
  /// Points the values of these series to what the covariates leave, which this object owns. Once,
  /// without the GIL.
  void take_out(std::span<Series> series);
  /// What the engine is asked for in place of `options` (regress::options_of_residuals).
  [[nodiscard]] ForecastOptions options_of_rest(ForecastOptions options) const;
  /// The forecasts of all series of the call, whose effects were taken out. Series without an
  /// effect are bounded by the engine, so with bounds they are a call of their own.
  std::vector<Forecast> forecast(Forecaster& forecaster, std::span<const Series> series,
                                 const ForecastOptions& options) const;
  /// Once, with the forecasts of all series of the call. The sums keep the bounds of `guards`.
  void put_back(std::span<Forecast> forecasts, const Guards& guards) const;

 private:
  struct Effect {
    std::size_t index = 0;
    data::TimeSeries given;
    regress::Regressed taken;
  };
  std::deque<Effect> effects_;
};

}  // namespace toto::python
