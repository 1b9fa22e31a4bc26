// SPDX-License-Identifier: Apache-2.0
// What `toto forecast` was asked to do.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/forecast_bands.h"
#include "toto/forecast.hpp"
#include "toto/tools/backtest.hpp"
#include "toto/tools/data.hpp"
#include "toto/tools/horizon.hpp"
#include "toto/tools/output.hpp"

namespace toto::cli {

/// Who takes the covariates that are known ahead.
enum class Covariates { automatic, model, regress };

struct ForecastRequest {
  std::vector<std::string> inputs = {"-"};  ///< CSV files; "-": standard input
  std::string future;                       ///< CSV of covariates known ahead; empty: none
  Covariates covariates = Covariates::automatic;
  std::vector<BandLevels> bands;  ///< of --level; empty: by the quantiles
  bool own_levels = false;        ///< whether --quantiles was given
  std::string aggregate;          ///< the point forecast; empty: none besides mean and median
  std::string resume;             ///< a folder that keeps forecasts as they are made; empty: none
  std::string columns = "input";  ///< input, toto, nixtla or chronos
  data::ColumnNames names;        ///< that follow from it
  data::CsvOptions csv;
  ModelQuery query;
  SettingsFlags settings;
  ForecastOptions forecast;
  std::size_t context = 0;  ///< of --context, where csv.context had to be longer
  std::string parameters;   ///< a file that toto tune wrote; empty: none
  std::map<std::string, backtest::Parameters, std::less<>> by_symbol;  ///< what it says
  std::map<std::string, std::string, std::less<>> file_of;  ///< by id, of tables without ids
  std::string output;             ///< CSV or JSON by suffix; "-": standard output; empty: none
  std::string output_samples;     ///< the trajectories; likewise
  std::string output_horizon;     ///< what is asked of the whole horizon; likewise
  data::HorizonQuestion horizon;  ///< what that is
  std::string plot;               ///< .svg or .html; empty: none
  bool json = false;              ///< the forecasts as JSON on standard output
  bool counters = false;          ///< what the machine did: a line on stderr, a member of JSON
  std::string trace;              ///< where the time went, as a Chrome trace; empty: none
  std::string warmup;             ///< shapes to warm up for, or "known"; empty: none
};

/// What keeps forecasts within what is possible; likewise.
void add_guard_options(const Command& command, Guards& guards);

/// --views. The value lands in `views`, which must outlive the parsing.
Flag add_views_option(const Command& command, Views& views);

/// --tails. The value lands in `tails`, which must outlive the parsing.
void add_tails_option(const Command& command, Tails& tails);
/// Flags of Toto 2.0. The values land in `decoding`, which must outlive the parsing.
void add_decoding_options(const Command& command, BlockDecoding& decoding);

/// Adds every flag of the command. The values land in `request`, which must outlive the parsing.
void add_forecast_options(const Command& command, ForecastRequest& request);

/// What needs the whole command line: two results for one standard output, suffixes. Throws Error
/// (2).
void check(ForecastRequest& request);

}  // namespace toto::cli
