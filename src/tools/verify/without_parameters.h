// SPDX-License-Identifier: Apache-2.0
// The same forecast without its parameters, as a service asks for it. A backend that records whole
// forecasts hands parameters out step by step, so what the other checks see is not what it plays.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/verify/suite_state.h"

namespace toto::verify {

/// Repeats the request without keeping parameters. `kept` is what it gave with them. One check of
/// statistics, and one of trajectories where they were kept.
std::vector<Check> without_parameters(Forecaster& forecaster, std::span<const Series> series,
                                      ForecastOptions options, const std::vector<Forecast>& kept,
                                      const std::string& name);

}  // namespace toto::verify
