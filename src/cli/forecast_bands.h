// SPDX-License-Identifier: Apache-2.0
// Central intervals that were asked for, as levels of quantiles.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "toto/tools/plot.hpp"

namespace toto::cli {

using plot::BandLevels;

/// "80,95" in percent. Throws Error (2) invalid_level.
std::vector<BandLevels> parse_bands(std::string_view text, std::string_view where);

/// The pairs of levels that lie alike on both sides of 0.5, narrowest first.
std::vector<BandLevels> bands_of(std::span<const double> levels);

/// What a table, which has little room, shows where nothing was asked for: 80 %.
std::vector<BandLevels> default_table_bands();

/// Adds the levels of the bands to `levels`, which stay sorted and without repeats.
void add_levels(std::span<const BandLevels> bands, std::vector<double>& levels);

}  // namespace toto::cli
