// SPDX-License-Identifier: Apache-2.0
#include "engine/gaps.h"

#include <algorithm>

#include "engine/adapted.h"

namespace toto {
namespace {

constexpr std::size_t kLeastGap = 4;    // shorter ones hold what the caller has filled in
constexpr std::size_t kMostGaps = 32;   // of a series, the last ones
constexpr std::size_t kObserved = 16;   // of the variate before a gap
constexpr std::size_t kSamples = 64;    // trajectories for gaps of more than a patch
constexpr std::size_t kLongest = 4096;  // steps of a gap; the rest stays as it was filled

std::size_t targets_of(const Series& s) {
  return s.variates - (s.future_exogenous.empty() ? 0 : s.exogenous);
}

}  // namespace

void FilledJobs::find_gaps(Filled& filled) {
  const Series& s = *filled.given->series;
  const ForecastOptions& options = *filled.given->options;
  filled.gaps.clear();
  filled.steps = 0;
  if (s.mask.empty() || !fits(s, options.horizon)) return;
  const std::size_t end = s.steps - (options.across_missing ? missing_end(s) : 0);
  for (std::size_t v = 0; v < targets_of(s); ++v) {
    const auto mask = s.mask.subspan(v * s.steps, end);
    std::size_t observed = 0;
    for (std::size_t t = 0; t < end;) {
      std::size_t last = t;
      while (last < end && mask[last] == 0) ++last;
      if (last - t >= kLeastGap && observed >= kObserved) {
        filled.gaps.push_back({v, t, std::min(last, t + kLongest)});
      }
      observed += last < end ? 1 : 0;
      t = last + 1;
    }
  }
  std::ranges::stable_sort(filled.gaps, {}, &Gap::begin);
  if (filled.gaps.size() > kMostGaps) {
    filled.gaps.erase(filled.gaps.begin(), filled.gaps.end() - kMostGaps);
  }
}

/// The series up to the gap. What is known ahead is not looked at: covariates are forecast too.
void FilledJobs::make_prefix(Filled& filled, const Gap& gap) {
  const Series& s = *filled.given->series;
  const auto cut = [&](const auto& from, auto& to, auto& shown) {
    to.clear();
    for (std::size_t v = 0; v < s.variates; ++v) {
      const auto row = from.begin() + static_cast<std::ptrdiff_t>(v * s.steps);
      to.insert(to.end(), row, row + static_cast<std::ptrdiff_t>(gap.begin));
    }
    shown = to;
  };
  filled.prefix = s;
  filled.prefix.steps = gap.begin;
  filled.prefix.future_exogenous = {};
  filled.prefix.future_mask = {};
  cut(filled.values, filled.before, filled.prefix.values);
  cut(s.mask, filled.mask, filled.prefix.mask);
  if (s.groups.size() > s.variates) cut(s.groups, filled.groups, filled.prefix.groups);

  const ForecastOptions& asked = *filled.given->options;
  ForecastOptions& options = filled.options;
  options = asked;
  options.horizon = gap.end - gap.begin;
  options.mean_only = false;
  options.num_samples = std::min(kSamples, asked.num_samples);
  options.levels.clear();
  options.select = {.mean = false, .median = true, .std = false};
  options.quantiles_from = QuantilesFrom::automatic;
  options.paths = Paths::independent;
  options.across_missing = false;  // another gap just before this one has been filled
  options.gaps_by_model = false;
  options.views = {};
  options.keep_samples = options.keep_parameters = options.time_device = false;
  options.progress = {};
}

std::span<const ForecastJob> FilledJobs::start(std::span<const ForecastJob> jobs, const Run& run) {
  filled_.clear();
  const auto wants = [](const ForecastJob& job) { return job.options->gaps_by_model; };
  if (std::ranges::none_of(jobs, wants)) return jobs;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!wants(jobs[i])) continue;
    Filled one;
    one.job = i;
    one.given = &jobs[i];
    find_gaps(one);
    if (one.gaps.empty()) continue;
    one.values.assign(jobs[i].series->values.begin(), jobs[i].series->values.end());
    filled_.push_back(std::move(one));
  }
  for (std::size_t round = 0;; ++round) {
    calls_.clear();
    for (Filled& one : filled_) {
      if (round >= one.gaps.size()) continue;
      make_prefix(one, one.gaps[round]);
      calls_.push_back({&one.prefix, &one.options, &one.out, {}});
    }
    if (calls_.empty()) break;
    run(calls_);
    for (Filled& one : filled_) {
      if (round >= one.gaps.size()) continue;
      const Gap& gap = one.gaps[round];
      const std::size_t steps = gap.end - gap.begin;
      const auto from = std::span(one.out.median).subspan(gap.variate * steps, steps);
      std::ranges::copy(
          from, one.values.begin() + static_cast<std::ptrdiff_t>(
                                         gap.variate * one.given->series->steps + gap.begin));
      one.steps += steps;
    }
  }
  jobs_.assign(jobs.begin(), jobs.end());
  for (Filled& one : filled_) {
    one.series = *one.given->series;
    one.series.values = one.values;
    jobs_[one.job].series = &one.series;
  }
  return jobs_;
}

void FilledJobs::finish() {
  for (const Filled& one : filled_) one.given->out->applied.filled = one.steps;
}

}  // namespace toto
