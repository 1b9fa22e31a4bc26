// SPDX-License-Identifier: Apache-2.0
// What is said of the whole horizon, for people.
#pragma once

#include <span>
#include <string>

#include "toto/tools/horizon.hpp"

namespace toto::cli {

/// A line for the aggregate of every target, and one for each level that may be crossed.
std::string horizon_lines(std::span<const data::TimeSeries> series,
                          std::span<const Forecast> forecasts,
                          const data::HorizonQuestion& question);

}  // namespace toto::cli
