// SPDX-License-Identifier: Apache-2.0
// What `toto forecast` was asked to do.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/command.h"
#include "toto/forecast.hpp"
#include "toto/tools/backtest.hpp"
#include "toto/tools/data.hpp"

namespace toto::cli {

struct ForecastRequest {
  std::vector<std::string> inputs = {"-"};  ///< CSV files; "-": standard input
  std::string future;                       ///< CSV of covariates known ahead; empty: none
  data::CsvOptions csv;
  ModelQuery query;
  SettingsFlags settings;
  ForecastOptions forecast;
  std::size_t context = 0;  ///< of --context, where csv.context had to be longer
  std::string parameters;   ///< a file that toto tune wrote; empty: none
  std::map<std::string, backtest::Parameters, std::less<>> by_symbol;  ///< what it says
  std::string output;          ///< CSV or JSON by suffix; "-": standard output; empty: none
  std::string output_samples;  ///< the trajectories; likewise
  std::string plot;            ///< .svg or .html; empty: none
  bool json = false;           ///< the forecasts as JSON on standard output
  bool counters = false;       ///< what the machine did: a line on stderr, a member of JSON
  std::string trace;           ///< where the time went, as a Chrome trace; empty: none
  std::string warmup;          ///< shapes to warm up for, or "known"; empty: none
};

/// Flags of Toto 2.0. The values land in `decoding`, which must outlive the parsing.
void add_decoding_options(const Command& command, BlockDecoding& decoding);

/// Adds every flag of the command. The values land in `request`, which must outlive the parsing.
void add_forecast_options(const Command& command, ForecastRequest& request);

/// What needs the whole command line: two results for one standard output, suffixes. Throws Error
/// (2).
void check(ForecastRequest& request);

}  // namespace toto::cli
