// SPDX-License-Identifier: Apache-2.0
// Central intervals that were asked for, as levels of quantiles.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "toto/forecast.hpp"
#include "toto/model.hpp"

namespace toto::cli {

/// The central interval between two quantiles.
struct BandLevels {
  double level = 0;  ///< of the probability inside, in (0, 1)
  double lower = 0, upper = 0;
};

/// "80,95" in percent. Throws Error (2) invalid_level.
std::vector<BandLevels> parse_bands(std::string_view text, std::string_view where);

/// The pairs of levels that lie alike on both sides of 0.5, narrowest first.
std::vector<BandLevels> bands_of(std::span<const double> levels);

/// What plots show where nothing was asked for: 50, 80 and 95 %, but none whose ends the model does
/// not know, unless `tails` say what they are. A table has room for 80 %.
std::vector<BandLevels> default_plot_bands(const ModelInfo& model, Tails tails);
std::vector<BandLevels> default_table_bands();

/// Adds the levels of the bands to `levels`, which stay sorted and without repeats.
void add_levels(std::span<const BandLevels> bands, std::vector<double>& levels);

}  // namespace toto::cli
