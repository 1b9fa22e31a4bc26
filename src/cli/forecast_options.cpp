// SPDX-License-Identifier: Apache-2.0
// The flags of `toto forecast`.
#include "cli/forecast_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/arguments.h"
#include "cli/reader_options.h"
#include "cli/result_paths.h"

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
  using enum data::Missing;
  add_choice<data::Missing>(
      command, "--missing", csv.missing,
      {{"ffill", ffill}, {"linear", linear}, {"zero", zero}, {"error", error}},
      "What takes the place of a missing value: ffill (default), linear, "
      "zero or error")
      .group(group);
}

void add_numeric_options(const Command& command, ForecastRequest& request) {
  ForecastOptions& forecast = request.forecast;
  constexpr const char* group = "The forecast";
  add_whole(command, "--horizon", forecast.horizon, 1, 100'000, "invalid_horizon",
            "Steps to forecast, 1 to 100000 (default 64)")
      .group(group);
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
                                 [&forecast](const std::string& text) {
                                   forecast.levels = parse_levels(text, "--quantiles");
                                 },
                                 "Levels between 0 and 1 (default 0.1,0.2,...,0.9)")
                             .type_name("Q,...")
                             .group(group);
  const Flag from = add_choice<QuantilesFrom>(
      command, "--quantiles-from", forecast.quantiles_from,
      {{"auto", QuantilesFrom::automatic}, {"samples", QuantilesFrom::samples}},
      "auto (default): exact for the first patch, from trajectories beyond it; samples: from "
      "trajectories throughout");
  from.group(group);
  add_seed_option(command, request.settings, group);
  command
      .add_flag("--mean", forecast.mean_only,
                "Only the mean: one trajectory of means fed back, nothing is drawn")
      .excludes(samples)
      .excludes(quantiles)
      .excludes(from)
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

/// Named as the options of the official code.
void add_decoding_options(const Command& command, ForecastRequest& request) {
  BlockDecoding& decoding = request.forecast.decoding;
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

void add_parameters_option(const Command& command, ForecastRequest& request) {
  command
      .add_option(
          "--parameters", request.parameters,
          "Context, samples, transform and aggregate by symbol, from toto tune; series that "
          "are not in the file are forecast as the flags say")
      .excludes("--future")
      .excludes("--mean")
      .excludes("--output-samples")
      .type_name("FILE")
      .group("The forecast");
}

void add_result_options(const Command& command, ForecastRequest& request) {
  constexpr const char* group = "Results";
  command
      .add_option("--output,-o", request.output,
                  "Write the forecasts here, CSV or JSON by the suffix; - is standard output (CSV)")
      .type_name("FILE")
      .group(group);
  command
      .add_option("--output-samples", request.output_samples,
                  "Write the trajectories here, as CSV; - is standard output")
      .type_name("FILE")
      .group(group);
  command
      .add_option("--plot", request.plot, "Draw history and forecast: .svg or .html by the suffix")
      .type_name("FILE")
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

void add_forecast_options(const Command& command, ForecastRequest& request) {
  command
      .add_option(
          "INPUT", request.inputs,
          "Files and folders of tables, each row a time step; - is standard input (default)")
      .type_name("FILE");
  add_table_options(command, request);
  add_numeric_options(command, request);
  add_decoding_options(command, request);
  add_model_option(command, request.settings);
  add_model_options(command, request.query);
  add_settings_options(command, request.settings);
  command
      .add_option("--warmup", request.warmup,
                  "Build plans first: CONTEXTxHORIZON[xVARIATES[xBATCH]],... or `known`, what the "
                  "plan cache remembers")
      .type_name("SHAPES")
      .group("How it runs");
  add_result_options(command, request);
  add_parameters_option(command, request);
}

void check(ForecastRequest& request) {
  request.forecast.keep_samples = !request.output_samples.empty();

  if (has_suffix(request.output)) check_suffix(request.output, "--output", ".csv", ".json");
  if (has_suffix(request.output_samples)) {
    check_suffix(request.output_samples, "--output-samples", ".csv");
  }
  check_suffix(request.plot, "--plot", ".svg", ".html");
  require_distinct({{"--output", request.output},
                    {"--output-samples", request.output_samples},
                    {"--plot", request.plot},
                    {"--trace", request.trace},
                    {"--json", request.json ? "-" : ""}});
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
