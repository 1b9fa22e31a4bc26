// SPDX-License-Identifier: Apache-2.0
// The flags of `toto forecast`.
#include "cli/forecast_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/arguments.h"
#include "cli/help_groups.h"
#include "cli/reader_options.h"
#include "cli/result_paths.h"
#include "settings/words.h"
#include "tools/backtest/aggregate.h"

namespace toto::cli {
namespace {

void add_table_options(const Command& command, ForecastRequest& request) {
  data::CsvOptions& csv = request.csv;
  constexpr const char* group = "The table";
  add_reader_options(command, csv, group);
  command.add_option("--values", csv.values, "Columns to forecast")
      .comma_separated()
      .type_name("COLUMN,...")
      .group(group);
  command
      .add_flag("--multivariate", csv.joint,
                "The value columns are variates of one series and forecast jointly")
      .group(group);
  command
      .add_option("--future", request.future, "CSV of covariates known ahead, past and future rows")
      .type_name("FILE")
      .group(group);
  add_choice<Covariates>(
      command, "--covariates", request.covariates,
      {{"auto", Covariates::automatic},
       {"model", Covariates::model},
       {"regress", Covariates::regress}},
      "What becomes of --future: the model takes them (model); a ridge regression does, and the "
      "model forecasts the rest (regress); auto (default): regress, unless the checkpoint was "
      "trained with covariates")
      .group(group);
  using enum data::Missing;
  add_choice<data::Missing>(
      command, "--missing", csv.missing,
      {{"ffill", ffill},
       {"linear", linear},
       {"zero", zero},
       {"seasonal", seasonal},
       {"model", model},
       {"error", error}},
      "What takes the place of a missing value: ffill (default), linear, zero, seasonal (long gaps "
      "as a season before and after), model (gaps of 4 steps or more as the model forecasts them) "
      "or error")
      .group(group);
  add_whole(command, "--season", csv.season, 1, 1'000'000, "invalid_season",
            "Steps of a season, for --missing seasonal (default: by the interval)")
      .group(group);
}

void add_numeric_options(const Command& command, ForecastRequest& request) {
  ForecastOptions& forecast = request.forecast;
  constexpr const char* group = "The forecast";
  add_whole(command, "--horizon", forecast.horizon, 1, 100'000, "invalid_horizon",
            "Steps to forecast, 1 to 100000 (default 64)")
      .group(kFirstFlags);
  add_whole(command, "--context", request.csv.context, 1, 10'000'000, "invalid_context",
            "Steps of history to look at, the last ones (default 4096)")
      .group(group);
  const Flag samples = add_whole(
      command, "--samples", forecast.num_samples, 1, 65'536, "invalid_samples",
      "Trajectories for the steps that are not computed exactly, 1 to 65536 (default 256)");
  samples.group(group);
  const Flag quantiles = command
                             .add_option_function(
                                 "--quantiles",
                                 [&request](const std::string& text) {
                                   request.forecast.levels = parse_levels(text, "--quantiles");
                                   request.own_levels = true;
                                 },
                                 "Levels between 0 and 1 (default 0.1,0.2,...,0.9)")
                             .type_name("Q,...")
                             .group(group);
  const Flag bands =
      command
          .add_option_function(
              "--level",
              [&request](const std::string& text) { request.bands = parse_bands(text, "--level"); },
              "Central intervals in percent, such as 80,95: in files, table and plot")
          .type_name("PERCENT,...")
          .group(kFirstFlags);
  const Flag aggregate =
      command
          .add_option("--aggregate", request.aggregate,
                      "Add a point forecast: mean, p10, quantile_Q, trimmed_mean_F, ... "
                      "(docs/cli.md)")
          .type_name("SPEC")
          .group(group);
  aggregate.excludes("--future");
  const Flag from = add_choice<QuantilesFrom>(
      command, "--quantiles-from", forecast.quantiles_from,
      {{"auto", QuantilesFrom::automatic}, {"samples", QuantilesFrom::samples}},
      "auto (default): exact for the first patch, from trajectories beyond it; samples: from "
      "trajectories throughout");
  from.group(group);
  const Flag paths =
      add_choice<Paths>(command, "--paths", forecast.paths, choices_of(kPaths),
                        "How the steps of a patch are drawn, with Toto 2.0 those of the whole "
                        "horizon: each by itself, as the official code does (independent), "
                        "together (coherent), or as the model names, else independent (auto, "
                        "default)");
  paths.group(group);
  add_seed_option(command, request.settings, group);
  const Flag views = add_views_option(command, forecast.views);
  command
      .add_flag("--mean", forecast.mean_only,
                "Only the mean: one trajectory of means fed back, nothing is drawn")
      .excludes(samples)
      .excludes(quantiles)
      .excludes(bands)
      .excludes(aggregate)
      .excludes(from)
      .excludes(paths)
      .excludes(views)
      .group(group);
  command
      .add_flag_function(
          "--cache,!--no-cache",
          [&forecast](bool on) { forecast.decode = on ? Decode::cached : Decode::uncached; },
          "Keep keys and values from patch to patch, as the reference does (default), or compute "
          "every patch from scratch")
      .group(group);
  add_choice<Align>(command, "--align", forecast.align,
                    {{"pad", Align::pad}, {"trim", Align::trim}},
                    "A history that is not a multiple of the patch: pad it with zeros on the left "
                    "as the reference does (default), or trim its oldest steps")
      .group(group);
}

/// What is asked of the horizon as a whole.
void add_horizon_options(const Command& command, ForecastRequest& request) {
  constexpr const char* group = "The whole horizon";
  using enum data::HorizonAggregate;
  const Flag flags[] = {
      add_choice<data::HorizonAggregate>(
          command, "--aggregate-horizon", request.horizon.aggregate,
          {{"sum", sum}, {"mean", mean}, {"max", max}, {"min", min}},
          "Mean and quantiles of the sum, mean, maximum or minimum over the horizon"),
      add_number(command, "--above", request.horizon.above, -1e300, 1e300, "invalid_level",
                 "Probability that a trajectory lies above this: anywhere in the horizon, and at "
                 "each step"),
      add_number(command, "--below", request.horizon.below, -1e300, 1e300, "invalid_level",
                 "Likewise below"),
      command
          .add_option("--output-horizon", request.output_horizon,
                      "Write these here, CSV or JSON by the suffix; - is standard output (CSV); "
                      "without it they follow the table")
          .type_name("FILE")};
  for (const Flag& flag : flags) {
    flag.excludes("--mean")
        .excludes("--parameters")
        .excludes("--aggregate")
        .excludes("--resume")
        .group(group);
  }
}

void add_own_guard_options(const Command& command, ForecastRequest& request) {
  constexpr const char* group = "The forecast";
  add_number(command, "--input-scale", request.forecast.input_scale, 1e-12, 1e12,
             "invalid_input_scale",
             "What the model sees is multiplied by this, and forecasts divided by it (default: a "
             "power of two for each series that keeps it clear of the model's smallest scale; 1: "
             "the bits of the reference)")
      .group(group);
  add_guard_options(command, request.forecast.guards);
}

void add_parameters_option(const Command& command, ForecastRequest& request) {
  command
      .add_option(
          "--parameters", request.parameters,
          "Context, samples, transform and aggregate by symbol, from toto tune; series that "
          "are not in the file are forecast as the flags say")
      .excludes("--future")
      .excludes("--mean")
      .excludes("--aggregate")
      .type_name("FILE")
      .group("The forecast");
}

void add_result_options(const Command& command, ForecastRequest& request) {
  constexpr const char* group = "Results";
  command
      .add_option("--output,-o", request.output,
                  "Write the forecasts here, CSV or JSON by the suffix; - is standard output (CSV)")
      .type_name("FILE")
      .group(kFirstFlags);
  command
      .add_option("--output-samples", request.output_samples,
                  "Write the trajectories here, as CSV; - is standard output")
      .excludes("--views")
      .excludes("--parameters")
      .excludes("--aggregate")
      .type_name("FILE")
      .group(group);
  command
      .add_option("--plot", request.plot, "Draw history and forecast: .svg or .html by the suffix")
      .type_name("FILE")
      .group(kFirstFlags);
  add_choice<std::string>(
      command, "--columns", request.columns,
      {{"input", "input"}, {"toto", "toto"}, {"nixtla", "nixtla"}, {"chronos", "chronos"}},
      "Columns of CSV: id and time as the table calls them (input, default), unique_id and ds "
      "(toto), or all as Nixtla's libraries (nixtla) or Chronos-2 (chronos) name them")
      .group(group);
  command
      .add_option("--resume", request.resume,
                  "Keep forecasts in this folder as they are made; a run that was interrupted goes "
                  "on from there")
      .excludes("--parameters")
      .excludes("--aggregate")
      .excludes("--output-samples")
      .type_name("DIR")
      .group(group);
  command.add_flag("--json", request.json, "Write the forecasts to standard output as JSON")
      .group(group);
  command
      .add_flag("--counters", request.counters,
                "Say what the machine did: one line on standard error, and `counters` in JSON")
      .group(group);
  command
      .add_option("--trace", request.trace,
                  "Write where the time went, as a Chrome trace (chrome://tracing, Perfetto)")
      .type_name("FILE")
      .group(group);
}

// Standard output, devices and the pipes that a shell makes have none; they take CSV.
bool has_suffix(const std::string& path) { return path != "-" && !path.starts_with("/dev/"); }

void check_suffix(const std::string& path, std::string_view flag, std::string_view first,
                  std::string_view second = {}) {
  if (path.empty() || path.ends_with(first)) return;
  if (!second.empty() && path.ends_with(second)) return;
  throw Error(ExitStatus::usage, "unknown_suffix",
              fmt::format("expected a name that ends in {}{}{}, found '{}'", first,
                          second.empty() ? "" : " or ", second, path),
              flag);
}

}  // namespace

void add_tails_option(const Command& command, Tails& tails) {
  add_choice<Tails>(command, "--tails", tails, choices_of(kTails),
                    "Levels beyond 0.1 and 0.9, of which the model says nothing: the quantiles of "
                    "these two (clamp), tails of a normal distribution through the median and the "
                    "outermost (normal), exponential tails through the outermost two "
                    "(exponential), or what the model names, else clamp (auto, default). Tails are "
                    "assumptions")
      .group("Toto 2.0");
}

/// Named as the options of the official code.
void add_decoding_options(const Command& command, BlockDecoding& decoding) {
  constexpr const char* group = "Toto 2.0";
  constexpr std::size_t kMost = 100'000;
  add_whole(command, "--decode-block-size", decoding.decode_block_size, 0, kMost, "invalid_block",
            "Steps predicted at a time, a multiple of the patch, whose medians are then taken for "
            "observed (default 0: all at once)")
      .group(group);
  add_whole(command, "--scaler-fallback-min-obs", decoding.scaler_fallback_min_obs, 0, kMost,
            "invalid_fallback",
            "Patches with fewer observations up to their end are scaled with the first so many "
            "(default 0: with what there is)")
      .group(group);
  add_number(command, "--quantile-real-cap-k", decoding.quantile_real_cap_k, 0.0, 1e30,
             "invalid_cap",
             "Keep quantiles within so many scales of the context's range (default 0: free)")
      .group(group);
  command
      .add_flag("--has-missing-values,!--no-missing-values", decoding.has_missing_values,
                "Do not attend to patches without an observation (default), or attend to them")
      .group(group);
}

void add_forecast_options(const Command& command, ForecastRequest& request) {
  command
      .add_option(
          "INPUT", request.inputs,
          "Files and folders of tables, each row a time step; - is standard input (default)")
      .type_name("FILE");
  add_table_options(command, request);
  add_numeric_options(command, request);
  add_own_guard_options(command, request);
  add_tails_option(command, request.forecast.tails);
  add_decoding_options(command, request.forecast.decoding);
  add_model_option(command, request.settings);
  add_model_options(command, request.query);
  add_settings_options(command, request.settings);
  command
      .add_option("--warmup", request.warmup,
                  "Build plans first: CONTEXTxHORIZON[xVARIATES[xBATCH]],... or `known`, what the "
                  "plan cache remembers")
      .type_name("SHAPES")
      .group("How it runs");
  add_parameters_option(command, request);
  add_result_options(command, request);
  add_horizon_options(command, request);
}

void check(ForecastRequest& request) {
  if (!request.aggregate.empty()) (void)backtest::parse_aggregate(request.aggregate);
  if (!request.bands.empty()) {
    // The bands have the median in their middle; Nixtla's and Chronos' tables have it as a column.
    const bool named = request.columns == "nixtla" || request.columns == "chronos";
    if (!request.own_levels)
      request.forecast.levels = named ? std::vector<double>() : std::vector{0.5};
    add_levels(request.bands, request.forecast.levels);
  }
  request.forecast.gaps_by_model = request.csv.missing == data::Missing::model;
  const bool asks = request.horizon.asks();
  if (!request.output_horizon.empty() && !asks) {
    throw Error(ExitStatus::usage, "missing_argument", "nothing is asked of the whole horizon",
                "--output-horizon", "give --aggregate-horizon, --above or --below");
  }
  request.horizon.levels = request.forecast.levels;
  request.forecast.keep_samples = !request.output_samples.empty() || asks;

  if (has_suffix(request.output)) check_suffix(request.output, "--output", ".csv", ".json");
  if (has_suffix(request.output_samples)) {
    check_suffix(request.output_samples, "--output-samples", ".csv");
  }
  if (has_suffix(request.output_horizon)) {
    check_suffix(request.output_horizon, "--output-horizon", ".csv", ".json");
  }
  check_suffix(request.plot, "--plot", ".svg", ".html");
  const std::vector<NamedPath> results = {{"--output", request.output},
                                          {"--output-samples", request.output_samples},
                                          {"--output-horizon", request.output_horizon},
                                          {"--plot", request.plot},
                                          {"--trace", request.trace},
                                          {"--json", request.json ? "-" : ""}};
  require_distinct(results);
  std::vector<std::string> read = request.inputs;
  read.insert(read.end(), {request.future, request.parameters});
  require_inputs_kept(read, results);
  if (std::count(request.inputs.begin(), request.inputs.end(), "-") > 1) {
    throw Error(ExitStatus::usage, "conflicting_flags", "standard input can be read only once",
                "toto forecast");
  }
  if (request.inputs == std::vector<std::string>{"-"} && isatty(STDIN_FILENO) != 0) {
    throw Error(ExitStatus::usage, "missing_argument",
                "expected a CSV file or data on standard input", "toto forecast",
                "see toto forecast --help");
  }
}

}  // namespace toto::cli
