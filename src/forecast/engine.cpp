// SPDX-License-Identifier: Apache-2.0
#include "forecast/engine.h"

#include <algorithm>

namespace toto {

struct Engine::Chunk {
  std::size_t first = 0;  // index of the first series in the request
  std::vector<Prepared> series;
  std::int32_t patch = 0;                // P
  std::int32_t patches = 0;              // R
  std::int32_t labels = 0;               // 1: every variate starts with a label token
  std::int64_t variates = 0;             // of all series
  std::vector<std::int64_t> covariates;  // element offset of each series' covariates; -1: none
  std::int64_t covariate_count = 0;
  std::size_t horizon = 0;
  bool share = true;   // one context for all trajectories
  bool again = false;  // eager and uncached: the context call is repeated for every patch

  [[nodiscard]] std::int32_t tokens(const Prepared& s) const { return s.tokens + labels; }
  /// Rows of one trajectory's longest call on the context.
  [[nodiscard]] std::int64_t context_rows() const {
    std::int64_t rows = 0;
    for (const Prepared& s : series) {
      rows += std::int64_t{s.variates} * (tokens(s) + (again ? patches - 1 : 0));
    }
    return rows;
  }
};

void Engine::run(std::span<const Series> series, const Generation& g, const Limits& limits,
                 Sink& sink) {
  const std::int32_t patch = net_.config().patch_size;
  const auto patches = static_cast<std::int32_t>((g.horizon + static_cast<std::size_t>(patch) - 1) /
                                                 static_cast<std::size_t>(patch));
  done_ = 0;
  total_ = series.size() * static_cast<std::size_t>(std::max(g.trajectories, 1)) *
           static_cast<std::size_t>(patches);
  sink.progress(0, total_);
  std::size_t next = 0;
  while (next < series.size()) {
    Chunk chunk;
    chunk.first = next;
    chunk.patch = patch;
    chunk.patches = patches;
    chunk.horizon = g.horizon;
    chunk.labels = net_.has_labels() ? 1 : 0;
    chunk.share = net_.execution().share_prefix;
    chunk.again = !chunk.share && !g.cached;
    std::int64_t rows = 0;
    while (next < series.size()) {
      Prepared prepared;
      prepare(series[next], patch, g.align, g.horizon, prepared);
      const std::int64_t more = std::int64_t{prepared.variates} * chunk.tokens(prepared);
      if (!chunk.series.empty() && rows + more > limits.rows) break;
      rows += more;
      chunk.variates += prepared.variates;
      chunk.covariates.push_back(prepared.covariates.empty() ? -1 : chunk.covariate_count);
      chunk.covariate_count += static_cast<std::int64_t>(prepared.covariates.size());
      chunk.series.push_back(std::move(prepared));
      ++next;
    }
    run_chunk(chunk, g, limits, sink);
    for (std::size_t i = 0; i < chunk.series.size(); ++i) sink.finished(chunk.first + i);
  }
}

void Engine::run_chunk(Chunk& chunk, const Generation& g, const Limits& limits, Sink& sink) {
  // How many trajectories go through the network at once.
  const std::int64_t element = static_cast<std::int64_t>(net_.backend().element_size());
  const std::int64_t rows = chunk.share ? chunk.variates : chunk.context_rows();
  const std::int64_t kept =
      (chunk.share ? 0 : chunk.context_rows()) + chunk.variates * chunk.patches;
  const std::int64_t bytes = kept * net_.config().embed_dim * 2 * net_.time_layers() * element;
  const std::int64_t fit =
      std::min(limits.rows / rows, limits.kv_bytes / std::max<std::int64_t>(bytes, 1));
  const std::int32_t wanted = std::max(g.trajectories, 1);
  const auto batch = static_cast<std::int32_t>(std::clamp<std::int64_t>(fit, 1, wanted));
  reserve(chunk, batch);
  if (chunk.covariate_count > 0) {
    staging_.clear();
    for (const Prepared& s : chunk.series) {
      staging_.insert(staging_.end(), s.covariates.begin(), s.covariates.end());
    }
    net_.backend().upload(std::span<const double>(staging_), memory_->covariates);
  }

  for (std::int32_t first = 0; first < wanted; first += batch) {
    const std::int32_t count = std::min(batch, wanted - first);
    const std::int32_t contexts = chunk.share ? 1 : count;
    steps_ = chunk.patches > 1 ? chunk.patch : static_cast<std::int32_t>(chunk.horizon);
    if (first == 0 || !chunk.share) {
      run_context(chunk, g, contexts, 0);
    }
    if (sink.wants_parameters(0) && (first == 0 || !chunk.share)) {
      emit_parameters(chunk, 0, first, contexts, true, sink);
    }
    if (g.trajectories == 0) break;
    describe_next(chunk, g, 0, first, count);
    if (chunk.share) {
      net_.backend().repeat_state(context_last_, next_, memory_->context_state, memory_->state);
    } else {
      net_.backend().repeat_state(next_, next_, memory_->context_state, memory_->state);
    }
    for (std::int32_t iteration = 0; iteration < chunk.patches; ++iteration) {
      if (iteration > 0) {
        const auto left = static_cast<std::int32_t>(chunk.horizon) - iteration * chunk.patch;
        steps_ = std::min(chunk.patch, left);
        if (chunk.again) {
          run_context(chunk, g, count, iteration);
        } else {
          describe_next(chunk, g, iteration, first, count);
          run_next();
        }
        if (sink.wants_parameters(iteration)) {
          emit_parameters(chunk, iteration, first, count, chunk.again, sink);
        }
        if (chunk.again) describe_next(chunk, g, iteration, first, count);
      }
      predict(chunk, g, iteration, first, count, iteration == 0 || chunk.again);
      emit_values(chunk, iteration, first, count, sink);
      done_ += chunk.series.size() * static_cast<std::size_t>(count);
      sink.progress(done_, total_);
    }
  }
  if (g.trajectories == 0) {
    done_ += chunk.series.size() * static_cast<std::size_t>(chunk.patches);
    sink.progress(done_, total_);
  }
}

void Engine::reserve(const Chunk& chunk, std::int32_t batch) {
  const std::int64_t width = net_.config().embed_dim;
  const std::int32_t contexts = chunk.share ? 1 : batch;
  Capacity need;
  need.context_lanes = contexts * chunk.variates;
  need.lanes = batch * chunk.variates;
  need.rows = std::max(contexts * chunk.context_rows(), need.lanes);
  need.covariates = chunk.covariate_count;
  need.one_patch = chunk.patches == 1;
  for (const Prepared& s : chunk.series) {
    need.positions = std::max(need.positions, chunk.tokens(s) + chunk.patches);
    const std::int64_t suffix = std::int64_t{batch} * s.variates * (chunk.patches - 1);
    need.kv_elements += (std::int64_t{contexts} * s.variates * chunk.tokens(s) + suffix) * width;
  }
  if (memory_ && memory_->capacity().holds(need)) return;
  memory_.reset();
  memory_ = std::make_unique<Workspace>(net_, need);
}

void Engine::stage_context(const Chunk& chunk, std::int32_t trajectories, std::int32_t generated) {
  const std::int32_t patch = chunk.patch;
  const auto span = static_cast<std::size_t>(patch);
  context_blocks_.clear();
  context_last_blocks_.clear();
  context_ids_.clear();
  last_ids_.clear();
  staging_.clear();
  mask_staging_.clear();
  std::int32_t row = 0;
  std::int32_t lane = 0;
  std::int64_t kv = 0;
  for (const Prepared& s : chunk.series) {
    Block b;
    b.row = row;
    b.lane = lane;
    b.trajectories = trajectories;
    b.variates = s.variates;
    b.tokens = chunk.tokens(s) + generated;
    b.centre = (b.tokens - 1) / 2;
    b.ids = static_cast<std::int32_t>(context_ids_.size());
    b.labels = chunk.labels;
    b.exogenous = s.exogenous;
    b.context = s.tokens;
    // Room for the private suffix of eager trajectories behind the context.
    b.suffix_capacity = chunk.share || chunk.again ? b.tokens : b.tokens + chunk.patches - 1;
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
      context_ids_.insert(context_ids_.end(), static_cast<std::size_t>(chunk.labels), ids[0]);
      context_ids_.insert(context_ids_.end(), ids, ids + s.tokens);
      context_ids_.insert(context_ids_.end(), static_cast<std::size_t>(generated),
                          ids[s.tokens - 1]);
      last_ids_.push_back(ids[s.tokens - 1]);
    }
    const auto steps = static_cast<std::ptrdiff_t>(s.tokens) * patch;
    for (std::int32_t n = 0; n < trajectories; ++n) {
      for (std::int32_t v = 0; v < s.variates; ++v) {
        staging_.insert(staging_.end(), span * static_cast<std::size_t>(chunk.labels), 0.0);
        mask_staging_.insert(mask_staging_.end(), span * static_cast<std::size_t>(chunk.labels), 0);
        const std::ptrdiff_t at = v * steps;
        staging_.insert(staging_.end(), s.values.begin() + at, s.values.begin() + at + steps);
        mask_staging_.insert(mask_staging_.end(), s.mask.begin() + at, s.mask.begin() + at + steps);
        const auto from =
            generated_.begin() +
            static_cast<std::ptrdiff_t>(lane + n * s.variates + v) * chunk.patches * patch;
        if (generated > 0) staging_.insert(staging_.end(), from, from + generated * patch);
        mask_staging_.insert(mask_staging_.end(), span * static_cast<std::size_t>(generated), 1);
      }
    }
    row += b.rows();
    lane += b.lanes();
  }
  const auto blocks = static_cast<std::int32_t>(context_blocks_.size());
  context_ = {context_blocks_.data(), context_ids_.data(), blocks, row, lane};
  context_last_ = {context_last_blocks_.data(), last_ids_.data(), blocks, lane, lane};
}

void Engine::run_context(const Chunk& chunk, const Generation& g, std::int32_t trajectories,
                         std::int32_t iteration) {
  const Backend& be = net_.backend();
  Workspace& w = *memory_;
  const std::int32_t patch = chunk.patch;
  stage_context(chunk, trajectories, iteration);
  be.upload(std::span<const double>(staging_), w.x);
  std::copy(mask_staging_.begin(), mask_staging_.end(), w.mask);
  be.scale(context_, net_.scaler_spec(), w.x, w.mask, w.context_state, w.act.scaled, w.loc,
           w.scale);
  if (g.statistics && iteration == 0) {
    loc_.resize(static_cast<std::size_t>(context_.rows) * static_cast<std::size_t>(patch));
    scale_.resize(loc_.size());
    be.download(w.loc, loc_);
    be.download(w.scale, scale_);
    g.statistics(loc_, scale_);
  }
  be.gather_last(context_, w.loc, w.context_loc, patch);
  be.gather_last(context_, w.scale, w.context_scale, patch);
  Activations a = w.act;
  a.params = w.context_params;
  net_.forward(context_, context_last_, w.rotary, w.kv, a, steps_,
               iteration == 0 ? g.observer : LayerObserver{});
}

void Engine::describe_next(const Chunk& chunk, const Generation& g, std::int32_t iteration,
                           std::int32_t first_sample, std::int32_t trajectories) {
  next_blocks_.clear();
  std::int32_t lane = 0;
  std::int64_t kv = 0;
  const std::int64_t width = net_.config().embed_dim;
  for (const Block& context : context_blocks_)
    kv = std::max(
        kv, context.suffix_at + std::int64_t{context.lanes()} * context.suffix_capacity * width);
  for (std::size_t i = 0; i < chunk.series.size(); ++i) {
    const Prepared& s = chunk.series[i];
    const Block& context = context_blocks_[i];
    const std::int32_t tokens = chunk.tokens(s);  // of the context call
    Block b = context_last_blocks_[i];
    b.row = lane;
    b.lane = lane;
    b.trajectories = trajectories;
    b.labels = 0;
    b.position = tokens + iteration - 1;  // of the patch fed in at this iteration
    // Uncached decoding has one centre for all keys; which one does not matter, so the context's is
    // kept.
    b.centre = g.cached ? b.position / 2 : (tokens - 1) / 2;
    if (chunk.share) {
      b.prefix = tokens;
      b.prefix_at = context.suffix_at;
      b.suffix = iteration - 1;
      b.suffix_capacity = chunk.patches - 1;
      b.suffix_at = kv;
      kv += std::int64_t{b.lanes()} * b.suffix_capacity * width;
    } else {
      b.suffix = b.position;
    }
    b.first_sample = first_sample;
    b.first_step = iteration * chunk.patch;
    if (chunk.covariates[i] >= 0) {
      b.covariates = chunk.covariates[i] + std::int64_t{iteration} * s.exogenous * chunk.patch;
    }
    lane += b.lanes();
    next_blocks_.push_back(b);
  }
  next_ = {next_blocks_.data(), last_ids_.data(), static_cast<std::int32_t>(next_blocks_.size()),
           lane, lane};
}

void Engine::run_next() {
  const Backend& be = net_.backend();
  Workspace& w = *memory_;
  const std::int32_t patch = net_.config().patch_size;
  be.scale(next_, net_.scaler_spec(), w.y, w.ones, w.state, w.act.scaled, w.loc, w.scale);
  be.gather_last(next_, w.loc, w.lane_loc, patch);
  be.gather_last(next_, w.scale, w.lane_scale, patch);
  net_.forward(next_, next_, w.rotary, w.kv, w.act, steps_);
}

void Engine::predict(const Chunk& chunk, const Generation& g, std::int32_t iteration,
                     std::int32_t first_sample, std::int32_t trajectories, bool from_context) {
  const Backend& be = net_.backend();
  Workspace& w = *memory_;
  const PatchShape shape{chunk.patch, net_.config().components, steps_};
  const Batch* shared = from_context && chunk.share ? &context_last_ : nullptr;
  const void* params = from_context ? w.context_params : w.act.params;
  const void* loc = from_context ? w.context_loc : w.lane_loc;
  const void* scale = from_context ? w.context_scale : w.lane_scale;
  if (!g.forced.empty()) {
    staging_.clear();
    for (std::size_t i = 0; i < chunk.series.size(); ++i) {
      const std::span<const float> forced = g.forced[chunk.first + i];
      const std::size_t lanes = static_cast<std::size_t>(trajectories) *
                                static_cast<std::size_t>(chunk.series[i].variates);
      const std::size_t first = static_cast<std::size_t>(first_sample) *
                                static_cast<std::size_t>(chunk.series[i].variates);
      const auto patch = static_cast<std::size_t>(chunk.patch);
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const auto from = forced.subspan(((first + lane) * static_cast<std::size_t>(chunk.patches) +
                                          static_cast<std::size_t>(iteration)) *
                                             patch,
                                         patch);
        staging_.insert(staging_.end(), from.begin(), from.end());
      }
    }
    be.upload(std::span<const double>(staging_), w.y);
  } else if (g.mean) {
    be.predict_mean(next_, shared, shape, params, loc, scale, w.y);
    be.inject(next_, shape, w.covariates, w.y);
  } else {
    be.predict_draw(next_, shared, shape, g.seed, params, loc, scale, w.y);
    be.inject(next_, shape, w.covariates, w.y);
  }
}

void Engine::emit_parameters(const Chunk& chunk, std::int32_t iteration, std::int32_t first_sample,
                             std::int32_t trajectories, bool from_context, Sink& sink) {
  const Backend& be = net_.backend();
  const Workspace& w = *memory_;
  const auto lanes = static_cast<std::size_t>(trajectories * chunk.variates);
  const std::int32_t components = net_.config().components;
  const std::size_t stride =
      static_cast<std::size_t>(steps_) * 4 * static_cast<std::size_t>(components);
  const auto patch = static_cast<std::size_t>(chunk.patch);
  params_.resize(lanes * stride);
  loc_.resize(lanes * patch);
  scale_.resize(lanes * patch);
  be.download(from_context ? w.context_params : w.act.params, params_);
  be.download(from_context ? w.context_loc : w.lane_loc, loc_);
  be.download(from_context ? w.context_scale : w.lane_scale, scale_);
  std::size_t lane = 0;
  for (std::size_t i = 0; i < chunk.series.size(); ++i) {
    const std::int32_t variates = chunk.series[i].variates;
    const PatchView at{chunk.first + i, iteration,   first_sample, trajectories,
                       variates,        chunk.patch, steps_,       components};
    const std::size_t count =
        static_cast<std::size_t>(trajectories) * static_cast<std::size_t>(variates);
    sink.parameters(at, std::span(params_).subspan(lane * stride, count * stride),
                    std::span(loc_).subspan(lane * patch, count * patch),
                    std::span(scale_).subspan(lane * patch, count * patch));
    lane += count;
  }
}

void Engine::emit_values(const Chunk& chunk, std::int32_t iteration, std::int32_t first_sample,
                         std::int32_t trajectories, Sink& sink) {
  const auto patch = static_cast<std::size_t>(chunk.patch);
  y_.resize(static_cast<std::size_t>(trajectories * chunk.variates) * patch);
  net_.backend().download(memory_->y, y_);
  if (chunk.again) {
    generated_.resize(static_cast<std::size_t>(trajectories * chunk.variates * chunk.patches) *
                      patch);
    const auto stride = static_cast<std::size_t>(chunk.patches) * patch;
    for (std::size_t lane = 0; lane * patch < y_.size(); ++lane) {
      for (std::size_t t = 0; t < patch; ++t) {
        generated_[lane * stride + static_cast<std::size_t>(iteration) * patch + t] =
            y_[lane * patch + t];
      }
    }
  }
  std::size_t lane = 0;
  for (std::size_t i = 0; i < chunk.series.size(); ++i) {
    const std::int32_t variates = chunk.series[i].variates;
    const PatchView at{chunk.first + i, iteration,   first_sample, trajectories,
                       variates,        chunk.patch, steps_,       net_.config().components};
    const std::size_t count =
        static_cast<std::size_t>(trajectories) * static_cast<std::size_t>(variates);
    sink.values(at, std::span(y_).subspan(lane * patch, count * patch));
    lane += count;
  }
}

}  // namespace toto
