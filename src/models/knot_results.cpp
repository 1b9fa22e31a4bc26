// SPDX-License-Identifier: Apache-2.0
#include "models/knot_results.h"

#include <algorithm>
#include <cmath>

#include "core/draw.h"
#include "core/philox.h"
#include "statistics/knots.h"

namespace toto {

void KnotResults::size(const MicroBatch& batch, std::int32_t patch, ProgramKey& key) {
  key.series = static_cast<std::int32_t>(batch.items.size());
  key.variates = key.lanes = static_cast<std::int32_t>(batch.variates);
  key.patches = batch.patches;
  key.last_steps = batch.horizon - (batch.patches - 1) * patch;
  key.exact_steps = batch.horizon;
  key.passes = batch.passes();
  key.trajectories = batch.trajectories;
  key.levels = batch.level_count;
  key.parameter_floats = batch.parameters ? 2 : 0;
  key.mean = batch.mean;
  key.exact = batch.exact;
  key.sampled = batch.sampled;
  key.samples = batch.samples;
}

void KnotResults::begin(Executor& executor, const MicroBatch& batch, const ProgramKey& key,
                        std::int32_t patch) {
  batch_ = &batch;
  key_ = &key;
  patch_ = patch;
  out_ = executor.out;
  probe_ = executor.probe;
  lanes_.clear();
  shown_.clear();
  std::int64_t lane = 0;
  for (const Item& item : batch.items) {
    lanes_.push_back(lane);
    lane += item.variates;
  }
  executor.stage(&StageTimes::prefill);
}

/// What was asked for of one step: statistics of its distribution, draws, or its mean.
void KnotResults::put(std::size_t item_index, std::int32_t variate, std::int32_t step,
                      std::span<const double> knots, double loc, double scale) {
  const Item& item = batch_->items[item_index];
  const ProgramKey& key = *key_;
  const std::int64_t horizon = key.horizon(patch_);
  const std::int64_t lane = lanes_[item_index] + variate;
  if (probe_ != nullptr) show_step(item, variate, step, knots, loc, scale);
  if (key.parameter_floats > 0) {
    float* const to = out_.parameters + (lane * horizon + step) * 2;
    to[0] = static_cast<float>(loc);
    to[1] = static_cast<float>(scale);
  }
  if (key.exact) {
    float* const to = out_.exact + (lane * key.exact_steps + step) * key.stride();
    to[0] = static_cast<float>(knot_mean(knots));
    to[1] = static_cast<float>(std::sqrt(knot_variance(knots)));
    for (std::int32_t i = 0; i < item.level_count; ++i) {
      const auto level = static_cast<std::size_t>(std::int64_t{item.level_first} + i);
      to[2 + i] = static_cast<float>(knot_quantile(knots, batch_->levels[level]));
    }
  }
  if (item.trajectories == 0 || out_.kept == nullptr) return;
  float* const kept = out_.kept + (lane * horizon + step) * key.trajectories;
  if (key.mean) {
    kept[0] = static_cast<float>(knot_mean(knots));
    return;
  }
  for (std::int32_t n = 0; n < item.trajectories; ++n) {
    const DrawAddress address{item.prepared->key, static_cast<std::uint32_t>(variate),
                              static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(step)};
    const PhiloxWords words = draw_words(item.seed, address);
    kept[n] = static_cast<float>(knot_quantile(knots, quantile_level(words)));
  }
}

void KnotResults::show_step(const Item& item, std::int32_t variate, std::int32_t step,
                            std::span<const double> knots, double loc, double scale) {
  const std::int32_t iteration = step / patch_;
  if (!probe_->wants_parameters(iteration)) return;
  Shown& shown = shown_[{item.index, iteration}];
  const std::size_t cells =
      static_cast<std::size_t>(item.variates) * static_cast<std::size_t>(patch_);
  const std::int32_t steps = std::min(patch_, item.horizon - iteration * patch_);
  shown.quantiles.resize(static_cast<std::size_t>(item.variates) * static_cast<std::size_t>(steps) *
                         knots.size());
  shown.loc.resize(cells, loc);
  shown.scale.resize(cells, scale);
  const std::size_t at = static_cast<std::size_t>(std::int64_t{variate} * patch_ + step % patch_);
  shown.loc[at] = loc;
  shown.scale[at] = scale;
  const std::size_t cell = static_cast<std::size_t>(std::int64_t{variate} * steps + step % patch_);
  std::copy(knots.begin(), knots.end(),
            shown.quantiles.begin() + static_cast<std::ptrdiff_t>(cell * knots.size()));
}

void KnotResults::finish(Executor& executor) {
  std::size_t units = 0;
  for (const Item& item : batch_->items) {
    units += static_cast<std::size_t>(std::max(item.trajectories, 1)) *
             static_cast<std::size_t>(item.patches);
    for (std::int32_t i = 0; probe_ != nullptr && i < item.patches; ++i) {
      const auto at = shown_.find({item.index, i});
      if (at == shown_.end()) continue;
      const Shown& s = at->second;
      const std::int32_t steps = std::min(patch_, item.horizon - i * patch_);
      const auto knots = static_cast<std::int32_t>(
          s.quantiles.size() / static_cast<std::size_t>(std::int64_t{item.variates} * steps));
      probe_->quantiles({item.index, i, 0, 1, item.variates, patch_, steps, knots}, s.quantiles,
                        s.loc, s.scale);
    }
  }
  executor.done(units);
  executor.stage(&StageTimes::statistics);
  if (key_->sampled) sample_statistics(executor);
  executor.end();
}

void KnotResults::sample_statistics(const Executor& executor) {
  sources_.clear();
  std::int32_t lane = 0;
  for (const Item& item : batch_->items) {
    Block b;
    b.row = b.lane = lane;
    b.variates = item.variates;
    b.tokens = 1;
    b.horizon = item.horizon;
    b.samples = item.trajectories;
    b.level_first = item.level_first;
    b.level_count = item.level_count;
    sources_.push_back(b);
    lane += item.variates;
  }
  const Batch source{sources_.data(), nullptr, static_cast<std::int32_t>(sources_.size()), lane,
                     lane};
  executor.backend.sample_statistics(
      source, executor.out.kept, {key_->horizon(patch_), key_->trajectories},
      key_->exact ? key_->exact_steps : 0, executor.levels, executor.out.sampled);
}

}  // namespace toto
