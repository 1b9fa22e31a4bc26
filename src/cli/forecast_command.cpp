// SPDX-License-Identifier: Apache-2.0
// toto forecast: from CSV files to numbers, a table and a plot.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "cli/counters.h"
#include "cli/forecast_notes.h"
#include "cli/forecast_run.h"
#include "cli/horizon_lines.h"
#include "cli/interrupt.h"
#include "cli/process.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/views.h"
#include "core/file_set.h"
#include "core/json.h"
#include "core/trace.h"
#include "data/file_name.h"
#include "toto/settings.hpp"
#include "toto/tools/backtest.hpp"
#include "toto/tools/output.hpp"

namespace toto::cli {
namespace {

// Where a result goes: a file of the set, standard output (-), or nowhere (empty). Files are opened
// before the work begins, so that a path that cannot be written costs no time.
class Result {
 public:
  Result(const std::string& path, FileSet& files) : standard_output_(path == "-") {
    if (!path.empty() && !standard_output_) file_ = &files.add(path);
  }
  [[nodiscard]] bool has_file() const { return file_ != nullptr; }
  [[nodiscard]] bool is_printed() const { return standard_output_; }
  [[nodiscard]] data::TextSink file() const {
    return [file = file_](std::string_view text) { file->write(text); };
  }

 private:
  bool standard_output_;
  AtomicFile* file_ = nullptr;
};

template <typename T>
void append(std::vector<T>& to, std::vector<T>& from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

/// Series whose future has no dates that can be written are told now, not after the work.
void leave_out_endless(data::Dataset& data, std::size_t horizon) {
  std::vector<data::TimeSeries> kept;
  for (data::TimeSeries& series : data.series) {
    try {
      (void)data::future_times(series, horizon);
      kept.push_back(std::move(series));
    } catch (const Error& error) {
      data.errors.push_back({series.id, error});
    }
  }
  data.series = std::move(kept);
}

/// Fewer say nothing about how far a series moves.
constexpr std::size_t kFewestObservations = 3;

/// The name of the one column with that role, if it has one.
std::string name_of(const data::Reading& reading, std::string_view role) {
  std::string name;
  for (const data::Reading::Column& column : reading.columns) {
    if (column.role != role) continue;
    if (!name.empty()) return {};
    name = column.name;
  }
  return name;
}

/// Whether another column of the result is, or may be, called that.
bool is_taken(const std::string& name) {
  constexpr std::string_view kOthers[] = {"variate", "point", "mean", "sample", "value", "weights"};
  const bool quantile = name.size() > 1 && name[0] == 'q' && name[1] >= '0' && name[1] <= '9';
  return quantile || std::ranges::find(kOthers, name) != std::end(kOthers);
}

/// What the columns of the result are called; where tables differ, as they are without tables.
data::ColumnNames names_for(const std::string& columns, std::span<const data::Reading> readings) {
  using Style = data::ColumnNames::Style;
  data::ColumnNames names;
  if (columns == "nixtla") names.style = Style::nixtla;
  if (columns == "chronos") names.style = Style::chronos;
  if (columns != "input") return names;
  const auto common = [&](std::string_view role, std::string& to) {
    if (readings.empty()) return;
    const std::string name = name_of(readings.front(), role);
    const auto same = [&](const data::Reading& one) { return name_of(one, role) == name; };
    if (!name.empty() && std::ranges::all_of(readings, same)) to = name;
  };
  common("time", names.time);
  common("id", names.id);
  if (names.id == names.time || is_taken(names.id) || is_taken(names.time)) names = {};
  return names;
}

data::Dataset read_inputs(ForecastRequest& request, const ModelInfo& model) {
  const Span span("read");
  std::optional<data::CovariateTable> future;
  if (!request.future.empty()) {
    future = data::read_covariates(request.future, request.csv);
    request.csv.covariates = future->columns;
    for (const std::string& warning : future->warnings) warn(warning);
  }
  request.csv.min_observations = kFewestObservations;
  data::Dataset all;
  std::vector<std::string> files;  // of each series
  std::vector<data::Reading> readings;
  for (const std::string& input : data::csv_files(request.inputs)) {
    data::Dataset one = data::read_csv(input, request.csv);
    files.insert(files.end(), one.series.size(), one.reading.file);
    readings.push_back(one.reading);
    append(all.series, one.series);
    append(all.errors, one.errors);
    append(all.warnings, one.warnings);
  }
  data::tell_apart(all.series, files);
  if (!request.by_symbol.empty()) {
    for (std::size_t i = 0; i < files.size(); ++i) {
      const data::TimeSeries& series = all.series[i];
      if (series.group.empty()) request.file_of[series.id] = data::stem_of(files[i]);
    }
  }
  request.names = names_for(request.columns, readings);
  if (future) {
    request.covariates = choose_covariates(request.covariates, model);
    const bool at_their_time = request.covariates == Covariates::regress;
    data::add_future(all, *future, request.forecast.horizon,
                     at_their_time ? 0 : static_cast<std::size_t>(model.covariate_lead),
                     request.csv.missing);
  }
  leave_out_endless(all, request.forecast.horizon);
  return all;
}

/// Reads --parameters, once: it may be a pipe. Enough history for every symbol of the file.
void widen_context(ForecastRequest& request) {
  request.context = request.csv.context;
  if (request.parameters.empty()) return;
  request.by_symbol = backtest::read_parameters(request.parameters);
  for (const auto& [name, parameters] : request.by_symbol) {
    request.csv.context = std::max(request.csv.context, parameters.context + 1);
  }
}

std::vector<Forecast> compute(const ForecastRequest& request, const Settings& settings,
                              data::Dataset& data, std::span<const BandLevels> bands,
                              const Interrupt& interrupt, const Session& session,
                              Counters& counters, LoadReport& how) {
  ForecastOptions options = request.forecast;
  if (!options.mean_only) add_levels(bands, options.levels);
  ProgressBar bar("forecasting", session.quiet);
  options.progress = [&](std::size_t done, std::size_t total) {
    bar.update(done, total);
    return !interrupt.requested();
  };
  options.time_device = request.counters;
  Forecaster forecaster(Model::load(request.query, load_options(settings, session)),
                        forecaster_options(settings));
  if (!request.warmup.empty()) {
    const bool known = request.warmup == "known";
    forecaster.warm_up(known ? forecaster.known_shapes() : parse_warmup(request.warmup), options);
  }
  std::vector<Forecast> forecasts = forecast_all(forecaster, request, data, options, session);
  counters = forecaster.counters();
  how = forecaster.model().loaded();
  return forecasts;
}

// Leaves out the levels that only the bands of a plot or table needed.
void keep_levels(Forecast& forecast, const std::vector<double>& wanted) {
  if (forecast.quantiles.empty()) return;
  const std::size_t size = forecast.variates * forecast.horizon;
  std::vector<float> kept;
  for (std::size_t i = 0; i < forecast.levels.size(); ++i) {
    if (std::find(wanted.begin(), wanted.end(), forecast.levels[i]) == wanted.end()) continue;
    const auto begin = forecast.quantiles.begin() + static_cast<std::ptrdiff_t>(i * size);
    kept.insert(kept.end(), begin, begin + static_cast<std::ptrdiff_t>(size));
  }
  forecast.quantiles = std::move(kept);
  forecast.levels = wanted;
}

constexpr const char* kIndependentPaths =
    "the steps of a trajectory were drawn independently, so what is said of the whole horizon "
    "leaves out how they go together (sums vary too little): --paths coherent";

/// What was computed, and how each of the results is written.
struct Computed {
  const data::Dataset& data;
  const std::vector<Forecast>& forecasts;
  data::RunInfo run;
  std::string counters;  // JSON; empty: not asked for

  void as_json(const data::TextSink& sink) const {
    data::write_json(sink, data.series, forecasts, data.errors, run, counters);
  }
  void as_csv(const data::TextSink& sink) const {
    data::write_csv(sink, data.series, forecasts, run);
  }
  void horizon(const data::TextSink& sink, const data::HorizonQuestion& question, bool json) const {
    (json ? data::write_horizon_json : data::write_horizon_csv)(sink, data.series, forecasts,
                                                                question);
  }
  void samples(const data::TextSink& sink) const {
    data::write_samples_csv(sink, data.series, forecasts, run);
  }
};

data::RunInfo describe_run(const ModelInfo& info, const LoadReport& how, const Settings& settings,
                           const ForecastOptions& options, const data::ColumnNames& names) {
  return {
      info.name,
      info.synthetic,
      settings.seed.value,
      options.decode == Decode::cached ? "cached" : "uncached",
      std::string(word(how.mode)),
      std::string(word(how.precision)),
      how.device,
      how.isa,
      TOTO_VERSION,
      how.weights,
      info.architecture,
      options.paths == Paths::coherent && !options.mean_only ? "coherent" : "",
      names,
      settings.kv_cache.origin.source == Source::built_in ? "" : std::string(word(how.kv_cache)),
      options.tails != Tails::clamp && info.head == "quantiles" ? std::string(word(options.tails))
                                                                : ""};
}

ExitStatus run_forecast(ForecastRequest& request, const Session& session) {
  const Interrupt interrupt;
  check(request);
  widen_context(request);
  const Settings settings = resolve_settings(request.settings);
  settings.apply(request.query);
  settings.apply(request.forecast);
  FileSet files;
  const Result output(request.output, files);
  const Result samples(request.output_samples, files);
  const Result horizon(request.output_horizon, files);
  const Result picture(request.plot, files);
  const Result trace_file(request.trace, files);
  std::optional<Trace> trace;
  if (!request.trace.empty()) trace.emplace();

  const ModelInfo info = inspect_model(request.query);
  for (const std::string& warning : info.warnings) warn(warning);
  // What nobody has asked for is drawn where the model knows it alone.
  const bool known_alone =
      request.forecast.tails == Tails::automatic || request.forecast.tails == Tails::clamp;
  complete(request.forecast, info);
  data::Dataset data = read_inputs(request, info);
  for (const std::string& warning : data.warnings) warn(warning);
  for (const data::SeriesError& failed : data.errors) report(failed.error);
  if (data.series.empty()) return data.errors.front().error.status();

  const bool table = !session.quiet && !request.json && !output.is_printed() &&
                     !samples.is_printed() && !horizon.is_printed() && !trace_file.is_printed() &&
                     has_standard_output();
  Counters counters;
  LoadReport how;
  const auto bands = [&](std::vector<BandLevels> otherwise) {
    std::vector<BandLevels> asked = request.bands;
    if (asked.empty() && request.own_levels) asked = bands_of(request.forecast.levels);
    return asked.empty() ? std::move(otherwise) : asked;
  };
  const std::vector<BandLevels> drawn =
      bands(known_alone ? plot::default_bands(info) : plot::default_bands());
  std::vector<BandLevels> needed;
  // What was kept must not depend on whether somebody watched.
  if (picture.has_file() || table || !request.resume.empty()) needed = drawn;
  std::vector<Forecast> forecasts =
      compute(request, settings, data, needed, interrupt, session, counters, how);
  if (data.series.empty()) return data.errors.front().error.status();
  std::optional<Span> writing("write");
  if (picture.has_file()) {
    const plot::Figure figure = make_figure(data.series, forecasts, info, drawn);
    picture.file()(request.plot.ends_with(".svg") ? plot::to_svg(figure) : plot::to_html(figure));
  }
  std::string shown;
  if (table) {
    shown = make_table(data.series, forecasts, info, settings.seed.value,
                       terminal_width(STDOUT_FILENO), bands(default_table_bands()));
  }
  for (Forecast& forecast : forecasts) keep_levels(forecast, request.forecast.levels);
  const Computed all = {data, forecasts,
                        describe_run(info, how, settings, request.forecast, request.names),
                        request.counters ? to_json(counters, 2) : std::string()};
  if (samples.has_file()) all.samples(samples.file());
  if (horizon.has_file()) {
    all.horizon(horizon.file(), request.horizon, request.output_horizon.ends_with(".json"));
  }
  if (output.has_file()) {
    const bool json = request.output.ends_with(".json");
    json ? all.as_json(output.file()) : all.as_csv(output.file());
  }
  writing.reset();
  const std::string times = trace ? trace->chrome_json() : std::string();
  if (trace_file.has_file()) trace_file.file()(times);
  files.commit();
  // Files first: whoever reads standard output may go away before the end.
  if (request.json) all.as_json(print);
  if (output.is_printed()) all.as_csv(print);
  if (samples.is_printed()) all.samples(print);
  if (horizon.is_printed()) all.horizon(print, request.horizon, false);
  if (trace_file.is_printed()) print(times);
  if (table) print(shown);
  if (request.horizon.asks()) {
    if (table && request.output_horizon.empty()) {
      print(horizon_lines(data.series, forecasts, request.horizon));
    }
    if (request.forecast.paths != Paths::coherent) note(session, kIndependentPaths);
  }
  for (const std::string& line : forecast_notes(
           data.series, forecasts, request.forecast.guards,
           static_cast<std::size_t>(info.patch_size),
           info.head == "quantiles" && request.forecast.decoding.decode_block_size == 0)) {
    note(session, line);
  }
  if (request.counters) show_counters(counters);  // asked for, so -q does not hide it
  return data.errors.empty() ? ExitStatus::ok : data.errors.front().error.status();
}

}  // namespace

void add_forecast(const Command& app, Session& session) {
  const auto request = std::make_shared<ForecastRequest>();
  const Command command = add_command(
      app, session, "forecast", "Forecasts the series of tables: CSV, JSON, also compressed.",
      "  toto forecast sales.csv --horizon 28\n"
      "  toto forecast sales.csv --horizon 28 --output forecast.csv --plot forecast.html\n"
      "  toto forecast bars/*.csv --horizon 20 --quantiles 0.05,0.5,0.95 --json\n"
      "  cat sales.csv | toto forecast --model Datadog/Toto-Open-Base-1.0 --output -\n");
  add_forecast_options(command, *request);
  command.callback([request, &session] {
    session.run = [request, &session] { return run_forecast(*request, session); };
  });
}

}  // namespace toto::cli
