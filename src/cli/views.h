// SPDX-License-Identifier: Apache-2.0
// Forecasts as people look at them: a figure and a table.
//
// `series` and `forecasts` go together one by one. The forecasts have the levels of the bands among
// theirs, or are means only.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/forecast_bands.h"
#include "toto/forecast.hpp"
#include "toto/tools/data.hpp"
#include "toto/tools/plot.hpp"

namespace toto::cli {

/// A panel for every target of every series, with these bands.
plot::Figure make_figure(std::span<const data::TimeSeries> series,
                         std::span<const Forecast> forecasts, const ModelInfo& model,
                         std::span<const BandLevels> bands);

/// A block of lines for every target, and what the numbers are: the model, the seed, how many steps
/// are exact.
std::string make_table(std::span<const data::TimeSeries> series,
                       std::span<const Forecast> forecasts, const ModelInfo& model,
                       std::uint64_t seed, std::size_t width, std::span<const BandLevels> bands);

}  // namespace toto::cli
