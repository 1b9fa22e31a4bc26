// SPDX-License-Identifier: Apache-2.0
#include "engine/collect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backend/parallel.h"

namespace toto {
namespace {

/// The four parameter arrays of one step: [4][K].
struct StepParameters {
  std::span<const double> df, loc, scale, probability;
};

StepParameters split(std::span<const double> params) {
  const std::size_t k = params.size() / 4;
  return {params.subspan(0, k), params.subspan(k, k), params.subspan(2 * k, k),
          params.subspan(3 * k, k)};
}

}  // namespace

Collector::Collector(const Backend& backend, const Toto1Config& config)
    : backend_(backend),
      patch_(static_cast<std::size_t>(config.patch_size)),
      components_(static_cast<std::size_t>(config.components)) {
  for (int i = 0; i < backend.workers(); ++i) workers_.push_back({Mixture(components_), {}, {}});
}

void Collector::reset(std::span<const Series> series, const ForecastOptions& options,
                      std::span<const double> levels, std::span<Forecast> out) {
  series_ = series;
  options_ = &options;
  levels_ = levels;
  out_ = out;
  const bool exact = options.quantiles_from == QuantilesFrom::automatic || options.mean_only;
  exact_steps_ = exact ? std::min(options.horizon, patch_) : 0;
  sampled_ = !options.mean_only && (exact_steps_ < options.horizon || options.keep_samples);
  wide_levels_.assign(levels.begin(), levels.end());
  // The median is always wanted; it takes its place among the ascending levels.
  median_at_ = static_cast<std::size_t>(
      std::lower_bound(wide_levels_.begin(), wide_levels_.end(), 0.5) - wide_levels_.begin());
  if (median_at_ == wide_levels_.size() || wide_levels_[median_at_] != 0.5) {
    wide_levels_.insert(wide_levels_.begin() + static_cast<std::ptrdiff_t>(median_at_), 0.5);
  }
  // Of a mean alone there are no statistics: its one trajectory is it.
  wanted_.levels = wide_levels_;
  wanted_.exact_steps = options.mean_only ? 0 : exact_steps_;
  wanted_.sampled = sampled_ && exact_steps_ < options.horizon;
  wanted_.samples = options.keep_samples || options.mean_only;
  wanted_.parameters = options.keep_parameters;
  for (Worker& worker : workers_) {
    worker.found.resize(wide_levels_.size());
    if (sampled_) worker.column.resize(options.num_samples);
  }
  for (std::size_t i = 0; i < series.size(); ++i) start(out[i], series[i]);
}

void Collector::start(Forecast& f, const Series& s) const {
  const ForecastOptions& options = *options_;
  const std::size_t cells = s.variates * options.horizon;
  f.id.assign(s.id);
  f.variates = s.variates;
  f.horizon = options.horizon;
  f.exact_steps = exact_steps_;
  f.num_samples = sampled_ ? options.num_samples : 0;
  f.mean.assign(cells, 0.0F);
  f.levels.assign(levels_.begin(), levels_.end());
  const std::size_t spread = options.mean_only ? 0 : cells;
  f.median.assign(spread, 0.0F);
  f.std.assign(spread, 0.0F);
  f.quantiles.assign(spread * levels_.size(), 0.0F);
  f.samples.assign(options.keep_samples ? f.num_samples * cells : 0, 0.0F);
  const std::size_t kept = options.keep_parameters ? cells : 0;
  Parameters& p = f.parameters;
  p.components = options.keep_parameters ? components_ : 0;
  for (std::vector<double>* part : {&p.df, &p.loc, &p.scale, &p.probability}) {
    part->assign(kept * components_, 0.0);
  }
  p.affine_loc.assign(kept, 0.0);
  p.affine_scale.assign(kept, 0.0);
}

void Collector::begin(std::size_t first, std::size_t count) {
  first_ = first;
  count_ = count;
  formed_ = false;
  if (!sampled_ || options_->keep_samples) return;
  sample_at_.clear();
  std::size_t total = 0;
  for (std::size_t i = first; i < first + count; ++i) {
    sample_at_.push_back(total);
    total += out_[i].num_samples * out_[i].variates * out_[i].horizon;
  }
  if (samples_.size() < total) samples_.resize(total);
}

float* Collector::samples_of(std::size_t series) {
  return options_->keep_samples ? out_[series].samples.data()
                                : samples_.data() + sample_at_[series - first_];
}

bool Collector::wants_parameters(std::int32_t iteration) const {
  return options_->keep_parameters || (iteration == 0 && !options_->mean_only && exact_steps_ > 0);
}

void Collector::parameters(const PatchView& at, std::span<const double> params,
                           std::span<const double> loc, std::span<const double> scale) {
  Forecast& f = out_[at.series];
  if (at.first_sample != 0) return;
  if (options_->keep_parameters) keep_parameters(f, at, params, loc, scale);
  if (at.iteration != 0 || options_->mean_only || exact_steps_ == 0) return;
  const std::size_t stride = 4 * components_;
  const auto steps = static_cast<std::size_t>(at.steps);
  const auto cells = static_cast<std::int64_t>(f.variates * exact_steps_);
  parallel(backend_, cells, [&](std::int64_t begin, std::int64_t end, int worker) noexcept {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const std::size_t v = i / exact_steps_;
      const std::size_t t = i % exact_steps_;
      exact_step(workers_[static_cast<std::size_t>(worker)], f, v * f.horizon + t,
                 params.subspan((v * steps + t) * stride, stride), loc[v * patch_ + t],
                 scale[v * patch_ + t]);
    }
  });
}

void Collector::exact_step(Worker& worker, Forecast& f, std::size_t cell,
                           std::span<const double> params, double loc, double scale) const {
  const StepParameters p = split(params);
  Mixture& mixture = worker.mixture;
  mixture.assign(p.df, p.loc, p.scale, p.probability);
  mixture.quantiles(wide_levels_, worker.found);
  f.mean[cell] = static_cast<float>(mixture.mean() * scale + loc);
  f.std[cell] = static_cast<float>(std::sqrt(mixture.variance()) * scale);
  for (double& q : worker.found) q = q * scale + loc;
  put_quantiles(f, cell, worker.found);
}

void Collector::put_quantiles(Forecast& f, std::size_t cell, std::span<const double> found) const {
  const std::size_t cells = f.variates * f.horizon;
  f.median[cell] = static_cast<float>(found[median_at_]);
  const bool extra = wide_levels_.size() != levels_.size();  // the median was not asked for
  std::size_t level = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (extra && i == median_at_) continue;
    f.quantiles[level++ * cells + cell] = static_cast<float>(found[i]);
  }
}

void Collector::keep_parameters(Forecast& f, const PatchView& at, std::span<const double> params,
                                std::span<const double> loc, std::span<const double> scale) const {
  const auto k = static_cast<std::size_t>(at.components);
  const auto steps = static_cast<std::size_t>(at.steps);
  const std::size_t first = static_cast<std::size_t>(at.iteration) * patch_;
  for (std::size_t v = 0; v < f.variates; ++v) {  // of trajectory 0
    for (std::size_t t = 0; t < steps && first + t < f.horizon; ++t) {
      const std::size_t cell = v * f.horizon + first + t;
      const StepParameters p = split(params.subspan((v * steps + t) * 4 * k, 4 * k));
      const auto to = static_cast<std::ptrdiff_t>(cell * k);
      std::copy(p.df.begin(), p.df.end(), f.parameters.df.begin() + to);
      std::copy(p.loc.begin(), p.loc.end(), f.parameters.loc.begin() + to);
      std::copy(p.scale.begin(), p.scale.end(), f.parameters.scale.begin() + to);
      std::copy(p.probability.begin(), p.probability.end(), f.parameters.probability.begin() + to);
      f.parameters.affine_loc[cell] = loc[v * patch_ + t];
      f.parameters.affine_scale[cell] = scale[v * patch_ + t];
    }
  }
}

void Collector::values(const PatchView& at, std::span<const double> y) {
  Forecast& f = out_[at.series];
  const std::size_t first = static_cast<std::size_t>(at.iteration) * patch_;
  const std::size_t count = std::min(static_cast<std::size_t>(at.steps), f.horizon - first);
  float* const all = options_->mean_only ? f.mean.data() : samples_of(at.series);
  for (std::size_t lane = 0; lane * patch_ < y.size(); ++lane) {
    const std::size_t row = static_cast<std::size_t>(at.first_sample) * f.variates + lane;
    float* to = all + row * f.horizon + first;
    for (std::size_t t = 0; t < count; ++t) to[t] = static_cast<float>(y[lane * patch_ + t]);
  }
}

void Collector::put_step(Forecast& f, std::size_t cell, std::span<const float> step,
                         bool exact) const {
  const std::size_t cells = f.variates * f.horizon;
  f.mean[cell] = step[0];
  f.std[cell] = step[1];
  std::size_t level = 0;
  float value = step[2];
  for (std::size_t i = 0; i < wide_levels_.size(); ++i) {
    if (!exact || !(step[2 + i] < value)) value = step[2 + i];  // they ascend but for rounding
    if (i == median_at_) f.median[cell] = value;
    if (level < levels_.size() && levels_[level] == wide_levels_[i]) {
      f.quantiles[level * cells + cell] = value;
      ++level;
    }
  }
}

void Collector::results(const SeriesResults& r) {
  formed_ = true;
  Forecast& f = out_[r.series];
  for (std::size_t v = 0; v < f.variates; ++v) {
    for (std::size_t t = 0; t < f.horizon; ++t) {
      const std::size_t cell = v * f.horizon + t;
      if (t < wanted_.exact_steps) {
        put_step(f, cell, r.exact.subspan((v * r.exact_steps + t) * r.stride, r.stride), true);
      } else if (!r.sampled.empty()) {
        const std::size_t later = v * (r.horizon - r.exact_steps) + t - r.exact_steps;
        put_step(f, cell, r.sampled.subspan(later * r.stride, r.stride), false);
      }
      if (r.samples.empty()) continue;
      float* const all = options_->mean_only ? f.mean.data() : f.samples.data();
      const auto from = r.samples.subspan((v * r.horizon + t) * r.trajectories, r.trajectories);
      for (std::size_t n = 0; n < from.size(); ++n) {
        all[n * f.variates * f.horizon + cell] = from[n];
      }
    }
  }
}

void Collector::finish() {
  for (std::size_t index = first_; index < first_ + count_; ++index) {
    Forecast& f = out_[index];
    const std::size_t left = f.horizon - exact_steps_;
    if (sampled_ && left > 0 && !formed_) {
      const float* samples = samples_of(index);
      parallel(backend_, static_cast<std::int64_t>(f.variates * left),
               [&](std::int64_t begin, std::int64_t end, int worker) noexcept {
                 for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end);
                      ++i) {
                   sampled_step(workers_[static_cast<std::size_t>(worker)], f,
                                i / left * f.horizon + exact_steps_ + i % left, samples);
                 }
               });
    }
    put_covariates(f, series_[index]);
    for (const std::vector<float>* part : {&f.mean, &f.median, &f.quantiles}) {
      const auto bad =
          std::find_if(part->begin(), part->end(), [](float x) { return !std::isfinite(x); });
      if (bad == part->end()) continue;
      const auto cell = static_cast<std::size_t>(bad - part->begin()) % f.mean.size();
      throw Error(ExitStatus::internal, "nonfinite_forecast",
                  fmt::format("variate {}, step {} is not a finite number", cell / f.horizon,
                              cell % f.horizon),
                  fmt::format("series '{}'", f.id),
                  "values near the float32 limit cannot be forecast; rescale them");
    }
  }
}

void Collector::sampled_step(Worker& worker, Forecast& f, std::size_t cell,
                             const float* all) const {
  const Samples samples{all + cell, f.num_samples, f.variates * f.horizon};
  f.mean[cell] = sample_mean(samples);
  f.std[cell] = sample_std(samples);
  const std::span<const float> sorted = sort_samples(samples, worker.column);
  for (std::size_t i = 0; i < wide_levels_.size(); ++i) {
    worker.found[i] = interpolated_quantile(sorted, static_cast<float>(wide_levels_[i]));
  }
  put_quantiles(f, cell, worker.found);
}

/// Known covariates are what they are, at every level (spec A11.3).
void Collector::put_covariates(Forecast& f, const Series& series) const {
  if (series.future_exogenous.empty()) return;
  const std::size_t cells = f.variates * f.horizon;
  const std::size_t first = (f.variates - series.exogenous) * f.horizon;
  for (std::size_t i = 0; i < series.exogenous * f.horizon; ++i) {
    const float value = series.future_exogenous[i];
    f.mean[first + i] = value;
    if (options_->mean_only) continue;
    f.median[first + i] = value;
    f.std[first + i] = 0.0F;
    for (std::size_t level = 0; level < levels_.size(); ++level) {
      f.quantiles[level * cells + first + i] = value;
    }
  }
}

void Collector::progress(std::size_t done, std::size_t total) {
  if (options_->progress && !options_->progress(done, total)) {
    throw Error(ExitStatus::interrupted, "interrupted", "stopped before it was done");
  }
}

}  // namespace toto
