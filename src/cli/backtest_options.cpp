// SPDX-License-Identifier: Apache-2.0
// The flags that `toto backtest` and `toto tune` share.
#include "cli/backtest_options.h"

#include "cli/arguments.h"
#include "cli/forecast_options.h"
#include "cli/help_groups.h"
#include "cli/reader_options.h"

namespace toto::cli {

void add_market_options(const Command& command, BacktestRequest& request) {
  constexpr const char* group = "The data";
  command
      .add_option("DATA", request.market.inputs,
                  "CSV files and folders of them: one file for each symbol, or a column of symbols")
      .required()
      .type_name("FILE|DIR");
  const auto list = [&](const char* name, std::vector<std::string>& value, const char* type,
                        const char* help) {
    command.add_option(name, value, help).comma_separated().type_name(type).group(group);
  };
  list("--symbols", request.market.symbols, "NAME,...", "Only these symbols");
  command
      .add_option("--targets", request.market.targets,
                  "What is forecast: close (default), high, low, open, volume, in any usual "
                  "spelling, or columns")
      .comma_separated()
      .type_name("WORD,...")
      .group(kFirstFlags);
  command
      .add_option("--future", request.market.future,
                  "CSV of covariates known ahead, at the times of the bars: a regression takes "
                  "their effect out, and the gain is shown")
      .type_name("FILE")
      .group(group);
  add_layout_option(command, request.market.table, group);
  add_dialect_options(command, request.market.table, group);
  command
      .add_flag("--joint", request.options.joint,
                "The targets of a symbol are variates of one series and forecast jointly")
      .group(group);
}

void add_window_options(const Command& command, BacktestRequest& request) {
  backtest::Options& options = request.options;
  constexpr const char* group = "The windows";
  add_choice<backtest::Rolling>(
      command, "--rolling", options.rolling,
      {{"multi-step", backtest::Rolling::multi_step}, {"one-step", backtest::Rolling::one_step}},
      "multi-step (default): all bars of a window from its origin; one-step: each bar from the "
      "bars before it")
      .group(group);
  add_whole(command, "--horizon", options.horizon, 1, 100'000, "invalid_horizon",
            "Bars of a window (default 5)")
      .group(kFirstFlags);
  add_whole(command, "--stride", options.stride, 1, 1'000'000, "invalid_stride",
            "Bars from origin to origin (default: the horizon)")
      .group(group);
  command.add_option("--from", options.from, "The first bar that is forecast, a date or timestamp")
      .type_name("TIME")
      .group(group);
  command
      .add_option("--to", options.to,
                  "The last bar that is forecast; a date, month or year to its end")
      .type_name("TIME")
      .group(group);
  add_whole(
      command, "--season", options.season, 1, 1'000'000, "invalid_season",
      "Bars of a season, for the seasonal baseline and MASE (default: by the interval, and of "
      "bars of less than a day as many as a day has)")
      .group(group);
}

void add_forecast_choices(const Command& command, BacktestRequest& request) {
  backtest::Parameters& chosen = request.options.parameters;
  constexpr const char* group = "The forecast";
  using backtest::Transform;
  add_whole(command, "--context", chosen.context, 1, 10'000'000, "invalid_context",
            "Bars of history to look at, at most (default 512)")
      .group(group);
  add_whole(command, "--samples", chosen.samples, 1, 65'536, "invalid_samples",
            "Trajectories for the bars that are not computed exactly (default 256)")
      .group(group);
  add_choice<Transform>(
      command, "--transform", chosen.transform,
      {{"none", Transform::none}, {"pct", Transform::pct}, {"log-return", Transform::log_return}},
      "What the model sees: none (default): the values; pct: x[t]/x[t-1] - 1; log-return")
      .group(group);
  add_number(command, "--input-scale", chosen.input_scale, 1e-12, 1e12, "invalid_input_scale",
             "What the model sees is multiplied by this, and forecasts divided by it (default: a "
             "power of two for each context that keeps it clear of the model's smallest scale; 1: "
             "the bits of the reference)")
      .group(group);
  command
      .add_option("--aggregate", chosen.aggregate,
                  "The point forecast (default median): mean, p10, p90, quantile_Q, "
                  "trimmed_mean_F, ... (docs/cli.md)")
      .type_name("SPEC")
      .group(group);
  add_seed_option(command, request.settings, group);
  add_guard_options(command, request.options.guards);
  add_views_option(command, request.options.views);
  add_tails_option(command, request.options.tails);
  add_decoding_options(command, request.options.decoding);
}

void add_backtest_model_options(const Command& command, BacktestRequest& request) {
  add_model_option(command, request.settings);
  add_model_options(command, request.query);
  add_settings_options(command, request.settings);
}

void add_counters_option(const Command& command, BacktestRequest& request, const char* help) {
  command.add_flag("--counters", request.counters, help).group("Results");
}

backtest::RunDescription describe_run(const ModelInfo& info, const Forecaster& forecaster,
                                      Decode decode) {
  const LoadReport how = forecaster.model().loaded();
  return {info.name,
          info.synthetic,
          how.weights,
          std::string(word(how.precision)),
          std::string(word(how.mode)),
          decode == Decode::cached ? "cached" : "uncached",
          info.architecture,
          info.defaults};
}

}  // namespace toto::cli
