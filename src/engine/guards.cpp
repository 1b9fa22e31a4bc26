// SPDX-License-Identifier: Apache-2.0
#include "engine/guards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cpu/series_kernels.h"

namespace toto {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::size_t targets_of(const ForecastJob& job) {
  const Series& s = *job.series;
  return s.variates - (s.future_exogenous.empty() ? 0 : s.exogenous);
}

/// [V][H] out of [V][gap + H].
template <typename T>
void keep_rows(const std::vector<T>& from, std::size_t rows, std::size_t gap, std::size_t width,
               std::vector<T>& to) {
  to.clear();
  if (from.empty()) return;
  const std::size_t longer = from.size() / rows;
  const auto skipped = static_cast<std::ptrdiff_t>(gap * width);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto begin = from.begin() + static_cast<std::ptrdiff_t>(row * longer);
    to.insert(to.end(), begin + skipped, begin + static_cast<std::ptrdiff_t>(longer));
  }
}

/// The same into an array of the caller's, one statistic at a time.
void keep_into(const Forecast& longer, std::size_t gap, const ForecastJob& job) {
  const StatisticsTarget to = ForecastWriter::target_of(job);
  const std::size_t horizon = job.options->horizon;
  const auto put = [&](const float* from, float* at) {
    if (at == nullptr) return;
    for (std::size_t v = 0; v < longer.variates; ++v) {
      std::copy_n(from + v * longer.horizon + gap, horizon, at + v * to.variate);
    }
  };
  put(longer.mean.data(), to.mean);
  put(longer.median.data(), to.median);
  put(longer.std.data(), to.std);
  for (std::size_t level = 0; level < to.levels; ++level) {
    put(longer.quantiles.data() + level * longer.variates * longer.horizon,
        to.quantiles + level * to.level);
  }
}

/// Every statistic of one (variate, step) but the deviation.
template <typename Change>
void change_cell(const StatisticsTarget& to, std::size_t cell, const Change& change) {
  if (to.mean != nullptr) to.mean[cell] = change(to.mean[cell]);
  if (to.median != nullptr) to.median[cell] = change(to.median[cell]);
  for (std::size_t level = 0; to.quantiles != nullptr && level < to.levels; ++level) {
    float& value = to.quantiles[level * to.level + cell];
    value = change(value);
  }
}

/// Whether a product with 1 / factor is the quotient, bit by bit.
bool is_exact(double factor) {
  int exponent = 0;
  return std::frexp(factor, &exponent) == 0.5 && std::abs(exponent) < 126;
}

/// Divides a row; false where a result is not finite.
bool divide(float* row, std::size_t count, double factor) {
  const cpu::SeriesKernels& kernels = cpu::series_kernels();
  if (is_exact(factor)) return kernels.multiply(row, count, static_cast<float>(1 / factor));
  for (std::size_t t = 0; t < count; ++t) row[t] = static_cast<float>(row[t] / factor);
  return kernels.all_finite(row, count);
}

/// The statistics of covariate e, variate v: what is known of it, or what was forecast, divided.
void undo_covariate(const ForecastJob& job, const StatisticsTarget& to, std::size_t v,
                    std::size_t e, double factor, bool& finite) {
  const std::size_t horizon = job.out->horizon;
  const std::span<const std::uint8_t> mask = job.series->future_mask;
  for (std::size_t t = 0; t < horizon; ++t) {
    const std::size_t cell = v * to.variate + t;
    const std::size_t ahead = e * horizon + t;
    if (mask.empty() || mask[ahead] != 0) {
      const float value = job.series->future_exogenous[ahead];
      change_cell(to, cell, [&](float) { return value; });
      continue;
    }
    change_cell(to, cell, [&](float value) {
      finite = divide(&value, 1, factor) && finite;
      return value;
    });
    if (to.std != nullptr) divide(to.std + cell, 1, factor);
  }
}

[[noreturn]] void refuse(std::string_view code, const std::string& message) {
  throw Error(ExitStatus::usage, code, message);
}

class Guard {
 public:
  explicit Guard(const ForecastJob& job) : to_(ForecastWriter::target_of(job)), out_(*job.out) {}

  /// Moves what is beyond the bounds; the number of steps where something was.
  std::size_t keep_within(std::size_t v, std::size_t first, const Bounds& bounds) {
    std::size_t moved = 0;
    for (std::size_t t = first; t < out_.horizon; ++t) {
      const std::size_t cell = v * to_.variate + t;
      bool found = false;
      change_cell(to_, cell, [&](float value) {
        found = found || !bounds.hold(value);
        return bounds.nearest(value);
      });
      each_sample(v, t, [&](float value) { return bounds.nearest(value); });
      check_deviation(cell, bounds);
      moved += found ? 1 : 0;
    }
    return moved;
  }

  /// To whole numbers of offset + value.
  void round(std::size_t v, double offset) {
    const auto whole = [offset](float value) { return to_whole(value, offset); };
    for (std::size_t t = 0; t < out_.horizon; ++t) {
      const std::size_t cell = v * to_.variate + t;
      const float mean = to_.mean == nullptr ? 0.0F : to_.mean[cell];
      change_cell(to_, cell, whole);
      if (to_.mean != nullptr) to_.mean[cell] = mean;
      each_sample(v, t, whole);
    }
  }

 private:
  template <typename Change>
  void each_sample(std::size_t v, std::size_t t, const Change& change) {
    if (out_.samples.empty()) return;
    const std::size_t cells = out_.variates * out_.horizon;
    for (std::size_t n = 0; n < out_.num_samples; ++n) {
      float& value = out_.samples[n * cells + v * out_.horizon + t];
      value = change(value);
    }
  }

  /// One rule for any selection of statistics, so it looks at no other one.
  void check_deviation(std::size_t cell, const Bounds& bounds) {
    if (to_.std == nullptr) return;
    if (to_.std[cell] > (bounds.high - bounds.low) / 2) to_.std[cell] = kNaN;
  }

  StatisticsTarget to_;
  Forecast& out_;
};

}  // namespace

bool Bounds::any() const { return std::isfinite(low) || std::isfinite(high); }

float Bounds::nearest(float value) const {
  if (hold(value)) return value;
  auto out = static_cast<float>(std::clamp(double{value}, low, high));
  if (double{out} < low) out = std::nextafter(out, std::numeric_limits<float>::infinity());
  if (double{out} > high) out = std::nextafter(out, -std::numeric_limits<float>::infinity());
  return out;
}

Bounds bounds_of(const Guards& guards, double offset) {
  if (!guards.integer) return {guards.min - offset, guards.max - offset};
  return {std::ceil(guards.min) - offset, std::floor(guards.max) - offset};
}

float to_whole(float value, double offset) {
  if (offset == 0) return std::nearbyint(value);
  return static_cast<float>(std::nearbyint(offset + double{value}) - offset);
}

void as_reference(ForecastOptions& options) {
  options.across_missing = false;
  options.gaps_by_model = false;
  options.input_scale = 1;
  options.guards = Guards{};
  options.guards.clamp = 0;
  options.views = {};
  complete(options, ModelInfo{});
}

void complete(ForecastOptions& options, const ModelInfo& info) {
  options.paths = info.defaults.meaning(options.paths);
  options.tails = info.defaults.meaning(options.tails);
}

void check_adaptation(const ForecastOptions& options) {
  const double scale = options.input_scale;
  constexpr double kLargest = 1e30;
  if (scale != 0 && !(scale >= 1 / kLargest && scale <= kLargest)) {
    refuse("invalid_input_scale",
           fmt::format("expected 0 (automatic) or 1e-30 to 1e30, found {}", scale));
  }
  const Guards& guards = options.guards;
  if (!(guards.clamp >= 0)) {
    refuse("invalid_guard", fmt::format("expected 0 or more ranges, found {}", guards.clamp));
  }
  const Bounds bounds = bounds_of(guards);
  if (!(bounds.low <= bounds.high)) {
    refuse("invalid_guard",
           fmt::format("expected {} between the smallest and the largest value, "
                       "found {} and {}",
                       guards.integer ? "whole numbers" : "values", guards.min, guards.max));
  }
}

void keep_end(const Forecast& longer, std::size_t gap, const ForecastJob& job) {
  Forecast& out = *job.out;
  const std::size_t variates = longer.variates;
  const std::size_t components = longer.parameters.components;
  out.id.assign(longer.id);
  out.variates = variates;
  out.horizon = job.options->horizon;
  out.exact_steps = longer.exact_steps - std::min(gap, longer.exact_steps);
  out.num_samples = longer.num_samples;
  out.levels.assign(longer.levels.begin(), longer.levels.end());
  const bool own = job.array.empty();
  static const std::vector<float> none;
  keep_rows(own ? longer.mean : none, variates, gap, 1, out.mean);
  keep_rows(own ? longer.median : none, variates, gap, 1, out.median);
  keep_rows(own ? longer.std : none, variates, gap, 1, out.std);
  keep_rows(own ? longer.quantiles : none, variates * longer.levels.size(), gap, 1, out.quantiles);
  keep_rows(longer.samples, variates * longer.num_samples, gap, 1, out.samples);
  const Parameters& p = longer.parameters;
  out.parameters.components = components;
  keep_rows(p.df, variates, gap, components, out.parameters.df);
  keep_rows(p.loc, variates, gap, components, out.parameters.loc);
  keep_rows(p.scale, variates, gap, components, out.parameters.scale);
  keep_rows(p.probability, variates, gap, components, out.parameters.probability);
  keep_rows(p.affine_loc, variates, gap, 1, out.parameters.affine_loc);
  keep_rows(p.affine_scale, variates, gap, 1, out.parameters.affine_scale);
  if (!own) keep_into(longer, gap, job);
}

void undo_scale(const ForecastJob& job, std::span<const double> scale) {
  Forecast& out = *job.out;
  const StatisticsTarget to = ForecastWriter::target_of(job);
  const std::size_t cells = out.variates * out.horizon;
  const std::size_t targets = targets_of(job);
  for (std::size_t v = 0; v < out.variates; ++v) {
    const double factor = scale[v];
    bool finite = true;
    const auto back = [&](float* row) {
      if (row != nullptr && !divide(row, out.horizon, factor)) finite = false;
    };
    const auto row_of = [&](float* rows) {
      return rows == nullptr ? nullptr : rows + v * to.variate;
    };
    if (v < targets) {
      back(row_of(to.mean));
      back(row_of(to.median));
      for (std::size_t level = 0; to.quantiles != nullptr && level < to.levels; ++level) {
        back(row_of(to.quantiles + level * to.level));
      }
      if (to.std != nullptr) divide(row_of(to.std), out.horizon, factor);
    } else {
      undo_covariate(job, to, v, v - targets, factor, finite);
    }
    for (std::size_t n = 0; !out.samples.empty() && n < out.num_samples; ++n) {
      back(out.samples.data() + n * cells + v * out.horizon);
    }
    for (std::size_t t = v * out.horizon;
         !out.parameters.affine_loc.empty() && t < (v + 1) * out.horizon; ++t) {
      out.parameters.affine_loc[t] /= factor;
      out.parameters.affine_scale[t] /= factor;
    }
    if (finite) continue;
    throw Error(ExitStatus::internal, "nonfinite_forecast",
                fmt::format("variate {} leaves the range of float32", v),
                fmt::format("series '{}'", out.id),
                "values near the float32 limit cannot be forecast; rescale them");
  }
}

void apply_bounds(const ForecastJob& job) {
  const Guards& guards = job.options->guards;
  Guard guard(job);
  for (std::size_t v = 0; v < targets_of(job); ++v) {
    const auto offsets = job.series->value_offsets;
    const double offset = offsets.empty() ? 0 : offsets[v];
    if (guards.integer) guard.round(v, offset);
    const Bounds bounds = bounds_of(guards, offset);
    if (bounds.any()) job.out->applied.bounded += guard.keep_within(v, 0, bounds);
  }
}

void apply_guards(const ForecastJob& job, std::span<const double> lowest,
                  std::span<const double> highest) {
  const Guards& guards = job.options->guards;
  Forecast& out = *job.out;
  Guard guard(job);
  for (std::size_t v = 0; v < targets_of(job) && v < lowest.size(); ++v) {
    const auto offsets = job.series->value_offsets;
    const double offset = offsets.empty() ? 0 : offsets[v];
    const double range =
        lowest[v] == highest[v] ? std::abs(offset + lowest[v]) : highest[v] - lowest[v];
    if (guards.clamp > 0 && range > 0) {
      const double room = guards.clamp * range;
      out.applied.clamped +=
          guard.keep_within(v, out.exact_steps, {lowest[v] - room, highest[v] + room});
    }
  }
  apply_bounds(job);
}

}  // namespace toto
