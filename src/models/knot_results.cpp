// SPDX-License-Identifier: Apache-2.0
#include "models/knot_results.h"

#include <algorithm>

#include "backend/knot_steps.h"

namespace toto {
namespace {

std::int32_t bucket32(std::int64_t n) { return static_cast<std::int32_t>(bucket(n)); }

}  // namespace

void KnotResults::size(const MicroBatch& batch, std::int32_t patch, ProgramKey& key) {
  key.series = bucket32(static_cast<std::int64_t>(batch.items.size()));
  key.variates = key.lanes = bucket32(batch.variates);
  key.patches = batch.patches;
  key.last_steps =
      std::min(bucket32(batch.horizon - std::int64_t{batch.patches - 1} * patch), patch);
  key.exact_steps = key.horizon(patch);
  key.passes = batch.passes();
  key.trajectories = batch.trajectories;
  key.levels = bucket32(batch.level_count);
  key.parameter_floats = batch.parameters ? 2 : 0;
  key.mean = batch.mean;
  key.coherent = batch.coherent;
  key.exact = batch.exact;
  key.sampled = batch.sampled;
  key.samples = batch.samples;
}

/// Whose trajectories statistics are formed of.
std::size_t KnotResults::input_bytes(const ProgramKey& key) {
  return key.sampled ? BatchLayout(key.series, 0).bytes : 0;
}

void KnotResults::stage(const MicroBatch& batch, const ProgramKey& key, const Staging& in,
                        std::size_t at) {
  if (!key.sampled) return;
  sources_.clear();
  std::int32_t lane = 0;
  for (const Item& item : batch.items) {
    Block b;
    b.row = b.lane = lane;
    b.variates = item.variates;
    b.tokens = 0;  // it has no ids
    b.horizon = item.horizon;
    b.samples = item.trajectories;
    b.level_first = item.level_first;
    b.level_count = item.level_count;
    sources_.push_back(b);
    lane += item.variates;
  }
  const Batch source{sources_.data(), nullptr, static_cast<std::int32_t>(sources_.size()), lane,
                     lane};
  write_image(source, BatchLayout(key.series, 0), in.host + at, in.device + at);
}

void KnotResults::begin(Executor& executor, const MicroBatch& batch, const ProgramKey& key,
                        std::int32_t patch, std::size_t at) {
  batch_ = &batch;
  key_ = &key;
  patch_ = patch;
  at_ = at;
  out_ = executor.out;
  levels_ = executor.levels;
  probe_ = executor.probe;
  shown_.clear();
  items_.clear();
  std::int32_t lane = 0;
  for (const Item& item : batch.items) {
    CallSlice s;
    s.lane = lane;
    s.variates = item.variates;
    s.seed = item.seed;
    s.key = item.prepared == nullptr ? 0 : item.prepared->key;
    s.horizon = item.horizon;
    s.trajectories = item.trajectories;
    s.level_first = item.level_first;
    s.level_count = item.level_count;
    s.tails = knot_tails(item.tails);
    items_.push_back(s);
    lane += item.variates;
  }
  executor.stage(&StageTimes::prefill);
}

KnotOutputs KnotResults::outputs() const {
  KnotOutputs to;
  to.steps = key_->horizon(patch_);
  to.levels = levels_;
  if (key_->exact) to.exact = out_.exact;
  if (key_->parameter_floats > 0) to.parameters = out_.parameters;
  if (key_->trajectories > 0) to.kept = out_.kept;
  to.trajectories = key_->trajectories;
  to.mean = key_->mean;
  to.coherent = key_->coherent;
  return to;
}

void KnotResults::put(std::size_t item, std::int32_t variate, std::int32_t step,
                      std::span<const double> knots, double loc, double scale) {
  show(item, variate, step, knots, loc, scale);
  const KnotOutputs to = outputs();
  const KnotStep one{items_[item], variate, step, loc, scale, knots};
  one.put_statistics(to);
  for (std::int32_t n = 0; n < one.draws(to); ++n) one.put_draw(to, n);
}

void KnotResults::show(std::size_t item_index, std::int32_t variate, std::int32_t step,
                       std::span<const double> knots, double loc, double scale) {
  const std::int32_t iteration = step / patch_;
  if (probe_ == nullptr || !probe_->wants_parameters(iteration)) return;
  const Item& item = batch_->items[item_index];
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
  if (key_->sampled) {
    const Batch source =
        executor.batch(at_, {key_->series, key_->variates, key_->variates, key_->variates});
    executor.backend.sample_statistics(source, out_.kept,
                                       {key_->horizon(patch_), key_->trajectories},
                                       key_->exact ? key_->exact_steps : 0, levels_, out_.sampled);
  }
  executor.end();
}

}  // namespace toto
