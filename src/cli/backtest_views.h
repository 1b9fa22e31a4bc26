// SPDX-License-Identifier: Apache-2.0
// A backtest as people look at it in a terminal.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"
#include "toto/tools/backtest.hpp"

namespace toto::cli {

/// What is odd about the data, a line each on stderr. `where`: the file that has all of it; may be
/// empty.
void show_findings(const backtest::Market& market, const Session& session, std::string_view where);

/// The totals: each symbol and all of them, the model beside the baselines. Columns that do not fit
/// into `width` are left out, what matters least first.
std::string backtest_table(const backtest::Result& result,
                           std::span<const backtest::Metrics> metrics,
                           std::span<const backtest::Trades> trades,
                           const backtest::Options& options, std::size_t width);

/// run.json: what ran where, and what the machine did, which differs from run to run.
/// `counters`: of the forecaster, where they were asked for; else nullptr.
std::string statistics_json(const LoadReport& how, const backtest::RunStatistics& statistics,
                            const Counters* counters);

}  // namespace toto::cli
