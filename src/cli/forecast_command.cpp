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

#include "cli/forecast_options.h"
#include "cli/interrupt.h"
#include "cli/process.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/views.h"
#include "core/file_set.h"
#include "core/json.h"
#include "core/trace.h"
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

data::Dataset read_inputs(ForecastRequest& request, const ModelInfo& model) {
  const Span span("read");
  std::optional<data::CovariateTable> future;
  if (!request.future.empty()) {
    future = data::read_covariates(request.future, request.csv);
    request.csv.covariates = future->columns;
    for (const std::string& warning : future->warnings) warn(warning);
  }
  const auto patch = static_cast<std::size_t>(model.patch_size);
  request.csv.min_observations = patch;
  data::Dataset all;
  std::vector<std::string> files;  // of each series
  for (const std::string& input : data::csv_files(request.inputs)) {
    data::Dataset one = data::read_csv(input, request.csv);
    files.insert(files.end(), one.series.size(), one.reading.file);
    append(all.series, one.series);
    append(all.errors, one.errors);
    append(all.warnings, one.warnings);
  }
  data::tell_apart(all.series, files);
  if (future) {
    // Toto 1.0 sees a covariate one patch before its time, Toto 2.0 at its time.
    const std::size_t shift = model.architecture == "toto-1.0" ? patch : 0;
    data::add_future(all, *future, request.forecast.horizon, shift, request.csv.missing);
  }
  leave_out_endless(all, request.forecast.horizon);
  return all;
}

constexpr std::string_view kNotFinite = "nonfinite_forecast";

/// An error of one series costs the others nothing; whoever runs this sees it in the exit status.
void give_up(data::Dataset& data, const std::string& id, const Error& error) {
  report(error);
  data.errors.push_back({id, Error(ExitStatus::bad_data, error.code(), error.message(),
                                   error.where(), error.remedy())});
}

/// The parameters of a series: by its id, by its symbol in a long table, or by the file of its
/// bars.
const backtest::Parameters* find_parameters(
    const std::map<std::string, backtest::Parameters, std::less<>>& all,
    const data::TimeSeries& series) {
  for (const std::string_view name : {std::string_view(series.id), std::string_view(series.group),
                                      std::string_view(series.id).substr(0, series.id.find('/'))}) {
    const auto found = all.find(name);
    if (found != all.end()) return &found->second;
  }
  return nullptr;
}

/// Forecasts series [first, first + count) of a list.
using BatchCall = std::function<std::vector<Forecast>(std::size_t first, std::size_t count)>;

/// Whether an error is that of one series, not of the whole call.
using OfOneSeries = bool (*)(const Error&);
bool not_finite(const Error& error) { return error.code() == kNotFinite; }
bool unfit(const Error& error) {
  return error.status() == ExitStatus::bad_data || not_finite(error);
}

/// Forecasts series [first, first + count) as one batch into `answers`, and leaves those out that
/// cannot be forecast. A batch that has one of them gives none, so it is looked for by halves; a
/// series has the same bits in any batch.
void forecast_by_halves(std::size_t first, std::size_t count, const BatchCall& call,
                        OfOneSeries of_one_series, std::span<const std::string> ids,
                        std::span<std::optional<Forecast>> answers, data::Dataset& data) {
  if (count == 0) return;
  try {
    std::vector<Forecast> all = call(first, count);
    std::move(all.begin(), all.end(), answers.begin() + static_cast<std::ptrdiff_t>(first));
    return;
  } catch (const Error& error) {
    if (!of_one_series(error)) throw;
    if (count == 1) {
      give_up(data, ids[first], error);
      return;
    }
  }
  const std::size_t half = count / 2;
  forecast_by_halves(first, half, call, of_one_series, ids, answers, data);
  forecast_by_halves(first + half, count - half, call, of_one_series, ids, answers, data);
}

std::vector<std::string> ids_of(std::span<const data::TimeSeries> series) {
  std::vector<std::string> ids;
  for (const data::TimeSeries& one : series) ids.push_back(one.id);
  return ids;
}

/// Two batches: series with parameters of their own, and those that have none.
std::vector<std::optional<Forecast>> forecast_with_parameters(Forecaster& forecaster,
                                                              const ForecastRequest& request,
                                                              data::Dataset& data,
                                                              const ForecastOptions& options) {
  std::vector<data::TimeSeries> with, without;
  std::vector<backtest::Parameters> own;
  std::vector<std::size_t> places_with, places_without;  // in data.series
  for (std::size_t i = 0; i < data.series.size(); ++i) {
    const data::TimeSeries& series = data.series[i];
    if (const auto* found = find_parameters(request.by_symbol, series)) {
      with.push_back(series);
      own.push_back(*found);
      places_with.push_back(i);
    } else {
      warn(fmt::format("{} has no parameters for series {}", request.parameters, quote(series.id)));
      without.push_back(data::last_steps(series, request.context));
      places_without.push_back(i);
    }
  }
  std::vector<std::optional<Forecast>> answers(data.series.size());
  const auto run = [&](std::span<const data::TimeSeries> series,
                       std::span<const std::size_t> places, const BatchCall& call) {
    std::vector<std::optional<Forecast>> found(series.size());
    forecast_by_halves(0, series.size(), call, unfit, ids_of(series), found, data);
    for (std::size_t i = 0; i < found.size(); ++i) answers[places[i]] = std::move(found[i]);
  };
  run(with, places_with, [&](std::size_t first, std::size_t count) {
    return backtest::forecast_next(forecaster, std::span(with).subspan(first, count),
                                   std::span(own).subspan(first, count), options);
  });
  run(without, places_without, [&](std::size_t first, std::size_t count) {
    std::vector<Series> views;
    for (std::size_t i = first; i < first + count; ++i) views.push_back(without[i].view());
    return forecaster.forecast(views, options);
  });
  return answers;
}

std::vector<std::optional<Forecast>> forecast_together(Forecaster& forecaster, data::Dataset& data,
                                                       const ForecastOptions& options) {
  std::vector<Series> views;
  views.reserve(data.series.size());
  for (const data::TimeSeries& series : data.series) views.push_back(series.view());
  std::vector<std::optional<Forecast>> answers(views.size());
  forecast_by_halves(
      0, views.size(),
      [&](std::size_t first, std::size_t count) {
        return forecaster.forecast(std::span(views).subspan(first, count), options);
      },
      not_finite, ids_of(data.series), answers, data);
  return answers;
}

/// Leaves out series without an answer.
std::vector<Forecast> keep_answered(std::vector<std::optional<Forecast>> answers,
                                    data::Dataset& data) {
  std::vector<Forecast> forecasts;
  std::vector<data::TimeSeries> done;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    std::optional<Forecast>& answer = answers[i];
    if (!answer.has_value()) continue;
    forecasts.push_back(std::move(answer.value()));
    done.push_back(std::move(data.series[i]));
  }
  data.series = std::move(done);
  return forecasts;
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
                              data::Dataset& data, bool bands, const Interrupt& interrupt,
                              const Session& session, Counters& counters, LoadReport& how) {
  ForecastOptions options = request.forecast;
  if (bands && !options.mean_only) {
    const std::vector<double> more = band_levels();
    options.levels.insert(options.levels.end(), more.begin(), more.end());
    std::sort(options.levels.begin(), options.levels.end());
    options.levels.erase(std::unique(options.levels.begin(), options.levels.end()),
                         options.levels.end());
  }
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
  std::vector<Forecast> forecasts;
  if (request.parameters.empty()) {
    forecasts = keep_answered(forecast_together(forecaster, data, options), data);
  } else {
    forecasts = keep_answered(forecast_with_parameters(forecaster, request, data, options), data);
  }
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
  void samples(const data::TextSink& sink) const {
    data::write_samples_csv(sink, data.series, forecasts, run);
  }
};

data::RunInfo describe_run(const ModelInfo& info, const LoadReport& how, const Settings& settings,
                           Decode decode) {
  return {info.name,
          info.synthetic,
          settings.seed.value,
          decode == Decode::cached ? "cached" : "uncached",
          std::string(word(how.mode)),
          std::string(word(how.precision)),
          how.device,
          how.isa,
          TOTO_VERSION,
          how.weights};
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
  const Result picture(request.plot, files);
  const Result trace_file(request.trace, files);
  std::optional<Trace> trace;
  if (!request.trace.empty()) trace.emplace();

  const ModelInfo info = inspect_model(request.query);
  for (const std::string& warning : info.warnings) warn(warning);
  data::Dataset data = read_inputs(request, info);
  for (const std::string& warning : data.warnings) warn(warning);
  for (const data::SeriesError& failed : data.errors) report(failed.error);
  if (data.series.empty()) return data.errors.front().error.status();

  const bool table = !session.quiet && !request.json && !output.is_printed() &&
                     !samples.is_printed() && !trace_file.is_printed() && has_standard_output();
  Counters counters;
  LoadReport how;
  std::vector<Forecast> forecasts = compute(request, settings, data, table || picture.has_file(),
                                            interrupt, session, counters, how);
  if (data.series.empty()) return data.errors.front().error.status();
  std::optional<Span> writing("write");
  if (picture.has_file()) {
    const plot::Figure figure = make_figure(data.series, forecasts, info);
    picture.file()(request.plot.ends_with(".svg") ? plot::to_svg(figure) : plot::to_html(figure));
  }
  std::string shown;
  if (table) {
    shown = make_table(data.series, forecasts, info, settings.seed.value,
                       terminal_width(STDOUT_FILENO));
  }
  for (Forecast& forecast : forecasts) keep_levels(forecast, request.forecast.levels);
  const Computed all = {data, forecasts, describe_run(info, how, settings, request.forecast.decode),
                        request.counters ? to_json(counters, 2) : std::string()};
  if (samples.has_file()) all.samples(samples.file());
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
  if (trace_file.is_printed()) print(times);
  if (table) print(shown);
  if (request.counters) note(session, summary(counters));
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
