// SPDX-License-Identifier: Apache-2.0
#include "tools/backtest/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>

#include "core/sha256.h"
#include "engine/adapted.h"
#include "models/model_impl.h"
#include "tools/backtest/band_width.h"
#include "tools/backtest/covariates.h"
#include "tools/backtest/read_forecast.h"
#include "tools/backtest/transform.h"
#include "toto/settings.hpp"

namespace toto::backtest {
namespace {

// A call of the engine: enough rows to keep every core busy, little memory. What a batch holds
// changes no bit of a result.
constexpr std::size_t kMaxBatch = 256;
constexpr std::size_t kMaxAlone = 32;  // forecasts timed one by one
constexpr std::size_t kMaxValues = std::size_t{1} << 18;
constexpr std::size_t kMaxDrawn = std::size_t{1} << 24;  // floats of trajectories

std::string_view raw(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}
std::string_view raw(std::span<const std::uint8_t> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size()};
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool less(const Parameters& a, const Parameters& b) {
  const auto all = [](const Parameters& p) {
    return std::tie(p.context, p.samples, p.transform, p.input_scale, p.aggregate, p.width_below,
                    p.width_above);
  };
  return all(a) < all(b);
}

/// All that the checkpoint says: every byte of its weights, and what config.json decides.
std::string identity(const Model::Impl& model) {
  Sha256 hash;
  hash.update(model.content_hash);
  hash.update(model.configuration);
  return hash.hex();
}

}  // namespace

/// The series of one call, and the memory they look at.
struct Predictor::Batch {
  std::vector<std::vector<float>> values;
  std::vector<std::vector<std::uint8_t>> masks;
  std::vector<std::vector<double>> offsets;  // of what is shown; empty: 0
  std::vector<Series> series;
  std::vector<std::vector<Effect>> effects;  // of the targets; empty: none
};

std::size_t variates_of(const Symbol& symbol, const Options& options) {
  return options.joint ? symbol.targets.size() : 1;
}

Predictor::Predictor(Forecaster& forecaster, const Options& options)
    : forecaster_(forecaster), options_(options), cache_(options.cache_dir, options.warning) {
  const Model::Impl& model = forecaster.model().impl();
  patch_ = static_cast<std::size_t>(model.info.patch_size != 0 ? model.info.patch_size
                                                               : model.net->patch());
  run_ =
      fmt::format("prediction 5|{}|{}|{}|{}|{}|{}|{}", identity(model), model.net->backend().isa(),
                  word(model.precision), word(model.mode), word(model.kv_cache),
                  options.decode == Decode::cached ? "cached" : "uncached", options.seed);
  if (const BlockDecoding& d = options.decoding; d != BlockDecoding{}) {
    run_ += fmt::format("|{}|{}|{}|{}", d.decode_block_size, d.has_missing_values,
                        d.scaler_fallback_min_obs, d.quantile_real_cap_k);
  }
  const ModelDefaults taken = settled(options, model.info.defaults);
  if (taken.paths != Paths::independent) run_ += fmt::format("|{}", word(taken.paths));
  if (taken.tails != Tails::clamp) run_ += fmt::format("|{} tails", word(taken.tails));
  if (options.views.any()) run_ += "|views " + to_text(options.views);
  if (const Guards& g = options.guards; g != Guards{}) {
    run_ += fmt::format("|guards|{}|{}|{}|{}", g.clamp, g.min, g.max, g.integer);
  }
  statistics_.damaged = cache_.damaged();
}

/// Of the bytes of the context alone, so that the same context has the same random numbers.
std::string Predictor::id_of(const Symbol& symbol, const Request& request) const {
  Sha256 hash;
  const std::size_t first = request.last + 1 - request.bars;
  const std::size_t variates = variates_of(symbol, options_);
  for (std::size_t v = request.target; v < request.target + variates; ++v) {
    hash.update(raw(symbol.values_of(v).subspan(first, request.bars)));
    hash.update(raw(symbol.mask_of(v).subspan(first, request.bars)));
  }
  if (uses_covariates(symbol, options_)) {
    for (std::size_t j = 0; j < symbol.covariates.size(); ++j) {
      hash.update(raw(
          std::span(symbol.known).subspan(j * symbol.bars + first, request.bars + request.steps)));
    }
    hash.update("covariates 1");
  }
  return hash.hex();
}

std::string Predictor::key_of(const Parameters& parameters, const Request& request,
                              std::size_t variates, const std::string& id) const {
  Sha256 hash;
  hash.update(run_);
  hash.update(fmt::format("|{}|{}|{}|{}|{}|{}|", parameters.samples, word(parameters.transform),
                          parameters.input_scale, parameters.aggregate, request.steps, variates));
  if (parameters.width_below != 1 || parameters.width_above != 1) {
    hash.update(fmt::format("widths {}|{}|", parameters.width_below, parameters.width_above));
  }
  hash.update(id);
  return hash.hex();
}

std::vector<std::size_t> Predictor::predict(std::span<const Symbol> symbols,
                                            std::span<const Parameters> parameters,
                                            std::span<const Request> requests) {
  std::vector<std::size_t> answers;
  const auto before = [](const Parameters* a, const Parameters* b) { return less(*a, *b); };
  std::map<const Parameters*, std::vector<Job>, decltype(before)> groups(before);  // one to a call
  answers.reserve(requests.size());
  for (const Request& request : requests) {
    const Symbol& symbol = symbols[request.symbol];
    const Parameters& with = parameters[request.symbol];
    Job job{request, id_of(symbol, request), {}, stored_.size()};
    // Bounds, and moves in percent, are of offset + value.
    std::string offsets;
    for (std::size_t v = 0; v < variates_of(symbol, options_) && !symbol.value_offsets.empty();
         ++v) {
      offsets += fmt::format("|{}", symbol.offset_of(request.target + v));
    }
    job.key = key_of(with, request, variates_of(symbol, options_), job.id + offsets);
    const auto [known, is_new] = answers_.try_emplace(job.key, job.answer);
    answers.push_back(known->second);
    if (!is_new) continue;
    const std::span<const float> found = cache_.find(job.key);
    stored_.emplace_back(found.begin(), found.end());
    const std::size_t size = variates_of(symbol, options_) * request.steps * wanted_of(with).size();
    if (found.size() == size) {
      ++statistics_.cache_hits;
      continue;
    }
    groups[&with].push_back(std::move(job));
  }
  statistics_.requested += requests.size();
  statistics_.distinct = answers_.size();
  done_ = 0;
  total_ = 0;
  for (const auto& [with, jobs] : groups) total_ += jobs.size();
  for (const auto& [with, jobs] : groups) run_jobs(symbols, *with, jobs);
  return answers;
}

std::size_t Predictor::batch_size(std::span<const Symbol> symbols, const Parameters& parameters,
                                  std::span<const Job> jobs) const {
  const bool drawn = needs_trajectories(parameters, jobs.front().request.steps, patch_);
  std::size_t values = 0;
  std::size_t samples = 0;
  std::size_t count = 0;
  while (count < std::min(jobs.size(), kMaxBatch)) {
    const Request& request = jobs[count].request;
    const std::size_t variates = variates_of(symbols[request.symbol], options_);
    values += request.bars * variates;
    if (drawn) samples += parameters.samples * request.steps * variates;
    if (count > 0 && (values > kMaxValues || samples > kMaxDrawn)) break;
    ++count;
  }
  return count;
}

void Predictor::run_jobs(std::span<const Symbol> symbols, const Parameters& parameters,
                         std::span<const Job> jobs) {
  while (!jobs.empty()) {
    const std::size_t count = batch_size(symbols, parameters, jobs);
    run_batch(symbols, parameters, jobs.first(count));
    done_ += count;
    jobs = jobs.subspan(count);
  }
}

void Predictor::run_batch(std::span<const Symbol> symbols, const Parameters& parameters,
                          std::span<const Job> jobs) {
  Batch batch;
  batch.values.resize(jobs.size());
  batch.masks.resize(jobs.size());
  batch.offsets.resize(jobs.size());
  batch.effects.resize(jobs.size());
  const double scale = input_scale(parameters);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Request& request = jobs[i].request;
    const Symbol& symbol = symbols[request.symbol];
    const std::size_t variates = variates_of(symbol, options_);
    const std::size_t first = request.last + 1 - request.bars;
    for (std::size_t v = request.target; v < request.target + variates; ++v) {
      show(parameters.transform, scale, symbol.offset_of(v),
           symbol.values_of(v).subspan(first, request.bars),
           symbol.mask_of(v).subspan(first, request.bars), batch.values[i], batch.masks[i]);
      if (!uses_covariates(symbol, options_) || parameters.transform != Transform::none) continue;
      batch.effects[i].push_back(
          take_out(symbol, request, v, std::span(batch.values[i]).last(request.bars)));
    }
    Series& series = batch.series.emplace_back();
    series.id = jobs[i].id;
    series.variates = variates;
    series.steps = batch.values[i].size() / variates;
    series.values = batch.values[i];
    series.mask = batch.masks[i];
    if (symbol.value_offsets.empty() || parameters.transform != Transform::none) continue;
    for (std::size_t v = request.target; v < request.target + variates; ++v) {
      batch.offsets[i].push_back(symbol.offset_of(v) * scale);
    }
    series.value_offsets = batch.offsets[i];
  }

  const Wanted wanted = wanted_of(parameters);
  ForecastOptions options =
      forecast_options(parameters, wanted, jobs.front().request.steps, patch_);
  options.seed = options_.seed;
  options.decode = options_.decode;
  options.decoding = options_.decoding;
  options.tails = options_.tails;
  options.guards.clamp = options_.guards.clamp;
  take_views(options, options_.views);
  if (options.across_missing && !options.views.any() &&
      std::ranges::any_of(batch.series, [](const Series& s) { return missing_end(s) > 0; })) {
    options.keep_samples = true;  // fewer steps are exact
  }
  options.progress = [&](std::size_t done, std::size_t of) {
    if (!options_.progress) return true;
    return options_.progress(done_ + jobs.size() * done / std::max<std::size_t>(of, 1), total_);
  };
  const double begun = seconds_now();
  const std::vector<Forecast> forecasts = forecaster_.forecast(batch.series, options);
  calls_.push_back(seconds_now() - begun);
  statistics_.seconds += calls_.back();
  statistics_.forecast += jobs.size();
  statistics_.batch = std::max(statistics_.batch, jobs.size());

  time_alone(batch, options);

  std::vector<CachedPrediction> made;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Request& request = jobs[i].request;
    const Symbol& symbol = symbols[request.symbol];
    std::vector<double> bases, offsets;
    bases.reserve(batch.series[i].variates);
    for (std::size_t v = 0; v < batch.series[i].variates; ++v) {
      const double offset = symbol.offset_of(request.target + v);
      if (!symbol.value_offsets.empty()) offsets.push_back(offset);
      bases.push_back(offset + symbol.values_of(request.target + v)[request.last]);
    }
    std::vector<float>& to = stored_[jobs[i].answer];
    to = read_forecast(forecasts[i], parameters, wanted, bases, patch_, offsets);
    const std::size_t size = to.size() / std::max<std::size_t>(1, batch.effects[i].size());
    for (std::size_t v = 0; v < batch.effects[i].size(); ++v) {
      put_back(batch.effects[i][v], wanted.points.size(), std::span(to).subspan(v * size, size));
    }
    stretch(to, wanted, wanted.points.size() + 1 + kLevels / 2, parameters);
    statistics_.bounded += keep_bounds(to, wanted, options_.guards, offsets);
    note_applied(forecasts[i].applied);
    const bool finite = std::ranges::all_of(to, [](float x) { return std::isfinite(x); });
    if (finite && !options_.cache_dir.empty()) made.push_back({jobs[i].key, to});
  }
  cache_.add(std::move(made));
}

void Predictor::note_applied(const Applied& applied) {
  for (const double scale : applied.input_scale) {
    const bool first = statistics_.most_scale == 0;
    statistics_.least_scale = first ? scale : std::min(statistics_.least_scale, scale);
    statistics_.most_scale = std::max(statistics_.most_scale, scale);
  }
  statistics_.across += applied.missing_end > 0 ? 1 : 0;
  statistics_.clamped += applied.clamped;
}

/// What a service would wait for: some contexts once more, one to a call. The first one of a kind
/// builds its plan and is not counted.
void Predictor::time_alone(const Batch& batch, const ForecastOptions& options) {
  ForecastOptions quiet = options;
  quiet.progress = nullptr;
  std::vector<Forecast> out(1);
  for (std::size_t i = 0; i < batch.series.size() && alone_.size() < kMaxAlone; ++i) {
    if (i == 0) forecaster_.forecast({&batch.series[i], 1}, quiet, out);
    const double begun = seconds_now();
    forecaster_.forecast({&batch.series[i], 1}, quiet, out);
    alone_.push_back(seconds_now() - begun);
  }
}

RunStatistics Predictor::statistics() const {
  RunStatistics all = statistics_;
  const auto percentiles = [](std::vector<double> sorted, double& p50, double& p95, double& p99) {
    if (sorted.empty()) return;
    std::ranges::sort(sorted);
    const auto at = [&](double q) {
      return sorted[static_cast<std::size_t>(
          std::lround(q * static_cast<double>(sorted.size() - 1)))];
    };
    p50 = at(0.5);
    p95 = at(0.95);
    p99 = at(0.99);
  };
  percentiles(calls_, all.call_p50, all.call_p95, all.call_p99);
  percentiles(alone_, all.latency_p50, all.latency_p95, all.latency_p99);
  all.timed_alone = alone_.size();
  all.series_per_second = all.seconds > 0 ? static_cast<double>(all.forecast) / all.seconds : 0;
  return all;
}

}  // namespace toto::backtest
