// SPDX-License-Identifier: Apache-2.0
// Forecasts of all series of `toto forecast`.
#pragma once

#include <vector>

#include "cli/forecast_options.h"

namespace toto::cli {

/// Who takes the covariates, where the request leaves it open; says what is not as expected.
Covariates choose_covariates(Covariates asked, const ModelInfo& model);

/// One forecast for each series. One that cannot be forecast moves from data.series to data.errors.
std::vector<Forecast> forecast_all(Forecaster& forecaster, const ForecastRequest& request,
                                   data::Dataset& data, const ForecastOptions& options,
                                   const Session& session);

}  // namespace toto::cli
