// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "core/stopwatch.h"

namespace toto {

/// What a request says about every call.
void Engine::take(const Generation& g) {
  patch_ = net_.config().patch_size;
  horizon_ = g.horizon;
  patches_ = static_cast<std::int32_t>((horizon_ + static_cast<std::size_t>(patch_) - 1) /
                                       static_cast<std::size_t>(patch_));
  labels_ = net_.has_labels() ? 1 : 0;
  align_ = g.align;
  share_ = net_.execution().share_prefix;
  again_ = !share_ && !g.cached;
}

/// How many series, from `first` on, go through the network together: not more than leave room for
/// as many trajectories at once as a recorded forecast needs, for a series' bits are not to depend
/// on what is forecast beside it.
std::size_t Engine::chunk_size(std::span<const Series> series, const Generation& g,
                               std::size_t first, const Limits& limits) const {
  const std::int32_t fewest = fewest_recorded(g);
  Chunk chunk;
  for (const Series& s : series.subspan(first)) {
    add(s, chunk);
    const bool fits = chunk.context_rows <= limits.rows && first_batch(chunk, g, limits) >= fewest;
    if (chunk.count > 0 && !fits) break;
    ++chunk.count;
  }
  return chunk.count;
}

void Engine::run(std::span<const Series> series, const Generation& g, const Limits& limits,
                 Sink& sink) {
  take(g);
  {
    const Stopwatch watch(prepare_seconds_);
    for (const Series& s : series) check_series(s, patch_, align_, horizon_);
  }
  done_ = 0;
  total_ = series.size() * static_cast<std::size_t>(std::max(g.trajectories, 1)) *
           static_cast<std::size_t>(patches_);
  sink.progress(0, total_);
  const std::uint64_t reads_before = net_.backend().host_reads();
  for (std::size_t first = 0; first < series.size();) {
    const std::size_t count = chunk_size(series, g, first, limits);
    run_range(series, g, limits, first, count, sink);
    first += count;
  }
  host_reads_ += net_.backend().host_reads() - reads_before;
}

void Engine::run_range(std::span<const Series> series, const Generation& g, const Limits& limits,
                       std::size_t first, std::size_t count, Sink& sink) {
  const Chunk chunk = measure(series, first, count);
  if (run_chunk(series, g, chunk, first_batch(chunk, g, limits), sink)) return;
  if (count == 1) refuse(series, chunk);
  ++splits_;
  plans_.log(fmt::format("batch split: {} series do not fit together", count));
  run_range(series, g, limits, first, count / 2, sink);
  run_range(series, g, limits, first + count / 2, count - count / 2, sink);
}

/// False, and nothing has been said to the sink but begin(), where the memory does not suffice.
bool Engine::run_chunk(std::span<const Series> series, const Generation& g, const Chunk& chunk,
                       std::int32_t batch, Sink& sink) {
  if (!acquire(series, chunk, g, batch)) return false;
  const std::size_t first = chunk.first;
  const std::size_t count = chunk.count;
  {
    const Stopwatch watch(prepare_seconds_);
    if (pool_.size() < count) pool_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      prepare(series[first + i], patch_, align_, horizon_, pool_[i]);
    }
    prepared_ = std::span<const Prepared>(pool_).first(count);
    stage_covariates();
  }
  sink.begin(first, count);
  Played played = run_recorded(g, chunk, batch, sink);
  while (played == Played::no_memory && (count > 1 || batch > fewest_recorded(g))) {
    // What the plan holds may be what its inputs and results are short of.
    plans_.forget();
    if (count > 1) return false;
    ++splits_;
    batch = (batch + 1) / 2;
    if (!acquire(series, chunk, g, batch)) return false;
    played = run_recorded(g, chunk, batch, sink);
  }
  if (played == Played::no_memory) {
    ++graph_fallbacks_;
    plans_.log("graph fallback: no memory for its inputs and results");
  }
  if (played != Played::yes) {
    net_.backend().upload(std::span<const double>(staging_), memory_->covariates);
    generate(g, chunk, batch, sink);
  }
  const Stopwatch watch(emit_seconds_);
  sink.finish();
  return true;
}

Engine::Chunk Engine::measure(std::span<const Series> series, std::size_t first,
                              std::size_t count) const {
  Chunk chunk;
  chunk.first = first;
  chunk.count = count;
  for (const Series& s : series.subspan(first, count)) add(s, chunk);
  return chunk;
}

/// What a series more means for the size of a chunk.
void Engine::add(const Series& s, Chunk& chunk) const {
  const auto variates = static_cast<std::int64_t>(s.variates);
  const std::int32_t tokens = context_tokens(s, patch_, align_) + labels_;
  chunk.variates += variates;
  chunk.context_rows += variates * (tokens + (again_ ? patches_ - 1 : 0));
  chunk.longest = std::max(chunk.longest, tokens);
}

Capacity Engine::need(std::span<const Series> series, const Chunk& chunk,
                      std::int32_t batch) const {
  const std::int64_t width = net_.config().embed_dim;
  const std::int64_t contexts = share_ ? 1 : batch;
  Capacity c;
  c.context_lanes = contexts * chunk.variates;
  c.lanes = batch * chunk.variates;
  c.rows = std::max(contexts * chunk.context_rows, c.lanes);
  c.positions = chunk.longest + patches_;
  c.one_patch = patches_ == 1;
  const std::int64_t suffix = batch * chunk.variates * (again_ ? 0 : patches_ - 1);
  c.kv_elements = (contexts * chunk.context_rows + suffix) * width;
  for (const Series& s : series.subspan(chunk.first, chunk.count)) {
    if (s.future_exogenous.empty()) continue;
    c.covariates += static_cast<std::int64_t>(s.exogenous) * patches_ * patch_;
  }
  return c;
}

/// How many trajectories go through the network at once, before memory has a say.
std::int32_t Engine::first_batch(const Chunk& chunk, const Generation& g,
                                 const Limits& limits) const {
  const auto element = static_cast<std::int64_t>(net_.backend().element_size());
  const std::int64_t rows = share_ ? chunk.variates : chunk.context_rows;
  const std::int64_t kept = (share_ ? 0 : chunk.context_rows) + chunk.variates * patches_;
  const std::int64_t bytes =
      kept * net_.config().embed_dim * 2 * std::max(net_.time_layers(), 1) * element;
  const std::int64_t fit = std::min(limits.rows / rows, limits.kv_bytes / bytes);
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(fit, 1, std::max(g.trajectories, 1)));
}

/// Finds memory for as many trajectories as fit, halving `batch`; false where not even one does, or
/// so few that series by series would be better.
bool Engine::acquire(std::span<const Series> series, const Chunk& chunk, const Generation& g,
                     std::int32_t& batch) {
  batch = std::min(batch, std::max(g.trajectories, 1));
  const std::int32_t fewest = chunk.count == 1 ? 1 : std::min(batch, fewest_recorded(g));
  for (;;) {
    const Capacity wanted = need(series, chunk, batch);
    const std::uint64_t limit = plans_.memory_limit();
    if (limit == 0 || plans_.bytes_for(wanted) <= limit) {
      try {
        memory_ = &plans_.acquire(wanted);
        return true;
      } catch (const std::bad_alloc&) {
        plans_.log(fmt::format("no memory for {} trajectories of {} series", batch, chunk.count));
        if (recordings_.forget()) continue;  // theirs may be all that is missing
      }
    }
    if (batch <= fewest) return false;
    ++splits_;
    batch = std::max((batch + 1) / 2, fewest);
  }
}

void Engine::refuse(std::span<const Series> series, const Chunk& chunk) const {
  const std::size_t bytes = plans_.bytes_for(need(series, chunk, 1));
  const double mebibytes = static_cast<double>(bytes) / (1 << 20);
  const std::string where = fmt::format("series '{}'", series[chunk.first].id);
  const std::string message =
      fmt::format("one trajectory needs {:.1f} MiB of working memory", mebibytes);
  if (plans_.memory_limit() != 0 && bytes > plans_.memory_limit()) {
    throw Error(ExitStatus::usage, "memory_limit",
                fmt::format("{}, the limit is {:.1f} MiB", message,
                            static_cast<double>(plans_.memory_limit()) / (1 << 20)),
                where, "raise the limit or shorten context and horizon");
  }
  throw Error(ExitStatus::internal, "out_of_memory", message, where,
              "free memory, or shorten context and horizon");
}

void Engine::generate(const Generation& g, const Chunk& chunk, std::int32_t batch, Sink& sink) {
  const Backend& be = net_.backend();
  const std::int32_t wanted = std::max(g.trajectories, 1);
  for (std::int32_t first = 0; first < wanted; first += batch) {
    const std::int32_t count = std::min(batch, wanted - first);
    const std::int32_t contexts = share_ ? 1 : count;
    const bool fresh = first == 0 || !share_;
    steps_ = patches_ > 1 ? patch_ : static_cast<std::int32_t>(horizon_);
    if (fresh) run_context(g, contexts, 0);
    if (fresh && sink.wants_parameters(0)) {
      emit_parameters(chunk, 0, first, contexts, Kind::context, sink);
    }
    if (g.trajectories == 0) break;
    describe_further(g, 0, first, count);
    be.repeat_state(share_ ? context_last_ : further_, further_, memory_->context_state,
                    memory_->state);
    for (std::int32_t iteration = 0; iteration < patches_; ++iteration) {
      const Kind from = iteration == 0 || again_ ? Kind::context : Kind::further;
      if (iteration > 0) {
        const auto left = static_cast<std::int32_t>(horizon_) - iteration * patch_;
        steps_ = std::min(patch_, left);
        if (again_) run_context(g, count, iteration);
        describe_further(g, iteration, first, count);
        if (!again_) run_further();
        if (sink.wants_parameters(iteration)) {
          emit_parameters(chunk, iteration, first, count, from, sink);
        }
      }
      predict(g, chunk, iteration, first, count, from);
      emit_values(chunk, iteration, first, count, sink);
      done_ += chunk.count * static_cast<std::size_t>(count);
      sink.progress(done_, total_);
    }
  }
  if (g.trajectories == 0) {
    done_ += chunk.count * static_cast<std::size_t>(patches_);
    sink.progress(done_, total_);
  }
}

void Engine::run_context(const Generation& g, std::int32_t trajectories, std::int32_t iteration) {
  const Backend& be = net_.backend();
  const Workspace& w = *memory_;
  {
    const Stopwatch watch(prepare_seconds_);
    stage_context(trajectories, iteration);
    be.upload(std::span<const double>(staging_), w.x);
    be.upload_bytes(mask_staging_, w.mask);
  }
  const Stopwatch watch(context_seconds_);
  be.scale(context_, net_.scaler_spec(), w.x, w.mask, w.context_state,
           {w.act.scaled, w.loc, w.scale, w.context_loc, w.context_scale});
  if (g.statistics && iteration == 0) {
    loc_.resize(static_cast<std::size_t>(context_.rows) * static_cast<std::size_t>(patch_));
    scale_.resize(loc_.size());
    be.download(w.loc, loc_);
    be.download(w.scale, scale_);
    g.statistics(loc_, scale_);
  }
  Activations a = w.act;
  a.params = w.context_params;
  net_.forward(context_, context_last_, w.rotary, w.kv, a, steps_,
               iteration == 0 ? &g.observer : nullptr);
  cost_ += forward_cost(net_.config(), net_.execution(), context_, steps_, be.weight_size());
}

void Engine::run_further() {
  const Backend& be = net_.backend();
  const Workspace& w = *memory_;
  const Stopwatch watch(decode_seconds_);
  be.scale(further_, net_.scaler_spec(), w.y, w.ones, w.state,
           {w.act.scaled, w.loc, w.scale, w.lane_loc, w.lane_scale});
  net_.forward(further_, further_, w.rotary, w.kv, w.act, steps_);
  cost_ += forward_cost(net_.config(), net_.execution(), further_, steps_, be.weight_size());
}

void Engine::predict(const Generation& g, const Chunk& chunk, std::int32_t iteration,
                     std::int32_t first_sample, std::int32_t trajectories, Kind from) {
  const Stopwatch watch(decode_seconds_);
  if (!g.forced.empty()) {
    upload_forced(g, chunk, iteration, first_sample, trajectories);
    return;
  }
  const Backend& be = net_.backend();
  const Workspace& w = *memory_;
  const PatchShape shape{patch_, net_.config().components, steps_};
  const bool context = from == Kind::context;
  const Batch* shared = context && share_ ? &context_last_ : nullptr;
  const void* params = context ? w.context_params : w.act.params;
  const void* loc = context ? w.context_loc : w.lane_loc;
  const void* scale = context ? w.context_scale : w.lane_scale;
  if (g.mean) {
    be.predict_mean(further_, shared, shape, params, loc, scale, w.y);
  } else {
    be.predict_draw(further_, shared, shape, g.seed, params, loc, scale, w.y);
  }
  be.inject(further_, shape, w.covariates, w.y);
}

void Engine::count(Counters& counters) const {
  counters.splits = splits_;
  counters.host_reads = host_reads_;
  counters.graph_captures = graph_captures_;
  counters.graph_replays = graph_replays_;
  counters.graph_fallbacks = graph_fallbacks_;
  counters.graph_launches = launches_;
  counters.device_seconds = device_seconds_;
  counters.operations = cost_.operations;
  counters.weight_bytes = cost_.weight_bytes;
  counters.prepare_seconds = prepare_seconds_;
  counters.context_seconds = context_seconds_;
  counters.decode_seconds = decode_seconds_;
  counters.statistics_seconds = emit_seconds_;
}

}  // namespace toto
