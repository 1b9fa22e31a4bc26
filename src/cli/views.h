// SPDX-License-Identifier: Apache-2.0
// Forecasts as people look at them: a figure and a table.
//
// `series` and `forecasts` go together one by one. The forecasts have band_levels() among their
// levels, or are means only.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "toto/forecast.hpp"
#include "toto/tools/data.hpp"
#include "toto/tools/plot.hpp"

namespace toto::cli {

/// The quantile levels that bands of 50, 80 and 95 % need.
std::vector<double> band_levels();

/// A panel for every target of every series.
plot::Figure make_figure(std::span<const data::TimeSeries> series,
                         std::span<const Forecast> forecasts, const ModelInfo& model);

/// A block of lines for every target, and what the numbers are: the model, the seed, how many steps
/// are exact.
std::string make_table(std::span<const data::TimeSeries> series,
                       std::span<const Forecast> forecasts, const ModelInfo& model,
                       std::uint64_t seed, std::size_t width);

}  // namespace toto::cli
