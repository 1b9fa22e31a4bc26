// SPDX-License-Identifier: Apache-2.0
// What the page of a backtest draws, as JSON.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "toto/tools/backtest.hpp"

namespace toto::backtest {

// Whatever is evaluated, the page stays a few megabytes: it shows at most so many of each, and says
// of how many.
inline constexpr std::size_t kMaxGroups = 300;  // of symbols and targets; symbols; errors
inline constexpr std::size_t kMaxSteps = 120;   // points of the error by step

/// Those that the error by step is drawn at, from 1; evenly chosen, the last one always.
std::vector<std::size_t> report_steps(std::size_t horizon);

/// Measures of the first groups of symbols and targets: totals, by step (of report_steps(), null
/// where nothing was observed), calibration, over time.
nlohmann::ordered_json report_groups(const Result& result, std::span<const Metrics> metrics);
/// How many there are.
std::size_t count_groups(std::span<const Metrics> metrics);

/// Windows to look at, each with the bars before it: evenly chosen, at most as many as a page can
/// hold.
nlohmann::ordered_json report_fans(const Result& result);
/// How many symbols and targets there are to choose from.
std::size_t count_fans(const Result& result);

}  // namespace toto::backtest
