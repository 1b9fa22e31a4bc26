// SPDX-License-Identifier: Apache-2.0
// Series with options of their own in one call of a forecaster.
#pragma once

#include <span>

#include "engine/forecast_writer.h"
#include "toto/forecast.hpp"

namespace toto {

/// Throws Error (2) invalid_horizon, invalid_samples, invalid_quantile.
void check_options(const ForecastOptions& options);

/// Forecasts jobs that are alike (ForecastWriter::alike) and whose options have been checked. Ids
/// may come twice: each job is addressed by its own. ForecastOptions::progress is not called,
/// `progress` is. Throws what Forecaster::forecast() throws.
void forecast_jobs(Forecaster& forecaster, std::span<const ForecastJob> jobs,
                   const Progress& progress);

}  // namespace toto
