// SPDX-License-Identifier: Apache-2.0
// A backtest as people look at it in a terminal.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"
#include "toto/tools/backtest.hpp"

namespace toto::cli {

/// What is odd about the data, a line each on stderr.
void show_findings(const backtest::Market& market, const Session& session);

/// The totals: each symbol and all of them, the model beside the baselines.
std::string backtest_table(const backtest::Result& result,
                           std::span<const backtest::Metrics> metrics,
                           std::span<const backtest::Trades> trades,
                           const backtest::Options& options);

/// run.json: what ran where, and what the machine did, which differs from run to run.
/// `counters`: of the forecaster, where they were asked for; else nullptr.
std::string statistics_json(const LoadReport& how, const backtest::RunStatistics& statistics,
                            const Counters* counters);

/// One line on standard error, which --quiet does not hide: it was asked for.
void show_counters(const Counters& counters);

}  // namespace toto::cli
