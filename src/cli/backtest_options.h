// SPDX-License-Identifier: Apache-2.0
// What `toto backtest` and `toto tune` were asked to do.
#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "toto/tools/backtest.hpp"

namespace toto::cli {

struct BacktestRequest {
  backtest::MarketOptions market;
  backtest::Options options;
  ModelQuery query;
  SettingsFlags settings;
  std::string parameters;  ///< a file that tune wrote; empty: none
  std::string out = "backtest";
  std::string cache_dir;
  bool no_cache = false;
  bool trade = false;
  std::optional<double> fee;
  double dead_zone = 0;
  bool json = false;
  bool counters = false;
};

void add_market_options(const Command& command, BacktestRequest& request);
/// All but --windows.
void add_window_options(const Command& command, BacktestRequest& request);
void add_forecast_choices(const Command& command, BacktestRequest& request);
void add_backtest_model_options(const Command& command, BacktestRequest& request);
void add_counters_option(const Command& command, BacktestRequest& request, const char* help);

/// What was run, for the files of results.
backtest::RunDescription describe_run(const ModelInfo& info, const Forecaster& forecaster,
                                      Decode decode);

}  // namespace toto::cli
