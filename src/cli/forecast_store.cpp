// SPDX-License-Identifier: Apache-2.0
#include "cli/forecast_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/sha256.h"
#include "toto/settings.hpp"

namespace toto::cli {
namespace {

// Numbers before the statistics: exact steps, trajectories, what was applied to the series; then
// four for the input scale of each variate, and where views are asked for, which were left out
// and the period of the season of each variate.
constexpr std::size_t kHead = 6;
constexpr std::size_t kScaleParts = 4;
constexpr float kNoDeviation = -1.0F;  // entries are finite; a deviation may be none

template <typename T>
std::string_view raw(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

/// A double as floats, none of its bits lost: the exponent, and the mantissa in three parts.
void split(double value, std::vector<float>& to) {
  int exponent = 0;
  double rest = std::frexp(value, &exponent);
  to.push_back(static_cast<float>(exponent));
  for (std::size_t i = 1; i < kScaleParts; ++i) {
    to.push_back(static_cast<float>(rest));
    rest -= static_cast<double>(to.back());
  }
}

/// Whether it was written as a count.
bool is_count(float x) { return x >= 0 && x <= static_cast<float>(backtest::kMaxCachedFloats); }

bool is_flag(float x) { return x == 0 || x == 1; }

std::size_t count_of(const Views& views) { return views.passes() - 1; }

/// 1 for each view that was left out, in the order flip, log, season, shorter; those that were not
/// asked for have no number.
std::vector<float> left_out_flags(const Views& asked, const Views& left) {
  std::vector<float> flags;
  const auto add = [&](bool wanted, bool is_left) {
    if (wanted) flags.push_back(is_left ? 1.0F : 0.0F);
  };
  add(asked.flip, left.flip);
  add(asked.log, left.log);
  add(asked.season, left.season);
  for (const std::size_t part : asked.shorter) {
    add(true, std::ranges::find(left.shorter, part) != left.shorter.end());
  }
  return flags;
}

/// The way back.
Views left_out_of(const Views& asked, std::span<const float> flags) {
  Views left;
  const auto next = [&](bool wanted) {
    if (!wanted) return false;
    const bool is_left = flags.front() == 1;
    flags = flags.subspan(1);
    return is_left;
  };
  left.flip = next(asked.flip);
  left.log = next(asked.log);
  left.season = next(asked.season);
  for (const std::size_t part : asked.shorter) {
    if (next(true)) left.shorter.push_back(part);
  }
  return left;
}

double join(std::span<const float> parts) {
  double value = 0;
  for (std::size_t i = parts.size(); i-- > 1;) value += static_cast<double>(parts[i]);
  return std::ldexp(value, static_cast<int>(std::clamp(parts[0], -2000.0F, 2000.0F)));
}

std::string describe(const LoadReport& model, const ForecastOptions& o) {
  std::string text = fmt::format(
      "forecast 4|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|", TOTO_VERSION,
      model.weights, word(model.precision), word(model.mode), word(model.kv_cache), model.device,
      model.isa, o.horizon, o.mean_only, o.num_samples, static_cast<int>(o.paths),
      o.seed.value_or(0), static_cast<int>(o.decode), static_cast<int>(o.quantiles_from),
      static_cast<int>(o.align), o.decoding.decode_block_size, o.decoding.has_missing_values,
      o.decoding.scaler_fallback_min_obs);
  text += fmt::format("{}|{}|{}|{}|{}|{}|{}|", o.decoding.quantile_real_cap_k, o.across_missing,
                      o.input_scale, o.guards.clamp, o.guards.min, o.guards.max, o.guards.integer);
  if (o.tails != Tails::clamp) text += fmt::format("{} tails|", word(o.tails));
  if (o.gaps_by_model) text += "gaps by model|";
  if (o.views.any()) text += fmt::format("views {}|", to_text(o.views));
  for (const double level : o.levels) text += fmt::format("{},", level);
  return text;
}

}  // namespace

ForecastStore::ForecastStore(const std::string& folder, const LoadReport& model,
                             const ForecastOptions& options, backtest::PredictionCache::Warn warn)
    : keeps_(!folder.empty()),
      run_(describe(model, options)),
      options_(options),
      cache_(folder, std::move(warn)) {}

std::string ForecastStore::key_of(const Series& series) const {
  Sha256 hash;
  hash.update(run_);
  hash.update(fmt::format("{}|{}|{}|{}|", series.variates, series.steps, series.exogenous,
                          series.id.size()));
  hash.update(series.id);
  hash.update(raw(series.values));
  hash.update(raw(series.mask));
  hash.update(raw(series.groups));
  hash.update(raw(series.future_exogenous));
  hash.update(fmt::format("|{}|", series.future_mask.size()));
  hash.update(raw(series.future_mask));
  hash.update(raw(series.value_offsets));
  return hash.hex();
}

std::optional<Forecast> ForecastStore::find(const Series& series) const {
  if (!keeps_) return std::nullopt;
  const std::span<const float> found = cache_.find(key_of(series));
  const std::size_t cells = series.variates * options_.horizon;
  const std::size_t rows = options_.mean_only ? 1 : 3 + options_.levels.size();
  const std::size_t scales = kHead + series.variates * kScaleParts;
  const std::size_t views = scales + count_of(options_.views);
  const std::size_t head = views + (options_.views.season ? series.variates : 0);
  if (found.size() != head + rows * cells) return std::nullopt;
  if (!std::ranges::all_of(found.first(kHead), is_count)) return std::nullopt;
  const std::span<const float> flags = found.subspan(scales, views - scales);
  if (!std::ranges::all_of(flags, is_flag)) return std::nullopt;
  const std::span<const float> periods = found.subspan(views, head - views);
  if (!std::ranges::all_of(periods, is_count)) return std::nullopt;
  Forecast out;
  out.id = std::string(series.id);
  out.variates = series.variates;
  out.horizon = options_.horizon;
  out.exact_steps = static_cast<std::size_t>(found[0]);
  out.num_samples = static_cast<std::size_t>(found[1]);
  out.applied.value_offset.assign(series.value_offsets.begin(), series.value_offsets.end());
  out.applied.missing_end = static_cast<std::size_t>(found[2]);
  out.applied.clamped = static_cast<std::size_t>(found[3]);
  out.applied.bounded = static_cast<std::size_t>(found[4]);
  out.applied.filled = static_cast<std::size_t>(found[5]);
  for (std::size_t v = 0; v < series.variates; ++v) {
    out.applied.input_scale.push_back(join(found.subspan(kHead + v * kScaleParts, kScaleParts)));
  }
  const Views left = left_out_of(options_.views, flags);
  out.applied.passes = options_.views.without(left).passes();
  out.applied.views_left_out = to_text(left);
  for (std::size_t v = 0; !left.season && v < periods.size(); ++v) {
    out.applied.season_period.push_back(static_cast<std::size_t>(periods[v]));
  }
  const auto row = [&](std::size_t first, std::size_t count) {
    const auto part = found.subspan(head + first * cells, count * cells);
    return std::vector<float>(part.begin(), part.end());
  };
  out.mean = row(0, 1);
  out.levels = options_.levels;
  if (options_.mean_only) return out;
  out.median = row(1, 1);
  out.std = row(2, 1);
  std::ranges::replace(out.std, kNoDeviation, std::nanf(""));
  out.quantiles = row(3, options_.levels.size());
  return out;
}

void ForecastStore::add(std::span<const Series> series, std::span<const Forecast> forecasts) {
  if (!keeps_) return;
  std::vector<backtest::CachedPrediction> entries;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Forecast& one = forecasts[i];
    if (one.applied.input_scale.size() != one.variates) continue;
    std::vector<float> values;
    for (const std::size_t count : {one.exact_steps, one.num_samples, one.applied.missing_end,
                                    one.applied.clamped, one.applied.bounded, one.applied.filled}) {
      values.push_back(static_cast<float>(count));
    }
    for (const double scale : one.applied.input_scale) split(scale, values);
    const std::vector<float> flags =
        left_out_flags(options_.views, parse_views(one.applied.views_left_out));
    values.insert(values.end(), flags.begin(), flags.end());
    for (std::size_t v = 0; options_.views.season && v < one.variates; ++v) {
      const std::vector<std::size_t>& periods = one.applied.season_period;
      values.push_back(periods.empty() ? 0.0F : static_cast<float>(periods[v]));
    }
    for (const auto* part : {&one.mean, &one.median, &one.std, &one.quantiles}) {
      values.insert(values.end(), part->begin(), part->end());
    }
    std::ranges::replace_if(
        values, [](float x) { return std::isnan(x); }, kNoDeviation);
    if (values.size() > backtest::kMaxCachedFloats) continue;
    entries.push_back({key_of(series[i]), std::move(values)});
  }
  cache_.add(std::move(entries));
}

}  // namespace toto::cli
