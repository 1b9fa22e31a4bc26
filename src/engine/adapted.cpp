// SPDX-License-Identifier: Apache-2.0
#include "engine/adapted.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "backend/cpu/series_kernels.h"
#include "backend/share_out.h"
#include "engine/guards.h"

namespace toto {
namespace {

constexpr std::size_t kMaxSteps = 100'000;  // as the longest horizon
constexpr int kExponent = 6;                // standard deviations come to [2^6, 2^7)

std::size_t known(const Series& s) { return s.future_exogenous.empty() ? 0 : s.exogenous; }

/// Does not make infinite what is not: what a mask hides may be as large as a float can be.
/// Infinities stay, so that they are refused.
float times(float value, double factor) {
  constexpr double kMost = std::numeric_limits<float>::max();
  if (std::isinf(value)) return value;
  return static_cast<float>(std::clamp(double{value} * factor, -kMost, kMost));
}

/// Of many values. A power of two that float32 has gives the same bits in float32.
void multiply(const float* from, std::size_t count, double factor, float* to) {
  const auto narrow = static_cast<float>(factor);
  int exponent = 0;
  if (std::frexp(factor, &exponent) != 0.5 || !std::isnormal(narrow)) {
    for (std::size_t t = 0; t < count; ++t) to[t] = times(from[t], factor);
    return;
  }
  cpu::series_kernels().scale(from, count, narrow, to);
}

/// A variate that never changes is brought to that size itself.
double power_of_two(const cpu::Spread& spread) {
  const bool constant = spread.lowest == spread.highest;
  const double size = constant ? std::abs(spread.mean) : spread.deviation;
  if (!std::isfinite(size) || size == 0) return 1;
  return std::ldexp(1.0, kExponent - std::ilogb(size));
}

}  // namespace

bool fits(const Series& s, std::size_t horizon) {
  constexpr std::size_t kMaxVariates = 65'535, kMaxLength = 1U << 24;
  if (s.variates > kMaxVariates || s.steps > kMaxLength) return false;
  const std::size_t cells = s.variates * s.steps;
  return cells > 0 && s.values.size() == cells && (s.mask.empty() || s.mask.size() == cells) &&
         s.exogenous < s.variates &&
         (s.groups.empty() || s.groups.size() == s.variates || s.groups.size() == cells) &&
         (s.future_exogenous.empty() || s.future_exogenous.size() == s.exogenous * horizon) &&
         (s.future_mask.empty() || s.future_mask.size() == s.future_exogenous.size()) &&
         (s.value_offsets.empty() || s.value_offsets.size() == s.variates);
}

std::size_t missing_end(const Series& s) {
  if (s.mask.empty()) return 0;
  const std::size_t forecast = s.variates - known(s);
  std::size_t least = s.steps;
  for (std::size_t v = 0; v < forecast; ++v) {
    const auto row = s.mask.subspan(v * s.steps, s.steps);
    std::size_t gap = 0;
    while (gap < least && row[s.steps - 1 - gap] == 0) ++gap;
    least = gap;
  }
  return least == s.steps ? 0 : least;
}

void AdaptedJobs::choose_scales(Adapted& job, const Series& s, std::size_t kept) {
  const double asked = job.given->options->input_scale;
  job.scale.assign(s.variates, asked == 0 ? 1.0 : asked);
  job.lowest.assign(s.variates, 0);
  job.highest.assign(s.variates, 0);
  for (std::size_t v = 0; v < s.variates; ++v) {
    const std::uint8_t* const mask = s.mask.empty() ? nullptr : s.mask.data() + v * s.steps;
    const cpu::Spread spread =
        cpu::series_kernels().spread(s.values.data() + v * s.steps, mask, kept);
    job.lowest[v] = spread.lowest;
    job.highest[v] = spread.highest;
    if (asked == 0) job.scale[v] = power_of_two(spread);
  }
}

/// Values times the scales, of the first `kept` steps. What is known of covariates in the steps
/// that are left out goes in front of their future, and their masks stay as long hidden at their
/// end.
void AdaptedJobs::cut(Adapted& job, const Series& s, std::size_t kept) {
  const std::size_t gap = s.steps - kept;
  const std::size_t first_known = s.variates - known(s);
  job.series.steps = kept;
  job.values.resize(s.variates * kept);
  for (std::size_t v = 0; v < s.variates; ++v) {
    const float* const from = s.values.data() + v * s.steps;
    multiply(from, kept, job.scaled ? job.scale[v] : 1.0, job.values.data() + v * kept);
  }
  job.series.values = job.values;
  if (gap > 0 && !s.mask.empty()) {
    job.mask.resize(s.variates * kept);
    for (std::size_t v = 0; v < s.variates; ++v) {
      const auto from = s.mask.subspan(v * s.steps, s.steps);
      const auto to = job.mask.begin() + static_cast<std::ptrdiff_t>(v * kept);
      std::ranges::copy(from.first(kept), to);
      if (v < first_known) continue;
      std::size_t hidden = 0;  // at the end, where a covariate's lead has no values
      while (hidden < kept && from[s.steps - 1 - hidden] == 0) ++hidden;
      std::fill_n(to + static_cast<std::ptrdiff_t>(kept - hidden), hidden, std::uint8_t{0});
    }
    job.series.mask = job.mask;
  }
  if (gap > 0 && s.groups.size() > s.variates) {
    job.groups.resize(s.variates * kept);
    for (std::size_t v = 0; v < s.variates; ++v) {
      std::ranges::copy(s.groups.subspan(v * s.steps, kept),
                        job.groups.begin() + static_cast<std::ptrdiff_t>(v * kept));
    }
    job.series.groups = job.groups;
  }
  if (s.exogenous == 0 || s.future_exogenous.empty()) return;
  const std::size_t horizon = s.future_exogenous.size() / s.exogenous;
  job.future.clear();
  job.future_mask.clear();
  for (std::size_t e = 0; e < s.exogenous; ++e) {
    const double factor = job.scaled ? job.scale[first_known + e] : 1.0;
    const auto between = s.values.subspan((first_known + e) * s.steps + kept, gap);
    for (const float x : between) job.future.push_back(times(x, factor));
    for (const float x : s.future_exogenous.subspan(e * horizon, horizon)) {
      job.future.push_back(times(x, factor));
    }
    if (s.future_mask.empty()) continue;
    const std::size_t at = (first_known + e) * s.steps + kept;
    for (std::size_t t = 0; t < gap; ++t) {
      job.future_mask.push_back(s.mask.empty() ? std::uint8_t{1} : s.mask[at + t]);
    }
    std::ranges::copy(s.future_mask.subspan(e * horizon, horizon),
                      std::back_inserter(job.future_mask));
  }
  job.series.future_exogenous = job.future;
  job.series.future_mask = job.future_mask;
}

void AdaptedJobs::adapt(Adapted& job, ForecastJob& to) {
  const ForecastOptions& options = *job.given->options;
  const Series& s = *job.given->series;
  job.gap = 0;
  job.scaled = false;
  job.series = s;
  if (!fits(s, options.horizon)) return;
  if (options.across_missing) job.gap = missing_end(s);
  const std::size_t kept = s.steps - job.gap;
  if (job.gap > 0 && job.gap + options.horizon > kMaxSteps) {
    throw Error(ExitStatus::bad_data, "missing_end_too_long",
                fmt::format("{} steps without a value at the end and a horizon of {} are more "
                            "than {} steps",
                            job.gap, options.horizon, kMaxSteps),
                fmt::format("series '{}'", s.id), "leave out the empty steps at the end");
  }
  choose_scales(job, s, kept);
  job.scaled = std::ranges::any_of(job.scale, [](double x) { return x != 1; });
  if (job.gap == 0 && !job.scaled) return;
  cut(job, s, kept);
  if (job.gap == 0) return;
  job.options = options;
  job.options.horizon = job.gap + options.horizon;
  to.options = &job.options;
  to.out = &job.longer;
  to.array = {};
}

std::span<const ForecastJob> AdaptedJobs::start(const Backend& backend,
                                                std::span<const ForecastJob> jobs) {
  if (all_.size() < jobs.size()) all_.resize(jobs.size());
  jobs_.assign(jobs.begin(), jobs.end());
  // By the thread that reads jobs again, not by those that adapt them.
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs_[i].series = &all_[i].series;
  share_out(backend, jobs.size(), [&](std::size_t i) {
    all_[i].given = &jobs[i];
    adapt(all_[i], jobs_[i]);
  });
  return jobs_;
}

void AdaptedJobs::finish(std::size_t index) {
  Adapted& job = all_[index];
  const ForecastJob& given = *job.given;
  Applied& applied = given.out->applied;
  applied.input_scale.assign(job.scale.begin(), job.scale.end());
  const std::span<const double> offsets = given.series->value_offsets;
  applied.value_offset.assign(offsets.begin(), offsets.end());
  applied.missing_end = job.gap;
  applied.clamped = applied.bounded = 0;
  if (job.gap > 0) keep_end(job.longer, job.gap, given);
  if (job.scaled) undo_scale(given, job.scale);
  apply_guards(given, job.lowest, job.highest);
}

}  // namespace toto
