// SPDX-License-Identifier: Apache-2.0
#include "engine/forecast_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backend/cpu/series_kernels.h"
#include "statistics/statistics.h"

namespace toto {

std::size_t statistic_rows(const ForecastOptions& options) {
  if (options.mean_only) return 1;
  std::vector<double> levels = options.levels;
  std::sort(levels.begin(), levels.end());
  const auto each = std::unique(levels.begin(), levels.end()) - levels.begin();
  const Select& s = options.select;
  return std::size_t{s.mean} + std::size_t{s.median} + std::size_t{s.std} +
         static_cast<std::size_t>(each);
}

std::size_t array_size(std::size_t variates, const ForecastOptions& options) {
  return variates * statistic_rows(options) * options.horizon;
}

ForecastWriter::ForecastWriter(const Network& net, const ModelDefaults& defaults)
    : net_(net), defaults_(defaults), components_(static_cast<std::size_t>(net.components())) {}

bool ForecastWriter::exact_on_host() const {
  return net_.components() > net_.backend().statistics_limits().components;
}

std::size_t ForecastWriter::exact_steps(const ForecastOptions& options) const {
  if (options.quantiles_from != QuantilesFrom::automatic && !options.mean_only) return 0;
  return static_cast<std::size_t>(net_.exact_steps(static_cast<std::int32_t>(options.horizon)));
}

Generation ForecastWriter::generation_of(const ForecastOptions& options) const {
  Generation g;
  g.mean = options.mean_only;
  g.cached = options.decode == Decode::cached;
  g.coherent = defaults_.meaning(options.paths) == Paths::coherent && !options.mean_only;
  g.exact = exact(options) && !exact_on_host();
  g.time_device = options.time_device;
  return g;
}

/// Of a mean alone there are no statistics: its one trajectory is it.
bool ForecastWriter::exact(const ForecastOptions& options) {
  return !options.mean_only && options.quantiles_from == QuantilesFrom::automatic;
}

bool ForecastWriter::alike(const ForecastOptions& a, const ForecastOptions& b,
                           const ModelDefaults& defaults) {
  return a.mean_only == b.mean_only && a.decode == b.decode &&
         defaults.meaning(a.paths) == defaults.meaning(b.paths) && exact(a) == exact(b) &&
         a.time_device == b.time_device;
}

const AskedLevels* ForecastWriter::find_levels(const ForecastOptions& options) const {
  for (std::size_t i = 0; i < levels_used_; ++i) {
    const AskedLevels& levels = levels_[i];
    if (levels.median == options.select.median && levels.given == options.levels) return &levels;
  }
  return nullptr;
}

const AskedLevels& ForecastWriter::add_levels(const ForecastOptions& options) {
  if (const AskedLevels* const there = find_levels(options)) return *there;
  if (levels_used_ == levels_.size()) levels_.emplace_back();
  AskedLevels& levels = levels_[levels_used_++];
  levels.given.assign(options.levels.begin(), options.levels.end());
  levels.median = options.select.median;
  levels.asked.assign(options.levels.begin(), options.levels.end());
  std::sort(levels.asked.begin(), levels.asked.end());
  levels.asked.erase(std::unique(levels.asked.begin(), levels.asked.end()), levels.asked.end());
  levels.wide = levels.asked;
  levels.median_at = levels.wide.size();
  if (options.select.median) {
    const auto at = std::lower_bound(levels.wide.begin(), levels.wide.end(), 0.5);
    levels.median_at = static_cast<std::size_t>(at - levels.wide.begin());
    if (at == levels.wide.end() || *at != 0.5) levels.wide.insert(at, 0.5);
  }
  return levels;
}

void ForecastWriter::start(std::span<const ForecastJob> jobs, const Progress* progress,
                           std::vector<SeriesRequest>& requests,
                           const std::function<void()>* handed_over) {
  jobs_ = jobs;
  progress_ = progress;
  handed_over_ = handed_over;
  levels_used_ = 0;
  on_host_ = false;
  // Spans into levels_ must stay: room for as many as there can be.
  if (levels_.size() < jobs.size()) levels_.resize(jobs.size());
  requests.clear();
  const ForecastOptions* last = nullptr;
  for (const ForecastJob& job : jobs) {
    if (job.options == last) {
      requests.push_back(requests.back());
      requests.back().series = job.series;
      continue;
    }
    last = job.options;
    const AskedLevels& levels = add_levels(*job.options);
    requests.push_back(request_of(*job.series, *job.options));
    requests.back().levels = levels.wide;
    on_host_ = on_host_ || exact_on_host() ||
               requests.back().trajectories > net_.backend().statistics_limits().samples;
  }
}

SeriesRequest ForecastWriter::request_of(const Series& series,
                                         const ForecastOptions& options) const {
  SeriesRequest r;
  r.series = &series;
  r.horizon = options.horizon;
  r.seed = options.seed.value_or(0);  // else the forecaster sets it
  r.decoding = options.decoding;
  r.tails = defaults_.meaning(options.tails);
  r.align = options.align;
  r.samples = options.keep_samples || options.mean_only;
  r.parameters = options.keep_parameters || (exact(options) && exact_on_host());
  if (options.mean_only) {
    r.trajectories = 1;
  } else if (exact_steps(options) < options.horizon || options.keep_samples) {
    r.trajectories = static_cast<std::int32_t>(options.num_samples);
  }
  return r;
}

void ForecastWriter::handed_over() {
  if (handed_over_ != nullptr && *handed_over_) (*handed_over_)();
}

void ForecastWriter::expect(std::size_t request) {
  const ForecastJob& job = jobs_[request];
  const ForecastOptions& options = *job.options;
  const AskedLevels& levels = *find_levels(options);
  Forecast& f = *job.out;
  const std::size_t cells = job.series->variates * options.horizon;
  f.id.assign(job.series->id);
  f.variates = job.series->variates;
  f.horizon = options.horizon;
  f.exact_steps = exact_steps(options);
  const bool drawn =
      !options.mean_only && (f.exact_steps < options.horizon || options.keep_samples);
  f.num_samples = drawn ? options.num_samples : 0;
  f.levels.assign(levels.asked.begin(), levels.asked.end());
  const std::size_t own = job.array.empty() ? cells : 0;
  const std::size_t spread = options.mean_only ? 0 : own;
  // All of it is written over.
  f.mean.resize(options.mean_only || options.select.mean ? own : 0);
  f.median.resize(options.select.median ? spread : 0);
  f.std.resize(options.select.std ? spread : 0);
  f.quantiles.resize(spread * levels.asked.size());
  f.samples.resize(options.keep_samples ? f.num_samples * cells : 0);
  const std::size_t kept = options.keep_parameters ? cells : 0;
  Parameters& p = f.parameters;
  p.components = options.keep_parameters ? components_ : 0;
  for (std::vector<double>* part : {&p.df, &p.loc, &p.scale, &p.probability}) {
    part->assign(kept * components_, 0.0);
  }
  p.affine_loc.assign(kept, 0.0);
  p.affine_scale.assign(kept, 0.0);
}

StatisticsTarget ForecastWriter::target_of(const ForecastJob& job) {
  const ForecastOptions& options = *job.options;
  Forecast& f = *job.out;
  StatisticsTarget to;
  to.levels = options.mean_only ? 0 : f.levels.size();
  if (job.array.empty()) {
    const auto part = [](std::vector<float>& v) { return v.empty() ? nullptr : v.data(); };
    to.mean = part(f.mean);
    to.median = part(f.median);
    to.std = part(f.std);
    to.quantiles = part(f.quantiles);
    to.variate = f.horizon;
    to.level = f.variates * f.horizon;
    return to;
  }
  float* at = job.array.data();
  const auto row = [&](bool wanted) {
    float* const found = wanted ? at : nullptr;
    if (wanted) at += f.horizon;
    return found;
  };
  to.mean = row(options.mean_only || options.select.mean);
  to.median = row(!options.mean_only && options.select.median);
  to.std = row(!options.mean_only && options.select.std);
  to.quantiles = to.levels > 0 ? at : nullptr;
  to.variate = job.array.size() / std::max<std::size_t>(f.variates, 1);
  to.level = f.horizon;
  return to;
}

/// Records of mean, deviation and quantiles of `wide`, `stride` apart, of `count` steps. Exact
/// quantiles ascend but for rounding. `cell`: of the first step, in the target's rows.
void ForecastWriter::put_steps(const AskedLevels& levels, const StatisticsTarget& to,
                               std::size_t cell, std::span<const float> from, std::size_t stride,
                               std::size_t count, bool exact) {
  const auto from_cell = [cell](float* row) { return row == nullptr ? nullptr : row + cell; };
  const bool extra = levels.wide.size() != levels.asked.size();  // the median was not asked for
  cpu::RecordRows rows{from_cell(to.mean), from_cell(to.std), from_cell(to.quantiles), to.level};
  if (extra) {
    rows.apart_at = levels.median_at;
    rows.apart = from_cell(to.median);
  }
  const std::size_t numbers = cpu::RecordRows::kLevels + levels.wide.size();
  cpu::series_kernels().take_records(from.data(), stride, count, rows, numbers, exact);
  if (extra || to.median == nullptr) return;
  std::copy_n(rows.row(cpu::RecordRows::kLevels + levels.median_at), count, to.median + cell);
}

void ForecastWriter::results(const SeriesResults& r) {
  const ForecastJob& job = jobs_[r.request];
  const ForecastOptions& options = *job.options;
  const AskedLevels& levels = *find_levels(options);
  Forecast& f = *job.out;
  const StatisticsTarget to = target_of(job);
  if (!options.mean_only) {
    const auto put = [&](std::span<const float> all, std::size_t steps, std::size_t first,
                         std::size_t end, bool exact) {
      if (all.empty() || first >= end) return;
      const std::size_t each = steps * r.stride;
      for (std::size_t v = 0; v < f.variates; ++v) {
        put_steps(levels, to, v * to.variate + first, all.subspan(v * each, each), r.stride,
                  end - first, exact);
      }
    };
    put(r.exact, r.exact_steps, 0, std::min(f.exact_steps, f.horizon), true);
    put(r.sampled, r.horizon - r.exact_steps, f.exact_steps, f.horizon, false);
    if (r.exact.empty() && f.exact_steps > 0) exact_from_parameters(r, levels, f, to);
    if (r.sampled.empty() && f.exact_steps < f.horizon) sampled_from_samples(r, levels, f, to);
  }
  if (options.mean_only) put_mean(r, f, to);
  if (options.keep_samples && !options.mean_only) put_samples(r, f);
  if (options.keep_parameters) put_parameters(r, f);
  put_covariates(job, to);
  check_finite(f, to);
}

/// Its one trajectory.
void ForecastWriter::put_mean(const SeriesResults& r, const Forecast& f,
                              const StatisticsTarget& to) {
  for (std::size_t v = 0; v < f.variates; ++v) {
    for (std::size_t t = 0; t < f.horizon; ++t) {
      to.mean[v * to.variate + t] = r.samples[(v * r.horizon + t) * r.trajectories];
    }
  }
}

void ForecastWriter::put_samples(const SeriesResults& r, Forecast& f) {
  const std::size_t cells = f.variates * f.horizon;
  for (std::size_t v = 0; v < f.variates; ++v) {
    for (std::size_t t = 0; t < f.horizon; ++t) {
      const float* const from = r.samples.data() + (v * r.horizon + t) * r.trajectories;
      for (std::size_t n = 0; n < f.num_samples; ++n) {
        f.samples[n * cells + v * f.horizon + t] = from[n];
      }
    }
  }
}

void ForecastWriter::put_parameters(const SeriesResults& r, Forecast& f) const {
  const std::size_t k = components_;
  Parameters& p = f.parameters;
  for (std::size_t v = 0; v < f.variates; ++v) {
    for (std::size_t t = 0; t < f.horizon; ++t) {
      const std::size_t cell = v * f.horizon + t;
      const float* from = r.parameters.data() + (v * r.horizon + t) * r.parameter_floats;
      for (std::vector<double>* part : {&p.df, &p.loc, &p.scale, &p.probability}) {
        std::copy_n(from, k, part->begin() + static_cast<std::ptrdiff_t>(cell * k));
        from += k;
      }
      p.affine_loc[cell] = from[0];
      p.affine_scale[cell] = from[1];
    }
  }
}

void ForecastWriter::exact_from_parameters(const SeriesResults& r, const AskedLevels& levels,
                                           const Forecast& f, const StatisticsTarget& to) {
  const std::size_t k = components_;
  if (wide_.size() != 4 * k) mixture_ = Mixture(k);
  wide_.resize(4 * k);
  found_.resize(levels.wide.size());
  step_.resize(2 + levels.wide.size());
  const std::span<const double> all(wide_);
  for (std::size_t v = 0; v < f.variates; ++v) {
    for (std::size_t t = 0; t < f.exact_steps; ++t) {
      const float* const from = r.parameters.data() + (v * r.horizon + t) * r.parameter_floats;
      std::copy_n(from, 4 * k, wide_.begin());
      mixture_.assign(all.subspan(0, k), all.subspan(k, k), all.subspan(2 * k, k),
                      all.subspan(3 * k, k));
      const double loc = from[4 * k];
      const double scale = from[4 * k + 1];
      mixture_.quantiles(levels.wide, found_);
      step_[0] = static_cast<float>(mixture_.mean() * scale + loc);
      step_[1] = static_cast<float>(mixture_.standard_deviation() * scale);
      for (std::size_t i = 0; i < found_.size(); ++i) {
        step_[2 + i] = static_cast<float>(found_[i] * scale + loc);
      }
      put_steps(levels, to, v * to.variate + t, step_, step_.size(), 1, true);
    }
  }
}

void ForecastWriter::sampled_from_samples(const SeriesResults& r, const AskedLevels& levels,
                                          const Forecast& f, const StatisticsTarget& to) {
  column_.resize(f.num_samples);
  step_.resize(2 + levels.wide.size());
  for (std::size_t v = 0; v < f.variates; ++v) {
    for (std::size_t t = f.exact_steps; t < f.horizon; ++t) {
      const Samples samples{r.samples.data() + (v * r.horizon + t) * r.trajectories, f.num_samples,
                            1};
      step_[0] = sample_mean(samples);
      step_[1] = sample_std(samples);
      const std::span<const float> sorted = sort_samples(samples, column_);
      for (std::size_t i = 0; i < levels.wide.size(); ++i) {
        step_[2 + i] = interpolated_quantile(sorted, static_cast<float>(levels.wide[i]));
      }
      put_steps(levels, to, v * to.variate + t, step_, step_.size(), 1, false);
    }
  }
}

/// Known covariates are what they are, at every level (spec A11.3). Where one is not known, the
/// model's own forecast of it stands.
void ForecastWriter::put_covariates(const ForecastJob& job, const StatisticsTarget& to) {
  const Series& series = *job.series;
  if (series.future_exogenous.empty()) return;
  const std::size_t horizon = job.options->horizon;
  const std::size_t first = series.variates - series.exogenous;
  for (std::size_t e = 0; e < series.exogenous; ++e) {
    for (std::size_t t = 0; t < horizon; ++t) {
      if (!series.future_mask.empty() && series.future_mask[e * horizon + t] == 0) continue;
      const float value = series.future_exogenous[e * horizon + t];
      const std::size_t cell = (first + e) * to.variate + t;
      for (float* const part : {to.mean, to.median}) {
        if (part != nullptr) part[cell] = value;
      }
      if (to.std != nullptr) to.std[cell] = 0.0F;
      for (std::size_t level = 0; level < to.levels; ++level) {
        to.quantiles[level * to.level + cell] = value;
      }
    }
  }
}

void ForecastWriter::check_finite(const Forecast& f, const StatisticsTarget& from) {
  const auto check = [&](const float* row, std::size_t variate) {
    if (row == nullptr) return;
    row += variate * from.variate;
    if (cpu::series_kernels().all_finite(row, f.horizon)) return;
    const float* const bad =
        std::find_if(row, row + f.horizon, [](float x) { return !std::isfinite(x); });
    throw Error(ExitStatus::internal, "nonfinite_forecast",
                fmt::format("variate {}, step {} is not a finite number", variate, bad - row),
                fmt::format("series '{}'", f.id),
                "values near the float32 limit cannot be forecast; rescale them");
  };
  for (std::size_t v = 0; v < f.variates; ++v) {
    check(from.mean, v);
    check(from.median, v);
    for (std::size_t level = 0; level < from.levels; ++level) {
      check(from.quantiles + level * from.level, v);
    }
  }
}

void ForecastWriter::progress(std::size_t done, std::size_t total) {
  if (progress_ != nullptr && *progress_ && !(*progress_)(done, total)) {
    throw Error(ExitStatus::interrupted, "interrupted", "stopped before it was done");
  }
}

}  // namespace toto
