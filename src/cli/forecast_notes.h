// SPDX-License-Identifier: Apache-2.0
// What `toto forecast` says about what it did beside the model's arithmetic.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "toto/forecast.hpp"
#include "toto/tools/data.hpp"

namespace toto::cli {

/// A line for each kind of thing that was done, with the first series it was done to and how many
/// others there are: history left out, short series, a missing end, values that were moved, a long
/// horizon. `forecasts[i]` belongs to `series[i]`; `patch` is the model's, and `one_pass` says that
/// it does not feed on its own predictions.
std::vector<std::string> forecast_notes(std::span<const data::TimeSeries> series,
                                        std::span<const Forecast> forecasts, const Guards& guards,
                                        std::size_t patch, bool one_pass);

}  // namespace toto::cli
