// SPDX-License-Identifier: Apache-2.0
// Forecasts of many series: as one batch, with parameters of their own, without the effect of
// covariates, going on where an earlier run stopped.
#include "cli/forecast_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <span>

#include "cli/forecast_store.h"
#include "core/json.h"
#include "toto/tools/regress.hpp"

namespace toto::cli {
namespace {

constexpr std::size_t kKeptTogether = 128;  // forecasts that are written at a time

constexpr std::string_view kNotFinite = "nonfinite_forecast";

/// An error of one series costs the others nothing; whoever runs this sees it in the exit status.
void give_up(data::Dataset& data, const std::string& id, const Error& error) {
  report(error);
  data.errors.push_back({id, Error(ExitStatus::bad_data, error.code(), error.message(),
                                   error.where(), error.remedy())});
}

/// The parameters of a series: by its id, by its symbol in a long table, or by the name of its
/// file.
const backtest::Parameters* find_parameters(const ForecastRequest& request,
                                            const data::TimeSeries& series) {
  const auto file = request.file_of.find(series.id);
  for (const std::string_view name :
       {std::string_view(series.id), std::string_view(series.group),
        std::string_view(series.id).substr(0, series.id.find('/')),
        file == request.file_of.end() ? std::string_view() : std::string_view(file->second)}) {
    const auto found = request.by_symbol.find(name);
    if (found != request.by_symbol.end()) return &found->second;
  }
  return nullptr;
}

/// What --aggregate asks of every series.
backtest::Parameters parameters_of(const ForecastRequest& request) {
  backtest::Parameters parameters;
  parameters.context = request.context;
  parameters.samples = request.forecast.num_samples;
  parameters.aggregate = request.aggregate;
  return parameters;
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
    const auto* found = find_parameters(request, series);
    if (found != nullptr || !request.aggregate.empty()) {
      with.push_back(series);
      own.push_back(found != nullptr ? *found : parameters_of(request));
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

std::vector<std::optional<Forecast>> forecast_together(Forecaster& forecaster,
                                                       const ForecastRequest& request,
                                                       data::Dataset& data,
                                                       const ForecastOptions& options,
                                                       const Session& session) {
  std::vector<Series> views;
  views.reserve(data.series.size());
  for (const data::TimeSeries& series : data.series) views.push_back(series.view());
  std::vector<std::optional<Forecast>> answers(views.size());
  if (request.resume.empty()) {
    forecast_by_halves(
        0, views.size(),
        [&](std::size_t first, std::size_t count) {
          return forecaster.forecast(std::span(views).subspan(first, count), options);
        },
        not_finite, ids_of(data.series), answers, data);
    return answers;
  }
  // What is known already is taken; the rest is made and kept piece by piece.
  ForecastStore store(request.resume, forecaster.model().loaded(), options, warn);
  std::vector<std::size_t> places;
  std::vector<Series> rest;
  for (std::size_t i = 0; i < views.size(); ++i) {
    answers[i] = store.find(views[i]);
    if (answers[i].has_value()) continue;
    places.push_back(i);
    rest.push_back(views[i]);
  }
  if (places.size() < views.size()) {
    note(session, fmt::format("{} of {} forecasts were found in {}", views.size() - places.size(),
                              views.size(), request.resume));
  }
  std::vector<std::string> ids;
  ids.reserve(rest.size());
  for (const Series& series : rest) ids.emplace_back(series.id);
  std::vector<std::optional<Forecast>> made(rest.size());
  ForecastOptions piecewise = options;
  const auto call = [&](std::size_t first, std::size_t count) {
    const std::span<const Series> some = std::span(rest).subspan(first, count);
    if (options.progress) {  // of this piece, in hundredths of series of the whole
      piecewise.progress = [&](std::size_t done, std::size_t total) {
        const std::size_t share = 100 * count * done / std::max<std::size_t>(total, 1);
        return options.progress(100 * first + share, 100 * rest.size());
      };
    }
    std::vector<Forecast> all = forecaster.forecast(some, piecewise);
    store.add(some, all);
    return all;
  };
  for (std::size_t first = 0; first < rest.size(); first += kKeptTogether) {
    forecast_by_halves(first, std::min(kKeptTogether, rest.size() - first), call, not_finite, ids,
                       made, data);
  }
  for (std::size_t i = 0; i < made.size(); ++i) answers[places[i]] = std::move(made[i]);
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

/// Forecasts what the covariates do not explain, and puts their effect back.
std::vector<Forecast> forecast_regressed(Forecaster& forecaster, const ForecastRequest& request,
                                         data::Dataset& data, const ForecastOptions& options,
                                         const Session& session) {
  std::vector<regress::Regressed> taken;
  data::Dataset rest;
  std::size_t explained = 0;
  std::size_t all = 0;
  for (const data::TimeSeries& series : data.series) {
    taken.push_back(regress::take_out(series));
    for (const regress::Fit& fit : taken.back().fits) explained += fit.found ? 1 : 0;
    all += taken.back().fits.size();
  }
  note(session, fmt::format("the covariates explain something of {} of {} series", explained, all));
  for (const regress::Regressed& one : taken) rest.series.push_back(one.residuals);
  std::vector<std::optional<Forecast>> answers =
      forecast_together(forecaster, request, rest, regress::options_of_residuals(options), session);
  data.errors.insert(data.errors.end(), rest.errors.begin(), rest.errors.end());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    std::optional<Forecast>& answer = answers[i];
    if (answer.has_value()) regress::put_back(*answer, taken[i], options.guards);
    // What is written and drawn has no covariates any more.
    data::TimeSeries& series = data.series[i];
    series.variates.resize(series.targets());
    series.values.resize(series.variates.size() * series.steps);
    series.mask.resize(series.variates.size() * series.steps);
    if (!series.value_offsets.empty()) series.value_offsets.resize(series.variates.size());
    series.covariates = 0;
    series.future_covariates.clear();
  }
  return keep_answered(std::move(answers), data);
}

}  // namespace

/// A checkpoint that was not trained with covariates hardly notices them.
Covariates choose_covariates(Covariates asked, const ModelInfo& model) {
  const bool trained = model.trained_with_covariates();
  if (asked == Covariates::model && !trained) {
    warn(
        fmt::format("{} was not trained with covariates and hardly notices them: without "
                    "--covariates model they are regressed",
                    model.name));
  }
  if (asked != Covariates::automatic) return asked;
  if (trained) return Covariates::model;
  warn(
      fmt::format("{} was not trained with covariates: a regression takes them, and the model "
                  "forecasts the rest (--covariates regress)",
                  model.name));
  return Covariates::regress;
}

std::vector<Forecast> forecast_all(Forecaster& forecaster, const ForecastRequest& request,
                                   data::Dataset& data, const ForecastOptions& options,
                                   const Session& session) {
  if (!request.future.empty() && request.covariates == Covariates::regress) {
    return forecast_regressed(forecaster, request, data, options, session);
  }
  const bool own = !request.parameters.empty() || !request.aggregate.empty();
  return keep_answered(own ? forecast_with_parameters(forecaster, request, data, options)
                           : forecast_together(forecaster, request, data, options, session),
                       data);
}

}  // namespace toto::cli
