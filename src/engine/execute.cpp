// SPDX-License-Identifier: Apache-2.0
// One micro-batch: everything that it is made of goes into a staging buffer, and the program is
// executed at once or launched as a captured graph.
#include <fmt/format.h>

#include <algorithm>
#include <new>

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
  const Stopwatch watch(work_->times.prepare, "prepare");
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
    if (why == nullptr) return launch(batch, key);
    if (under_way_ > 0) return Outcome::wait;  // results and progress in the order of requests
    ++work_->graph_fallbacks;
    plans_.log(Topic::graphs, "graph_fallback", fmt::format("graph fallback: {}", why));
  }
  const ResultLayout at(key, patch_);
  try {
    const bool grown = grow(backend_, buffers_, level_bytes(key) + program_->input_bytes(key),
                            at.bytes(key), key.samples ? 0 : at.samples_bytes);
    if (grown) {
      ++work_->allocations;
      plans_.log(Topic::memory, "memory_grown", "the buffers of inputs and results grew");
    }
    backend_.reserve_statistics(net_.components(), key.levels, key.trajectories);
  } catch (const std::bad_alloc&) {
    release(backend_, buffers_);
    return Outcome::no_memory;
  }
  const std::uint64_t reads_before = backend_.host_reads();
  stage(batch, key, buffers_.in, false);
  for (const Item& item : batch.items) sink.expect(item.index);
  Executor executor(backend_, buffers_.in, level_bytes(key), levels_of(key, buffers_.in),
                    pointers(key, buffers_.out.device, static_cast<float*>(buffers_.kept)), false,
                    generation_.probe, work_->times);
  executor.on_progress = [this, &sink](std::size_t units) {
    done_ += units;
    sink.progress(done_, total_);
  };
  program_->run(executor, batch, key, *memory_);
  work_->cost += program_->take_cost();
  backend_.copy_out(buffers_.out, at.bytes(key));
  backend_.synchronise();
  work_->host_reads += backend_.host_reads() - reads_before;
  begin_reading(batch);
  read(batch, key, buffers_.out.host, GraphCapture::kAll, sink);
  return Outcome::done;
}

/// As a captured graph, of which the results are read later.
Engine::Outcome Engine::launch(const MicroBatch& batch, const ProgramKey& key) {
  constexpr std::size_t kOfAKind = 2;  // one is computed while inputs are put into the other
  CapturedForecast* captured = work_->graphs.find(key);
  if (captured == nullptr) {
    const GraphCache& graphs = work_->graphs;
    if (graphs.under_way(key) >= kOfAKind || !graphs.has_room()) return Outcome::wait;
    const Stopwatch watch(work_->capture_seconds, "capture");
    captured = capture(batch, key);
  }
  if (captured == nullptr) return Outcome::no_memory;
  stage(batch, key, captured->buffers.in, true);
  work_->cost += program_->take_cost();
  depart(batch, key, *captured);
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
                        pointers(key, to, static_cast<float*>(b.kept)), true, nullptr,
                        work_->times);
      program_->run(executor, batch, key, *memory_);
      if (!captured->on_host && bytes > 0) backend_.copy_out(b.out, bytes);
    } catch (...) {
      capture_of.abandon();
      throw;
    }
    captured->graph = capture_of.end();
  } catch (const std::bad_alloc&) {
    work_->graphs.release(*captured);
    return work_->graphs.forget() ? capture(batch, key)
                                  : nullptr;  // others may hold what is missing
  } catch (...) {
    work_->graphs.release(*captured);
    throw;
  }
  ++work_->graph_captures;
  if (work_->graphs.full()) {
    plans_.log(Topic::graphs, "graph_evicted", "graph evicted: max-plans graphs are kept");
  }
  plans_.log(Topic::graphs, "graph_captured",
             fmt::format("graph captured: {} kernels, {} rows, {} lanes, {} patches",
                         captured->graph->launches(), key.rows, key.lanes, key.patches));
  return &work_->graphs.add(std::move(captured));
}

}  // namespace toto
