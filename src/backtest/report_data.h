// SPDX-License-Identifier: Apache-2.0
// What the page of a backtest draws, as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "toto/backtest.hpp"

namespace toto::backtest {

/// Measures of every group of symbols and targets: totals, by step, calibration, over time.
nlohmann::ordered_json report_groups(const Result& result, std::span<const Metrics> metrics);

/// Windows to look at, with the bars around them: evenly chosen, at most as many as a page can
/// hold.
nlohmann::ordered_json report_fans(const Result& result);

}  // namespace toto::backtest
