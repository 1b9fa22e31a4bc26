// SPDX-License-Identifier: Apache-2.0
#include "forecast/collect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace toto {
namespace {

/// Probabilities behind the four parameter arrays of one step: [4][K].
struct StepParameters {
  std::span<const double> df, loc, scale, probability;
};

StepParameters split(std::span<const double> params, std::size_t k) {
  return {params.subspan(0, k), params.subspan(k, k), params.subspan(2 * k, k),
          params.subspan(3 * k, k)};
}

}  // namespace

Collector::Collector(std::span<const Series> series, const ForecastOptions& options,
                     std::span<const float> levels, std::int32_t patch, std::size_t components,
                     std::span<Forecast> out)
    : series_(series), options_(options), levels_(levels), out_(out), mixture_(components) {
  const bool exact = options.quantiles_from == QuantilesFrom::automatic || options.mean_only;
  exact_steps_ = exact ? std::min(options.horizon, static_cast<std::size_t>(patch)) : 0;
  sampled_ = !options.mean_only && (exact_steps_ < options.horizon || options.keep_samples);
  wide_levels_.assign(levels.begin(), levels.end());
  // The median is always wanted; it takes its place among the ascending levels.
  median_at_ = static_cast<std::size_t>(
      std::lower_bound(wide_levels_.begin(), wide_levels_.end(), 0.5) - wide_levels_.begin());
  if (median_at_ == wide_levels_.size() || wide_levels_[median_at_] != 0.5) {
    wide_levels_.insert(wide_levels_.begin() + static_cast<std::ptrdiff_t>(median_at_), 0.5);
  }
  found_.resize(wide_levels_.size());
  for (std::size_t i = 0; i < series.size(); ++i) start(out[i], series[i], components);
}

void Collector::start(Forecast& f, const Series& s, std::size_t components) const {
  const std::size_t cells = s.variates * options_.horizon;
  f.id.assign(s.id);
  f.variates = s.variates;
  f.horizon = options_.horizon;
  f.exact_steps = exact_steps_;
  f.num_samples = sampled_ ? options_.num_samples : 0;
  f.mean.assign(cells, 0.0F);
  f.levels.assign(levels_.begin(), levels_.end());
  const std::size_t spread = options_.mean_only ? 0 : cells;
  f.median.assign(spread, 0.0F);
  f.std.assign(spread, 0.0F);
  f.quantiles.assign(spread * levels_.size(), 0.0F);
  f.samples.assign(f.num_samples * cells, 0.0F);
  const std::size_t kept = options_.keep_parameters ? cells : 0;
  Parameters& p = f.parameters;
  p.components = options_.keep_parameters ? components : 0;
  for (std::vector<double>* part : {&p.df, &p.loc, &p.scale, &p.probability}) {
    part->assign(kept * components, 0.0);
  }
  p.affine_loc.assign(kept, 0.0);
  p.affine_scale.assign(kept, 0.0);
}

bool Collector::wants_parameters(std::int32_t iteration) const {
  return options_.keep_parameters || (iteration == 0 && !options_.mean_only && exact_steps_ > 0);
}

void Collector::parameters(const PatchView& at, std::span<const double> params,
                           std::span<const double> loc, std::span<const double> scale) {
  Forecast& f = out_[at.series];
  if (at.first_sample != 0) return;
  if (options_.keep_parameters) keep_parameters(f, at, params, loc, scale);
  if (at.iteration != 0 || options_.mean_only || exact_steps_ == 0) return;
  const auto k = static_cast<std::size_t>(at.components);
  const auto steps = static_cast<std::size_t>(at.steps);
  for (std::size_t v = 0; v < f.variates; ++v) {
    for (std::size_t t = 0; t < exact_steps_; ++t) {
      const std::size_t affine = v * static_cast<std::size_t>(at.patch) + t;
      exact_step(f, v * f.horizon + t, params.subspan((v * steps + t) * 4 * k, 4 * k), loc[affine],
                 scale[affine]);
    }
  }
}

void Collector::exact_step(Forecast& f, std::size_t cell, std::span<const double> params,
                           double loc, double scale) {
  const StepParameters p = split(params, params.size() / 4);
  mixture_.assign(p.df, p.loc, p.scale, p.probability);
  mixture_.quantiles(wide_levels_, found_);
  f.mean[cell] = static_cast<float>(mixture_.mean() * scale + loc);
  f.std[cell] = static_cast<float>(std::sqrt(mixture_.variance()) * scale);
  for (double& q : found_) q = q * scale + loc;
  put_quantiles(f, cell);
}

void Collector::put_quantiles(Forecast& f, std::size_t cell) const {
  const std::size_t cells = f.variates * f.horizon;
  f.median[cell] = static_cast<float>(found_[median_at_]);
  const bool extra = wide_levels_.size() != levels_.size();  // the median was not asked for
  std::size_t level = 0;
  for (std::size_t i = 0; i < found_.size(); ++i) {
    if (extra && i == median_at_) continue;
    f.quantiles[level++ * cells + cell] = static_cast<float>(found_[i]);
  }
}

void Collector::keep_parameters(Forecast& f, const PatchView& at, std::span<const double> params,
                                std::span<const double> loc, std::span<const double> scale) const {
  const auto k = static_cast<std::size_t>(at.components);
  const auto steps = static_cast<std::size_t>(at.steps);
  const auto patch = static_cast<std::size_t>(at.patch);
  const std::size_t first = static_cast<std::size_t>(at.iteration) * patch;
  for (std::size_t v = 0; v < f.variates; ++v) {  // of trajectory 0
    for (std::size_t t = 0; t < steps && first + t < f.horizon; ++t) {
      const std::size_t cell = v * f.horizon + first + t;
      const StepParameters p = split(params.subspan((v * steps + t) * 4 * k, 4 * k), k);
      const auto to = static_cast<std::ptrdiff_t>(cell * k);
      std::copy(p.df.begin(), p.df.end(), f.parameters.df.begin() + to);
      std::copy(p.loc.begin(), p.loc.end(), f.parameters.loc.begin() + to);
      std::copy(p.scale.begin(), p.scale.end(), f.parameters.scale.begin() + to);
      std::copy(p.probability.begin(), p.probability.end(), f.parameters.probability.begin() + to);
      f.parameters.affine_loc[cell] = loc[v * patch + t];
      f.parameters.affine_scale[cell] = scale[v * patch + t];
    }
  }
}

void Collector::values(const PatchView& at, std::span<const double> y) {
  Forecast& f = out_[at.series];
  const auto patch = static_cast<std::size_t>(at.patch);
  const std::size_t first = static_cast<std::size_t>(at.iteration) * patch;
  const std::size_t count = std::min(static_cast<std::size_t>(at.steps), f.horizon - first);
  for (std::size_t lane = 0; lane * patch < y.size(); ++lane) {
    const std::size_t row = static_cast<std::size_t>(at.first_sample) * f.variates + lane;
    float* to = (options_.mean_only ? f.mean.data() : f.samples.data()) + row * f.horizon + first;
    for (std::size_t t = 0; t < count; ++t) to[t] = static_cast<float>(y[lane * patch + t]);
  }
}

void Collector::finished(std::size_t index) {
  Forecast& f = out_[index];
  if (sampled_) {
    for (std::size_t v = 0; v < f.variates; ++v) {
      for (std::size_t t = exact_steps_; t < f.horizon; ++t) sampled_step(f, v * f.horizon + t);
    }
    if (!options_.keep_samples) f.samples.clear();
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

void Collector::sampled_step(Forecast& f, std::size_t cell) {
  const Samples samples{f.samples.data() + cell, f.num_samples, f.variates * f.horizon};
  f.mean[cell] = sample_mean(samples);
  f.std[cell] = sample_std(samples);
  column_.resize(f.num_samples);
  const std::span<const float> sorted = sort_samples(samples, column_);
  for (std::size_t i = 0; i < found_.size(); ++i) {
    found_[i] = interpolated_quantile(sorted, static_cast<float>(wide_levels_[i]));
  }
  put_quantiles(f, cell);
}

/// Known covariates are what they are, at every level (spec A11.3).
void Collector::put_covariates(Forecast& f, const Series& series) const {
  if (series.future_exogenous.empty()) return;
  const std::size_t cells = f.variates * f.horizon;
  const std::size_t first = (f.variates - series.exogenous) * f.horizon;
  for (std::size_t i = 0; i < series.exogenous * f.horizon; ++i) {
    const float value = series.future_exogenous[i];
    f.mean[first + i] = value;
    if (options_.mean_only) continue;
    f.median[first + i] = value;
    f.std[first + i] = 0.0F;
    for (std::size_t level = 0; level < levels_.size(); ++level) {
      f.quantiles[level * cells + first + i] = value;
    }
  }
}

void Collector::progress(std::size_t done, std::size_t total) {
  if (options_.progress && !options_.progress(done, total)) {
    throw Error(ExitStatus::interrupted, "interrupted", "stopped before it was done");
  }
}

}  // namespace toto
