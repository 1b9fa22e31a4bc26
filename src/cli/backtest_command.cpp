// SPDX-License-Identifier: Apache-2.0
// toto backtest: walk-forward evaluation of many symbols.
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/backtest_options.h"
#include "cli/backtest_views.h"
#include "cli/counters.h"
#include "cli/help_groups.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "core/file_set.h"
#include "tools/backtest/aggregate.h"

namespace toto::cli {
namespace {

constexpr std::array kResults = {"forecasts.csv", "metrics.csv", "summary.json", "report.html",
                                 "run.json"};

void make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw Error(ExitStatus::io, "write_failed", "cannot make the folder: " + error.message(),
                folder);
  }
}

/// Fails now where it would fail after a long run.
void check_writable(const std::string& folder) {
  for (const char* name : kResults) const AtomicFile probe(folder + "/" + name);
}

/// What was done to contexts and forecasts beside the model's arithmetic.
void tell_applied(const backtest::RunStatistics& s, const Session& session) {
  if (s.across > 0) {
    note(session,
         fmt::format("{} contexts end without a value and were forecast across", s.across));
  }
  if (s.clamped > 0) {
    note(session, fmt::format("{} bars left what their context supports and were kept within "
                              "--clamp ranges of it",
                              s.clamped));
  }
  if (s.bounded > 0) {
    note(session, fmt::format("{} bars had values beyond --min or --max, which were moved there",
                              s.bounded));
  }
}

ExitStatus run_backtest(BacktestRequest& request, const Session& session) {
  const Interrupt interrupt;
  (void)backtest::parse_aggregate(request.options.parameters.aggregate);
  const Settings settings = resolve_settings(request.settings);
  request.query.model = settings.model.value;
  backtest::Options& options = request.options;
  options.seed = settings.seed.value;
  options.warning = warn;
  if (!request.parameters.empty()) {
    options.by_symbol = backtest::read_parameters(request.parameters);
  }
  const ModelInfo info = inspect_model(request.query);
  for (const std::string& warning : info.warnings) warn(warning);
  make_folder(request.out);
  check_writable(request.out);
  if (!request.no_cache) {
    options.cache_dir = request.cache_dir.empty() ? request.out + "/cache" : request.cache_dir;
  }

  const backtest::Market market = backtest::read_market(request.market);
  for (const std::string& warning : market.warnings) warn(warning);
  for (const data::SeriesError& failed : market.errors) report(failed.error);
  if (market.symbols.empty()) {
    return market.errors.empty() ? ExitStatus::bad_data : market.errors.front().error.status();
  }
  show_findings(market, session, "summary.json");

  Forecaster forecaster(Model::load(request.query, load_options(settings, session)),
                        forecaster_options(settings));
  backtest::Result result;
  {
    ProgressBar bar("forecasting", session.quiet);
    options.progress = [&](std::size_t done, std::size_t total) {
      bar.update(done, total);
      return !interrupt.requested();
    };
    result = backtest::run(market, forecaster, options);
  }
  tell_applied(result.statistics, session);
  for (const data::SeriesError& failed : result.errors) report(failed.error);
  result.errors.insert(result.errors.begin(), market.errors.begin(), market.errors.end());

  const std::vector<backtest::Metrics> metrics = backtest::measure(result, options);
  std::vector<backtest::Trades> trades;
  if (request.trade) trades = backtest::simulate(result, request.fee, request.dead_zone);
  const backtest::RunDescription run = describe_run(info, forecaster, options.decode);
  FileSet files;
  const auto to = [&](const char* name) -> data::TextSink {
    AtomicFile* const file = &files.add(request.out + "/" + name);
    return [file](std::string_view text) { file->write(text); };
  };
  backtest::write_forecasts(to("forecasts.csv"), result, options);
  backtest::write_metrics(to("metrics.csv"), metrics);
  backtest::write_summary(to("summary.json"), result, metrics, trades, options, run);
  backtest::write_report(to("report.html"), result, metrics, trades, options, run);
  const Counters counters = forecaster.counters();
  to("run.json")(statistics_json(forecaster.model().loaded(), result.statistics,
                                 request.counters ? &counters : nullptr));
  files.replace();

  if (request.counters) show_counters(counters);
  if (request.json) {
    backtest::write_summary([](std::string_view text) { print(text); }, result, metrics, trades,
                            options, run);
  } else if (!session.quiet) {
    constexpr std::size_t kAnyWidth = 1000;
    const bool seen = is_terminal(STDOUT_FILENO);
    print(backtest_table(result, metrics, trades, options,
                         seen ? terminal_width(STDOUT_FILENO) : kAnyWidth));
    if (request.trade && trades.empty()) {
      print("nothing was traded: no target is called as prices are (open, high, low, close)\n");
    }
    print(fmt::format("results are in {0}: report.html, summary.json, metrics.csv, forecasts.csv\n",
                      request.out));
  }
  return result.errors.empty() ? ExitStatus::ok : ExitStatus::bad_data;
}

void add_result_options(const Command& command, BacktestRequest& request) {
  constexpr const char* group = "Results";
  command.add_option("--out,-o", request.out, "The folder of the results (default: backtest)")
      .type_name("DIR")
      .group(kFirstFlags);
  command
      .add_option("--cache-dir", request.cache_dir,
                  "Where predictions are kept, for the next run (default: OUT/cache)")
      .type_name("DIR")
      .group(group);
  command.add_flag("--no-cache", request.no_cache, "Keep no predictions, use none").group(group);
  command
      .add_flag("--trade", request.trade,
                "Add what a simple long, flat or short strategy would have made: an illustration")
      .group(group);
  add_number(
      command, "--fee", request.fee, 0, 1, "invalid_fee",
      "Of the value traded (default: 0.001 for symbols that trade every day, 0.0001 for those "
      "that trade round the clock on weekdays, else 0.0005)")
      .group(group);
  add_number(command, "--dead-zone", request.dead_zone, 0, 1, "invalid_dead_zone",
             "No position where the forecast moves less than that share (default 0)")
      .group(group);
  command.add_flag("--json", request.json, "Print summary.json to standard output").group(group);
  add_counters_option(
      command, request,
      "Say what the machine did: one line on standard error, and `counters` in run.json");
}

}  // namespace

void add_backtest(const Command& app, Session& session) {
  const auto request = std::make_shared<BacktestRequest>();
  const Command command = add_command(
      app, session, "backtest",
      "Forecasts the past of many symbols as it could have been forecast then, and measures how "
      "good that was, beside simple baselines.",
      "  toto backtest bars/ --horizon 5 --windows 100\n"
      "  toto backtest bars/*.csv --targets close,high,low,open --transform pct --out results\n"
      "  toto backtest prices.csv --symbols AAPL,IBM --rolling one-step --from 2012-01-01 --trade\n"
      "  toto backtest bars/ --parameters tuned.json\n");
  add_market_options(command, *request);
  add_window_options(command, *request);
  add_whole(command, "--windows", request->options.windows, 1, 100'000'000, "invalid_windows",
            "The last so many windows of each symbol (default: all)")
      .group(kFirstFlags);
  add_forecast_choices(command, *request);
  command
      .add_option("--parameters", request->parameters,
                  "Context, samples, transform and aggregate by symbol, from toto tune")
      .type_name("FILE")
      .group("The forecast");
  add_backtest_model_options(command, *request);
  add_result_options(command, *request);
  command.callback([request, &session] {
    session.run = [request, &session] { return run_backtest(*request, session); };
  });
}

}  // namespace toto::cli
