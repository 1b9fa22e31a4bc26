// SPDX-License-Identifier: Apache-2.0
// The calls of a forecast as blocks: what lies where, and what is sent to the backend.
#include <algorithm>

#include "engine/engine.h"

namespace toto {

void Engine::describe_context(std::int32_t trajectories, std::int32_t generated) {
  context_blocks_.clear();
  context_last_blocks_.clear();
  context_ids_.clear();
  last_ids_.clear();
  std::int32_t row = 0;
  std::int32_t lane = 0;
  std::int64_t kv = 0;
  for (const Prepared& s : prepared_) {
    Block b;
    b.row = row;
    b.lane = lane;
    b.trajectories = trajectories;
    b.variates = s.variates;
    b.tokens = s.tokens + labels_ + generated;
    b.centre = (b.tokens - 1) / 2;
    b.ids = static_cast<std::int32_t>(context_ids_.size());
    b.labels = labels_;
    b.exogenous = s.exogenous;
    b.context = s.tokens;
    // Room for the private suffix of eager trajectories behind the context.
    b.suffix_capacity = share_ || again_ ? b.tokens : b.tokens + patches_ - 1;
    b.suffix_at = kv;
    b.key = s.key;
    kv += std::int64_t{b.lanes()} * b.suffix_capacity * net_.config().embed_dim;
    context_blocks_.push_back(b);

    Block last = b;
    last.row = lane;
    last.tokens = 1;
    last.ids = static_cast<std::int32_t>(last_ids_.size());
    context_last_blocks_.push_back(last);
    for (std::int32_t v = 0; v < s.variates; ++v) {
      const std::int32_t* ids = s.ids.data() + std::ptrdiff_t{v} * s.tokens;
      const std::int32_t newest = ids[s.tokens - 1];
      context_ids_.insert(context_ids_.end(), static_cast<std::size_t>(labels_), ids[0]);
      context_ids_.insert(context_ids_.end(), ids, ids + s.tokens);
      context_ids_.insert(context_ids_.end(), static_cast<std::size_t>(generated), newest);
      last_ids_.push_back(newest);
    }
    row += b.rows();
    lane += b.lanes();
  }
  const auto blocks = static_cast<std::int32_t>(context_blocks_.size());
  context_ = {context_blocks_.data(), context_ids_.data(), blocks, row, lane};
  context_last_ = {context_last_blocks_.data(), last_ids_.data(), blocks, lane, lane};
}

/// Describes the context call, and stages what goes into it.
void Engine::stage_context(std::int32_t trajectories, std::int32_t generated) {
  describe_context(trajectories, generated);
  staging_.clear();
  mask_staging_.clear();
  std::int32_t lane = 0;
  for (const Prepared& s : prepared_) {
    stage_values(s, lane, trajectories, generated);
    lane += trajectories * s.variates;
  }
}

/// Label rows (ignored), the context, and what has been generated so far, for every trajectory.
void Engine::stage_values(const Prepared& s, std::int32_t lane, std::int32_t trajectories,
                          std::int32_t generated) {
  const std::size_t label = static_cast<std::size_t>(labels_) * static_cast<std::size_t>(patch_);
  const std::ptrdiff_t steps = static_cast<std::ptrdiff_t>(s.tokens) * patch_;
  const std::ptrdiff_t more = static_cast<std::ptrdiff_t>(generated) * patch_;
  for (std::int32_t n = 0; n < trajectories; ++n) {
    for (std::int32_t v = 0; v < s.variates; ++v) {
      const std::ptrdiff_t at = v * steps;
      staging_.insert(staging_.end(), label, 0.0);
      staging_.insert(staging_.end(), s.values.begin() + at, s.values.begin() + at + steps);
      mask_staging_.insert(mask_staging_.end(), label, 0);
      mask_staging_.insert(mask_staging_.end(), s.mask.begin() + at, s.mask.begin() + at + steps);
      if (generated == 0) continue;
      const std::ptrdiff_t own = std::ptrdiff_t{lane + n * s.variates + v} * patches_ * patch_;
      staging_.insert(staging_.end(), generated_.begin() + own, generated_.begin() + own + more);
      mask_staging_.insert(mask_staging_.end(), static_cast<std::size_t>(more), 1);
    }
  }
}

void Engine::describe_further(const Generation& g, std::int32_t iteration,
                              std::int32_t first_sample, std::int32_t trajectories) {
  const std::int64_t width = net_.config().embed_dim;
  further_blocks_.clear();
  std::int32_t lane = 0;
  const Block& end = context_blocks_.back();
  std::int64_t kv = end.suffix_at + std::int64_t{end.lanes()} * end.suffix_capacity * width;
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    const Prepared& s = prepared_[i];
    const std::int32_t tokens = s.tokens + labels_;  // of the context call
    Block b = context_last_blocks_[i];
    b.row = lane;
    b.lane = lane;
    b.trajectories = trajectories;
    b.labels = 0;
    b.position = tokens + iteration - 1;  // of the patch fed in at this iteration
    // Uncached decoding has one centre for all keys; which one does not matter: the context's.
    b.centre = g.cached ? b.position / 2 : (tokens - 1) / 2;
    if (share_) {
      b.prefix = tokens;
      b.prefix_at = context_blocks_[i].suffix_at;
      b.suffix = std::max(iteration - 1, 0);
      b.suffix_capacity = patches_ - 1;
      b.suffix_at = kv;
      kv += std::int64_t{b.lanes()} * b.suffix_capacity * width;
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

/// Into staging_, until the forecast begins.
void Engine::stage_covariates() {
  covariates_.clear();
  staging_.clear();
  for (const Prepared& s : prepared_) {
    covariates_.push_back(s.covariates.empty() ? -1 : static_cast<std::int64_t>(staging_.size()));
    staging_.insert(staging_.end(), s.covariates.begin(), s.covariates.end());
  }
}

void Engine::upload_forced(const Generation& g, const Chunk& chunk, std::int32_t iteration,
                           std::int32_t first_sample, std::int32_t trajectories) {
  const auto patch = static_cast<std::size_t>(patch_);
  staging_.clear();
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    const auto variates = static_cast<std::size_t>(prepared_[i].variates);
    const std::size_t first = static_cast<std::size_t>(first_sample) * variates;
    for (std::size_t lane = 0; lane < static_cast<std::size_t>(trajectories) * variates; ++lane) {
      const std::size_t at = ((first + lane) * static_cast<std::size_t>(patches_) +
                              static_cast<std::size_t>(iteration)) *
                             patch;
      const std::span<const float> from = g.forced[chunk.first + i].subspan(at, patch);
      staging_.insert(staging_.end(), from.begin(), from.end());
    }
  }
  net_.backend().upload(std::span<const double>(staging_), memory_->y);
}

}  // namespace toto
