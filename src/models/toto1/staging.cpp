// SPDX-License-Identifier: Apache-2.0
// The calls of a forecast as blocks: what lies where, and what goes into the staging buffer.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "backend/share_out.h"
#include "models/toto1/forward_cost.h"
#include "models/toto1/program.h"

namespace toto {
namespace {

void take_request(const Item& item, Block& b) {
  b.key = item.prepared->key;
  b.seed = item.seed;
  b.horizon = item.horizon;
  b.samples = item.trajectories;
  b.level_first = item.level_first;
  b.level_count = item.level_count;
}

}  // namespace

/// The prefill of `trajectories` of each series from `first_sample` on, with what they have
/// generated. Where they share it, or `trajectories` is 0: of one for each series.
void Toto1Program::describe_context(const MicroBatch& batch, std::int32_t first_sample,
                                    std::int32_t trajectories, std::int32_t generated) {
  const bool recompute = !share_ && !batch.cached;
  context_blocks_.resize(batch.items.size());
  last_blocks_.resize(batch.items.size());
  std::int32_t row = 0;
  std::int32_t lane = 0;
  std::int64_t kv = 0;
  std::int64_t ids = 0;
  std::int32_t variates = 0;
  for (std::size_t i = 0; i < batch.items.size(); ++i) {
    const Item& item = batch.items[i];
    const Prepared& s = *item.prepared;
    Block& b = context_blocks_[i];
    b = {};
    b.row = row;
    b.lane = lane;
    b.trajectories = 1;
    if (!share_ && trajectories > 0) {
      b.trajectories = std::clamp(item.trajectories - first_sample, 0, trajectories);
      if (generated >= item.patches) b.trajectories = 0;
    }
    b.variates = s.variates;
    b.tokens = s.tokens + labels_ + generated;
    b.ids = static_cast<std::int32_t>(ids);
    // Room for the private suffix of eager trajectories behind the context.
    b.suffix_capacity = share_ || recompute ? b.tokens : b.tokens + item.patches - 1;
    b.suffix_at = kv;
    last_blocks_[i].ids = variates;
    kv += std::int64_t{b.lanes()} * b.suffix_capacity * net_.config().embed_dim;
    ids += std::int64_t{b.variates} * b.tokens;
    variates += b.variates;
    row += b.rows();
    lane += b.lanes();
  }
  context_ids_.resize(static_cast<std::size_t>(ids));
  last_ids_.resize(static_cast<std::size_t>(variates));
  share_out(net_.backend(), batch.items.size(), [&](std::size_t i) {
    const Prepared& s = *batch.items[i].prepared;
    Block& b = context_blocks_[i];
    b.centre = (b.tokens - 1) / 2;
    b.labels = labels_;
    b.exogenous = s.exogenous;
    b.context = s.tokens;
    take_request(batch.items[i], b);
    const std::int32_t newest_at = last_blocks_[i].ids;
    auto newest_to = last_ids_.begin() + newest_at;
    Block& last = last_blocks_[i];
    last = b;
    last.row = b.lane;
    last.tokens = 1;
    last.ids = newest_at;
    auto to = context_ids_.begin() + b.ids;
    for (std::int32_t v = 0; v < s.variates; ++v) {
      const std::int32_t* from = s.ids.data() + std::ptrdiff_t{v} * s.tokens;
      const std::int32_t newest = from[s.tokens - 1];
      to = std::fill_n(to, labels_, from[0]);
      to = std::copy_n(from, s.tokens, to);
      to = std::fill_n(to, generated, newest);
      *newest_to++ = newest;
    }
  });
  const auto blocks = static_cast<std::int32_t>(context_blocks_.size());
  context_ = {context_blocks_.data(), context_ids_.data(), blocks, row, lane};
  last_ = {last_blocks_.data(), last_ids_.data(), blocks, lane, lane};
}

bool Toto1Program::sees_at_most(std::int32_t keys) const {
  return keys == 0 || std::all_of(context_blocks_.begin(), context_blocks_.end(),
                                  [&](const Block& b) { return b.tokens <= keys; });
}

/// One trajectory of each series; after describe_context() of one.
void Toto1Program::describe_source(const MicroBatch& batch) {
  source_blocks_ = last_blocks_;
  source_ = {source_blocks_.data(), last_ids_.data(), static_cast<std::int32_t>(batch.items.size()),
             last_.lanes, last_.lanes};
}

/// The call that decodes patch `iteration`, after describe_context(). A series that has no such
/// patch, or no trajectory from `first_sample` on, has no sequence in it. Those with more patches
/// come first, so a sequence keeps its place from patch to patch.
void Toto1Program::describe_further(const MicroBatch& batch, std::int32_t iteration,
                                    std::int32_t first_sample) {
  const std::int64_t width = net_.config().embed_dim;
  further_blocks_.clear();
  std::int32_t lane = 0;
  const Block& end = context_blocks_.back();
  std::int64_t kv = end.suffix_at + std::int64_t{end.lanes()} * end.suffix_capacity * width;
  for (std::size_t i = 0; i < batch.items.size(); ++i) {
    const Item& item = batch.items[i];
    const Prepared& s = *item.prepared;
    const std::int32_t tokens = s.tokens + labels_;  // of the context call
    Block b = last_blocks_[i];
    b.row = lane;
    b.lane = lane;
    b.trajectories = iteration < item.patches
                         ? std::clamp(item.trajectories - first_sample, 0, batch.at_once)
                         : 0;
    b.labels = 0;
    b.position = tokens + iteration - 1;  // of the patch fed in at this iteration
    // Uncached decoding has one centre for all keys; which one does not matter: the context's.
    b.centre = batch.cached ? b.position / 2 : (tokens - 1) / 2;
    if (share_) {
      b.prefix = tokens;
      b.prefix_at = context_blocks_[i].suffix_at;
      b.suffix = std::max(iteration - 1, 0);
      b.suffix_capacity = item.patches - 1;
      b.suffix_at = kv;
      kv += std::int64_t{std::clamp(item.trajectories - first_sample, 0, batch.at_once)} *
            b.variates * b.suffix_capacity * width;
    } else {
      b.suffix = b.position;
    }
    b.first_sample = first_sample;
    b.first_step = iteration * patch_;
    if (covariates_[i] >= 0) {
      b.covariates = covariates_[i] + std::int64_t{iteration} * s.exogenous * patch_;
    }
    lane += b.lanes();
    further_blocks_.push_back(b);
  }
  further_ = {further_blocks_.data(), last_ids_.data(),
              static_cast<std::int32_t>(further_blocks_.size()), lane, lane};
}

/// Label rows (ignored), the context, and what has been generated so far, for every trajectory.
void Toto1Program::stage_values(const MicroBatch& batch, std::int32_t generated, const Staging& in,
                                const Inputs& at) const {
  auto* const values = reinterpret_cast<float*>(in.host + at.x);
  std::byte* const masks = in.host + at.mask;
  const std::ptrdiff_t label = std::ptrdiff_t{labels_} * patch_;
  const std::ptrdiff_t more = static_cast<std::ptrdiff_t>(generated) * patch_;
  const std::ptrdiff_t stride = std::ptrdiff_t{batch.patches} * patch_;
  share_out(net_.backend(), batch.items.size(), [&](std::size_t i) {
    const Prepared& s = *batch.items[i].prepared;
    const Block& block = context_blocks_[i];
    const std::ptrdiff_t steps = static_cast<std::ptrdiff_t>(s.tokens) * patch_;
    float* x = values + std::ptrdiff_t{block.row} * patch_;
    std::byte* mask = masks + std::ptrdiff_t{block.row} * patch_;
    for (std::int32_t lane = 0; lane < block.lanes(); ++lane) {
      const std::ptrdiff_t v = lane % s.variates;
      std::fill_n(x, label, 0.0F);
      std::fill_n(mask, label, std::byte{0});
      std::copy_n(s.values.begin() + v * steps, steps, x + label);
      std::memcpy(mask + label, s.mask.data() + v * steps, static_cast<std::size_t>(steps));
      x += label + steps;
      mask += label + steps;
      if (generated == 0) continue;
      const double* const own = generated_.data() + std::ptrdiff_t{block.lane + lane} * stride;
      for (std::ptrdiff_t t = 0; t < more; ++t) x[t] = static_cast<float>(own[t]);
      std::fill_n(mask, more, std::byte{1});
      x += more;
      mask += more;
    }
  });
}

void Toto1Program::stage_covariates(const MicroBatch& batch, const Staging& in, const Inputs& at) {
  covariates_.clear();
  auto* const to = reinterpret_cast<float*>(in.host + at.covariates);
  std::int64_t used = 0;
  for (const Item& item : batch.items) {
    const Prepared& s = *item.prepared;
    covariates_.push_back(s.covariates.empty() ? -1 : used);
    std::copy(s.covariates.begin(), s.covariates.end(), to + used);
    used += static_cast<std::int64_t>(s.covariates.size());
  }
}

void Toto1Program::write(const Batch& batch, const Staging& in, std::size_t at, std::int64_t blocks,
                         std::int64_t ids) const {
  write_image(batch, BatchLayout(blocks, ids), in.host + at, in.device + at);
}

void Toto1Program::stage(const MicroBatch& batch, const ProgramKey& key, const Staging& in,
                         std::size_t offset, bool replay) {
  const Inputs at = inputs(key, offset);
  describe_context(batch, 0, 0, 0);
  assert(sees_at_most(key.own[0]));
  stage_values(batch, 0, in, at);
  stage_covariates(batch, in, at);
  write(context_, in, at.context, key.series, key.rows);
  write(last_, in, at.last, key.series, key.variates);
  if (!share_) {
    describe_source(batch);
    write(source_, in, at.source, key.series, key.variates);
  }
  const double weight_size = net_.backend().weight_size();
  const std::int32_t first_steps = key.patches > 1 ? patch_ : batch.horizon;
  if (share_ || key.passes == 0) {
    cost_ += forward_cost(net_.config(), net_.execution(), context_, first_steps, weight_size);
  }
  if (!replay) return;
  for (std::int32_t pass = 0; pass < key.passes; ++pass) {
    for (std::int32_t patch = 0; patch < key.patches; ++patch) {
      describe_further(batch, patch, pass * batch.at_once);
      const auto index = static_cast<std::size_t>(std::int64_t{pass} * key.patches + patch);
      write(further_, in, at.further + index * at.further_bytes, key.series, key.variates);
      if (patch == 0) continue;
      const std::int32_t steps = std::min(patch_, batch.horizon - patch * patch_);
      cost_ += forward_cost(net_.config(), net_.execution(), further_, steps, weight_size);
    }
  }
}

}  // namespace toto
