// SPDX-License-Identifier: Apache-2.0
#include "engine/views.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/share_out.h"
#include "engine/adapted.h"
#include "engine/guards.h"
#include "engine/observed.h"

namespace toto {
namespace {

/// The mean of a log view is that of so many quantiles, in the middle of as many equal parts of the
/// probability: the exponential of a Student-T has no mean.
constexpr std::size_t kMeanParts = 10;

double mean_level(std::size_t i) {
  return (static_cast<double>(i) + 0.5) / static_cast<double>(kMeanParts);
}

std::size_t targets_of(const Series& s) {
  return s.variates - (s.future_exogenous.empty() ? 0 : s.exogenous);
}

double offset_of(const Series& s, std::size_t v) {
  return s.value_offsets.empty() ? 0.0 : s.value_offsets[v];
}

/// Not beyond what a float holds.
float to_float(double value) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kMost, kMost));
}

/// The level that is as far from 1 as `level` is from 0. One of `levels` where rounding alone tells
/// them apart, so that symmetric levels are mirrored onto themselves.
double mirror(double level, std::span<const double> levels) {
  constexpr double kSame = 1e-12;
  const double other =
      std::clamp(1 - level, std::numeric_limits<double>::min(), std::nextafter(1.0, 0.0));
  for (const double one : levels) {
    if (std::abs(one - other) < kSame) return one;
  }
  return other;
}

/// Row `level` of the quantiles of a forecast.
std::span<const float> row_of(const Forecast& f, double level) {
  const auto at = std::ranges::lower_bound(f.levels, level);
  const std::size_t cells = f.variates * f.horizon;
  return std::span(f.quantiles)
      .subspan(static_cast<std::size_t>(at - f.levels.begin()) * cells, cells);
}

}  // namespace

void ViewedJobs::flip(View& view) {
  const Series& s = *view.given->series;
  const std::size_t targets = targets_of(s);
  view.values.assign(s.values.begin(), s.values.end());
  for (std::size_t i = 0; i < targets * s.steps; ++i) view.values[i] = -view.values[i];
  view.series.values = view.values;
  if (!s.value_offsets.empty()) {
    view.offsets.assign(s.value_offsets.begin(), s.value_offsets.end());
    for (std::size_t v = 0; v < targets; ++v) view.offsets[v] = -view.offsets[v];
    view.series.value_offsets = view.offsets;
  }
  const std::vector<double>& levels = view.given->options->levels;
  view.options.levels.clear();
  for (const double level : levels) view.options.levels.push_back(mirror(level, levels));
}

/// The engine would take the range of what the view shows it: it is the range of the values that
/// Guards::clamp speaks of, so bring_back() keeps to it.
void ViewedJobs::note_ranges(View& view) {
  const Series& s = *view.given->series;
  const std::size_t targets = targets_of(s);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  view.lowest.assign(targets, kInfinity);
  view.highest.assign(targets, -kInfinity);
  for (std::size_t i = 0; i < targets * s.steps; ++i) {
    if (!observed(s, i)) continue;
    const double value = s.values[i];
    double& low = view.lowest[i / s.steps];
    double& high = view.highest[i / s.steps];
    low = std::min(low, value);
    high = std::max(high, value);
  }
  view.options.guards.clamp = 0;
}

/// What is filled in and has no logarithm repeats the one before it.
void ViewedJobs::take_log(View& view) {
  const Series& s = *view.given->series;
  const std::size_t targets = targets_of(s);
  view.values.assign(s.values.begin(), s.values.end());
  note_ranges(view);
  for (std::size_t v = 0; v < targets; ++v) {
    const double offset = offset_of(s, v);
    std::size_t first = 0;
    while (first + 1 < s.steps && !observed(s, v * s.steps + first)) ++first;
    double last = std::log(offset + double{s.values[v * s.steps + first]});
    for (std::size_t t = 0; t < s.steps; ++t) {
      const double value = s.values[v * s.steps + t];
      if (offset + value > 0) last = std::log(offset + value);
      view.values[v * s.steps + t] = static_cast<float>(last);
    }
  }
  view.series.values = view.values;
  if (!s.value_offsets.empty()) {
    view.offsets.assign(s.value_offsets.begin(), s.value_offsets.end());
    std::fill_n(view.offsets.begin(), targets, 0.0);
    view.series.value_offsets = view.offsets;
  }
  ForecastOptions& options = view.options;
  const bool moments = options.select.mean || (view.kind == Kind::season && options.select.std);
  for (std::size_t i = 0; moments && i < kMeanParts; ++i) options.levels.push_back(mean_level(i));
  options.select.mean = options.select.std = false;
}

/// What is missing repeats the rest before it, and the first that is observed before that.
void ViewedJobs::take_season(View& view) {
  const Series& s = *view.given->series;
  const Seasons& seasons = *view.seasons;
  if (seasons.log) {
    take_log(view);
  } else {
    view.values.assign(s.values.begin(), s.values.end());
    note_ranges(view);
  }
  for (std::size_t v = 0; v < targets_of(s); ++v) {
    if (!seasons.of[v].any()) continue;
    const auto row = std::span(view.values).subspan(v * s.steps, s.steps);
    std::size_t first = s.steps;
    for (std::size_t t = 0; t < s.steps; ++t) {
      if (observed(s, v * s.steps + t)) {
        row[t] = to_float(double{row[t]} - seasons.at(v, t));
        first = std::min(first, t);
      } else if (t > first) {
        row[t] = row[t - 1];
      }
    }
    std::fill_n(row.begin(), first, row[first]);
  }
  view.series.values = view.values;
}

/// The last part of what there is up to the last observation, and what is missing after it.
void ViewedJobs::shorten(View& view) {
  const Series& s = *view.given->series;
  const std::size_t gap = view.options.across_missing ? missing_end(s) : 0;
  const std::size_t steps = (s.steps - gap + view.part - 1) / view.part + gap;
  const auto cut = [&](const auto& from, auto& to, auto& shown) {
    to.clear();
    for (std::size_t v = 0; v < s.variates; ++v) {
      const auto row = from.subspan((v + 1) * s.steps - steps, steps);
      to.insert(to.end(), row.begin(), row.end());
    }
    shown = to;
  };
  cut(s.values, view.values, view.series.values);
  if (!s.mask.empty()) cut(s.mask, view.mask, view.series.mask);
  if (s.groups.size() > s.variates) cut(s.groups, view.groups, view.series.groups);
  view.series.steps = steps;
}

void ViewedJobs::make(View& view) {
  const ForecastOptions& asked = *view.given->options;
  view.series = *view.given->series;
  view.options = asked;
  view.options.views = {};
  view.options.progress = {};
  view.options.guards = {};  // bounds are of the average
  view.options.guards.clamp = asked.guards.clamp;
  switch (view.kind) {
    case Kind::plain:
      break;
    case Kind::flip:
      return flip(view);
    case Kind::log:
      return take_log(view);
    case Kind::season:
      return take_season(view);
    case Kind::shorter:
      return shorten(view);
  }
}

void ViewedJobs::add(Viewed& viewed, Kind kind, std::size_t part) {
  if (used_ == views_.size()) views_.emplace_back();
  View& view = views_[used_++];
  view.kind = kind;
  view.part = part;
  view.given = viewed.given;
  view.seasons = &viewed.seasons;
  ++viewed.count;
}

std::span<const ForecastJob> ViewedJobs::start(const Backend& backend,
                                               std::span<const ForecastJob> jobs) {
  used_ = 0;
  viewed_.clear();
  const auto has_views = [](const ForecastJob& job) { return job.options->views.any(); };
  if (std::ranges::none_of(jobs, has_views)) return jobs;
  viewed_.resize(jobs.size());
  share_out(backend, jobs.size(), [&](std::size_t i) {
    if (has_views(jobs[i])) {
      viewed_[i].taken = views_of(*jobs[i].series, *jobs[i].options, viewed_[i].seasons);
    }
  });
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Viewed& viewed = viewed_[i];
    viewed.given = &jobs[i];
    viewed.first = used_;
    // What the engine refuses, and what has no view left, is one pass as well.
    if (has_views(jobs[i])) add(viewed, Kind::plain);
    if (viewed.taken.flip) add(viewed, Kind::flip);
    if (viewed.taken.log) add(viewed, Kind::log);
    if (viewed.taken.season) add(viewed, Kind::season);
    for (const std::size_t part : viewed.taken.shorter) add(viewed, Kind::shorter, part);
  }
  share_out(backend, used_, [&](std::size_t i) { make(views_[i]); });
  jobs_.clear();
  for (const Viewed& viewed : viewed_) {
    if (viewed.count == 0) jobs_.push_back(*viewed.given);
    for (std::size_t i = 0; i < viewed.count; ++i) {
      View& view = views_[viewed.first + i];
      jobs_.push_back({&view.series, &view.options, &view.out, {}});
    }
  }
  return jobs_;
}

/// Into the units of the series; statistics in the places that the options of the job ask for.
void ViewedJobs::bring_back(View& view) {
  const bool seasonal = view.kind == Kind::season;
  if (!view.of_log() && !seasonal) return;
  const Series& s = *view.given->series;
  Forecast& f = view.out;
  const std::size_t cells = f.variates * f.horizon;
  constexpr double kMost = std::numeric_limits<float>::max();
  const double clamp = view.given->options->guards.clamp;
  for (std::size_t v = 0; v < targets_of(s); ++v) {
    const bool has_season = seasonal && view.seasons->of[v].any();
    const double low = view.lowest[v], high = view.highest[v];
    const double range = low == high ? std::abs(offset_of(s, v) + low) : high - low;
    const double most = clamp > 0 ? high + clamp * range : kMost;
    for (std::size_t t = 0; t < f.horizon; ++t) {
      const double season = has_season ? view.seasons->at(v, s.steps + t) : 0.0;
      const bool clamped = has_season && clamp > 0 && range > 0 && t >= f.exact_steps;
      bool moved = false;
      const auto back = [&](float& value) {
        const double whole = double{value} + season;
        if (view.of_log()) {
          value = static_cast<float>(std::min(std::exp(whole) - offset_of(s, v), most));
        } else {
          const double kept = clamped ? std::clamp(whole, low - clamp * range, most) : whole;
          moved = moved || kept != whole;
          value = to_float(kept);
        }
      };
      const std::size_t cell = v * f.horizon + t;
      if (!f.median.empty()) back(f.median[cell]);
      for (std::size_t l = 0; l < f.levels.size(); ++l) back(f.quantiles[l * cells + cell]);
      if (!view.of_log() && !f.mean.empty()) back(f.mean[cell]);
      f.applied.clamped += moved ? 1 : 0;
    }
  }
  if (view.of_log()) take_moments(view);
}

/// Of the ten quantiles of a view of logarithms: the exponential of a Student-T has no mean. The
/// deviation is that of a season alone, which may explain nearly everything that others do not
/// know.
void ViewedJobs::take_moments(View& view) {
  const Select& select = view.given->options->select;
  const bool deviation = select.std && view.kind == Kind::season;
  Forecast& f = view.out;
  const std::size_t cells = f.variates * f.horizon;
  if (select.mean) f.mean.assign(cells, 0.0F);
  if (deviation) f.std.assign(cells, 0.0F);
  for (std::size_t cell = 0; (select.mean || deviation) && cell < cells; ++cell) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < kMeanParts; ++i) sum += double{row_of(f, mean_level(i))[cell]};
    const double mean = sum / static_cast<double>(kMeanParts);
    if (select.mean) f.mean[cell] = static_cast<float>(mean);
    if (!deviation) continue;
    for (std::size_t i = 0; i < kMeanParts; ++i) {
      const double off = double{row_of(f, mean_level(i))[cell]} - mean;
      squares += off * off;
    }
    f.std[cell] = static_cast<float>(std::sqrt(squares / static_cast<double>(kMeanParts)));
  }
}

/// A variate without a season is what the other views make of it.
double ViewedJobs::View::weight(std::size_t variate) const {
  if (kind != Kind::season) return 1;
  const Season& season = seasons->of[variate];
  return season.any() ? season.weight() : 0.0;
}

void ViewedJobs::average(const Viewed& viewed) const {
  const ForecastJob& job = *viewed.given;
  const ForecastOptions& options = *job.options;
  const std::span<const View> views = std::span(views_).subspan(viewed.first, viewed.count);
  const Forecast& plain = views.front().out;
  Forecast& out = *job.out;
  out.id.assign(plain.id);
  out.variates = plain.variates;
  out.horizon = plain.horizon;
  out.exact_steps = plain.exact_steps;
  out.num_samples = plain.num_samples;
  out.levels.assign(plain.levels.begin(), plain.levels.end());
  const bool own = job.array.empty();
  const std::size_t cells = plain.variates * plain.horizon;
  out.mean.assign(own ? plain.mean.size() : 0, 0.0F);
  out.median.assign(own ? plain.median.size() : 0, 0.0F);
  out.std.assign(own ? plain.std.size() : 0, 0.0F);
  out.quantiles.assign(own ? plain.quantiles.size() : 0, 0.0F);
  out.samples.clear();
  out.parameters = {};
  const StatisticsTarget to = ForecastWriter::target_of(job);
  const std::size_t targets = targets_of(*job.series);
  const auto put = [&](float* at, bool mirrored, const auto& row_in) {
    for (std::size_t cell = 0; at != nullptr && cell < cells; ++cell) {
      const std::size_t v = cell / plain.horizon;
      double sum = 0;
      double count = 0;
      for (const View& view : views) {
        const std::span<const float> row = row_in(view);
        const double weight = v < targets ? view.weight(v) : 1.0;
        if (row.empty() || weight == 0) continue;
        const bool minus = mirrored && view.kind == Kind::flip && v < targets;
        sum += weight * (minus ? -double{row[cell]} : double{row[cell]});
        count += weight;
      }
      at[v * to.variate + cell % plain.horizon] = static_cast<float>(sum / count);
    }
  };
  put(to.mean, true, [](const View& v) { return std::span<const float>(v.out.mean); });
  put(to.median, true, [](const View& v) { return std::span<const float>(v.out.median); });
  put(to.std, false, [](const View& v) { return std::span<const float>(v.out.std); });
  for (std::size_t l = 0; l < to.levels; ++l) {
    const double level = out.levels[l];
    const double other = mirror(level, options.levels);
    put(to.quantiles + l * to.level, true,
        [&](const View& v) { return row_of(v.out, v.kind == Kind::flip ? other : level); });
  }
  Applied& applied = out.applied;
  applied = plain.applied;
  for (const View& view : views) {
    applied.clamped = std::max(applied.clamped, view.out.applied.clamped);
  }
  applied.passes = views.size();
  applied.views_left_out = to_text(options.views.without(viewed.taken));
  applied.season_period.clear();
  if (viewed.taken.season) {
    for (const Season& season : viewed.seasons.of) applied.season_period.push_back(season.period);
    applied.season_period.resize(plain.variates);
  }
  apply_bounds(job);
}

void ViewedJobs::finish(const Backend& backend) {
  share_out(backend, used_, [&](std::size_t i) { bring_back(views_[i]); });
  share_out(backend, viewed_.size(), [&](std::size_t i) {
    if (viewed_[i].count > 0) average(viewed_[i]);
  });
}

}  // namespace toto
