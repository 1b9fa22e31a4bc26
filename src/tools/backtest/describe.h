// SPDX-License-Identifier: Apache-2.0
// Results as JSON, for summary.json and for the page.
#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "toto/tools/backtest.hpp"

namespace toto::backtest {

/// null where it is not finite.
nlohmann::ordered_json json_number(double value);
nlohmann::ordered_json to_json(const Metrics& metrics);
nlohmann::ordered_json to_json(const Trades& trades);
nlohmann::ordered_json to_json(const Parameters& parameters);

/// Everything of summary.json but its metrics and trades.
nlohmann::ordered_json describe_run(const Result& result, const Options& options,
                                    const RunDescription& run);

}  // namespace toto::backtest
