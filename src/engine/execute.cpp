// SPDX-License-Identifier: Apache-2.0
// One micro-batch: everything that it is made of goes into a staging buffer, the program is
// executed at once or replayed as a captured graph, and results are read from another buffer.
#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "backend/share_out.h"
#include "core/stopwatch.h"
#include "engine/engine.h"

namespace toto {
namespace {

constexpr std::size_t kLevelsAt = 0;  // of the inputs; the program's own come after them

std::size_t level_bytes(const ProgramKey& key) {
  Offsets offsets;
  offsets.take(static_cast<std::size_t>(key.level_values) * sizeof(double));
  return offsets.used();
}

}  // namespace

ProgramKey Engine::key_of(const MicroBatch& batch) const {
  ProgramKey key;
  key.plan = memory_->capacity;
  key.epoch = plans_.epoch();
  key.level_values = static_cast<std::int32_t>(bucket(static_cast<std::int64_t>(levels_.size())));
  program_->size(batch, key);
  return key;
}

/// Why a request has to be executed operation by operation; nullptr: it can be captured.
const char* Engine::uncapturable(const MicroBatch& batch) const {
  if (generation_.probe != nullptr) return "somebody looks inside";
  return program_->uncapturable(batch);
}

void Engine::stage(const MicroBatch& batch, const ProgramKey& key, const Staging& in, bool replay) {
  const Stopwatch watch(times_.prepare, "prepare");
  std::copy(levels_.begin(), levels_.end(), reinterpret_cast<double*>(in.host + kLevelsAt));
  program_->stage(batch, key, in, level_bytes(key), replay);
}

Levels Engine::levels_of(const ProgramKey& key, const Staging& in) const {
  return {reinterpret_cast<const double*>(in.device + kLevelsAt), key.levels};
}

ResultPointers Engine::pointers(const ProgramKey& key, std::byte* to, float* kept) const {
  const ResultLayout at(key, patch_);
  const auto part = [&](std::size_t offset) { return reinterpret_cast<float*>(to + offset); };
  return {part(at.exact), part(at.sampled), part(at.parameters),
          key.samples ? part(at.samples) : kept};
}

Engine::Outcome Engine::execute(const MicroBatch& batch, ResultSink& sink) {
  const ProgramKey key = key_of(batch);
  if (capturing_ && backend_.capture() != nullptr) {
    const char* const why = uncapturable(batch);
    if (why == nullptr) return replay(batch, key, sink);
    ++graph_fallbacks_;
    plans_.log(Topic::graphs, "graph_fallback", fmt::format("graph fallback: {}", why));
  }
  const ResultLayout at(key, patch_);
  try {
    const bool grown = grow(backend_, buffers_, level_bytes(key) + program_->input_bytes(key),
                            at.bytes(key), key.samples ? 0 : at.samples_bytes);
    if (grown) {
      ++allocations_;
      plans_.log(Topic::memory, "memory_grown", "the buffers of inputs and results grew");
    }
    backend_.reserve_statistics(net_.components(), key.levels, key.trajectories);
  } catch (const std::bad_alloc&) {
    release(backend_, buffers_);
    return Outcome::no_memory;
  }
  stage(batch, key, buffers_.in, false);
  for (const Item& item : batch.items) sink.expect(item.index);
  Executor executor(backend_, buffers_.in, level_bytes(key), levels_of(key, buffers_.in),
                    pointers(key, buffers_.out.device, static_cast<float*>(buffers_.kept)), false,
                    generation_.probe, times_);
  executor.on_progress = [this, &sink](std::size_t units) {
    done_ += units;
    sink.progress(done_, total_);
  };
  program_->run(executor, batch, key, *memory_);
  cost_ += program_->take_cost();
  backend_.copy_out(buffers_.out, at.bytes(key));
  backend_.synchronise();
  read(batch, key, buffers_.out.host, sink);
  return Outcome::done;
}

Engine::Outcome Engine::replay(const MicroBatch& batch, const ProgramKey& key, ResultSink& sink) {
  CapturedForecast* captured = graphs_.find(key);
  if (captured == nullptr) {
    const Stopwatch watch(capture_seconds_, "capture");
    captured = capture(batch, key);
  }
  if (captured == nullptr) return Outcome::no_memory;
  stage(batch, key, captured->buffers.in, true);
  cost_ += program_->take_cost();
  {
    const Stopwatch watch(times_.prefill, "replay");
    awaited_.clear();
    if (captured->on_host) await(batch, key, captured->buffers.out);
    GraphCapture& device = *backend_.capture();
    device.launch(*captured->graph, generation_.time_device, awaited_);
    try {
      for (const Item& item : batch.items) sink.expect(item.index);
    } catch (...) {
      device.finish(generation_.time_device, awaited_);  // it writes to buffers that may be freed
      throw;
    }
    device_seconds_ += device.finish(generation_.time_device, awaited_);
    launches_ = captured->graph->launches();
    ++graph_replays_;
  }
  read(batch, key, captured->buffers.out.host, sink);
  for (const Item& item : batch.items) {
    done_ += static_cast<std::size_t>(std::max(item.trajectories, 1)) *
             static_cast<std::size_t>(item.patches);
  }
  sink.progress(done_, total_);
  return Outcome::done;
}

/// Captures the program of a key; nullptr where there is no memory for it.
CapturedForecast* Engine::capture(const MicroBatch& batch, const ProgramKey& key) {
  GraphCapture& capture_of = *backend_.capture();
  const ResultLayout at(key, patch_);
  auto captured = std::make_unique<CapturedForecast>();
  captured->key = key;
  Buffers& b = captured->buffers;
  try {
    grow(backend_, b, level_bytes(key) + program_->input_bytes(key), at.bytes(key),
         key.samples ? 0 : at.samples_bytes);
    backend_.reserve_statistics(net_.components(), key.levels, key.trajectories);
    capture_of.begin();
    try {
      // Samples are read again by what forms their statistics: they stay on the device.
      const std::size_t bytes = at.bytes(key);
      std::byte* const to = key.samples ? b.out.device : backend_.results(b.out, bytes);
      captured->on_host = to == b.out.host;
      Executor executor(backend_, b.in, level_bytes(key), levels_of(key, b.in),
                        pointers(key, to, static_cast<float*>(b.kept)), true, nullptr, times_);
      program_->run(executor, batch, key, *memory_);
      if (!captured->on_host && bytes > 0) backend_.copy_out(b.out, bytes);
    } catch (...) {
      capture_of.abandon();
      throw;
    }
    captured->graph = capture_of.end();
  } catch (const std::bad_alloc&) {
    graphs_.release(*captured);
    return graphs_.forget() ? capture(batch, key) : nullptr;  // others may hold what is missing
  } catch (...) {
    graphs_.release(*captured);
    throw;
  }
  ++graph_captures_;
  if (graphs_.full()) {
    plans_.log(Topic::graphs, "graph_evicted", "graph evicted: max-plans graphs are kept");
  }
  plans_.log(Topic::graphs, "graph_captured",
             fmt::format("graph captured: {} kernels, {} rows, {} lanes, {} patches",
                         captured->graph->launches(), key.rows, key.lanes, key.patches));
  return &graphs_.add(std::move(captured));
}

/// Which results of the batch kernels write straight to the host.
void Engine::await(const MicroBatch& batch, const ProgramKey& key, const Staging& out) {
  const ResultLayout at(key, patch_);
  const auto stride = static_cast<std::size_t>(key.stride());
  const auto exact = static_cast<std::size_t>(key.exact ? key.exact_steps : 0);
  const std::size_t left = static_cast<std::size_t>(key.horizon(patch_)) - exact;
  const auto add = [&](std::size_t offset, std::size_t cell, std::size_t cells, std::size_t used) {
    if (cells == 0) return;
    float* const first = reinterpret_cast<float*>(out.host + offset) + cell * stride;
    awaited_.push_back({first, cells, stride, used});
  };
  std::size_t lane = 0;
  for (const Item& item : batch.items) {
    const auto horizon = static_cast<std::size_t>(item.horizon);
    const std::size_t used = 2 + static_cast<std::size_t>(item.level_count);
    const bool drawn = key.sampled && item.trajectories > 0;
    for (std::int32_t v = 0; v < item.variates; ++v, ++lane) {
      add(at.exact, lane * exact, std::min(horizon, exact), used);
      add(at.sampled, lane * left, drawn && horizon > exact ? horizon - exact : 0, used);
    }
  }
}

void Engine::read(const MicroBatch& batch, const ProgramKey& key, const std::byte* from,
                  ResultSink& sink) {
  const Stopwatch watch(times_.statistics, "statistics");
  const ResultLayout at(key, patch_);
  SeriesResults common;
  common.horizon = static_cast<std::size_t>(key.horizon(patch_));
  common.stride = static_cast<std::size_t>(key.stride());
  common.exact_steps = static_cast<std::size_t>(key.exact ? key.exact_steps : 0);
  common.trajectories = static_cast<std::size_t>(key.trajectories);
  common.parameter_floats = static_cast<std::size_t>(key.parameter_floats);
  first_lanes_.clear();
  std::size_t lanes = 0;
  for (const Item& item : batch.items) {
    first_lanes_.push_back(lanes);
    lanes += static_cast<std::size_t>(item.variates);
  }
  const auto one = [&](std::size_t i) {
    const Item& item = batch.items[i];
    const auto variates = static_cast<std::size_t>(item.variates);
    const auto part = [&](std::size_t offset, std::size_t each) {
      return std::span(reinterpret_cast<const float*>(from + offset) + first_lanes_[i] * each,
                       variates * each);
    };
    SeriesResults r = common;
    r.request = item.index;
    if (key.exact) r.exact = part(at.exact, r.exact_steps * r.stride);
    if (key.sampled) r.sampled = part(at.sampled, (r.horizon - r.exact_steps) * r.stride);
    if (key.samples) r.samples = part(at.samples, r.horizon * r.trajectories);
    if (key.parameter_floats > 0)
      r.parameters = part(at.parameters, r.horizon * r.parameter_floats);
    sink.results(r);
  };
  if (sink.concurrent()) {
    share_out(backend_, batch.items.size(), one);
  } else {
    for (std::size_t i = 0; i < batch.items.size(); ++i) one(i);
  }
}

}  // namespace toto
