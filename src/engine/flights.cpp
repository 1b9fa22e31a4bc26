// SPDX-License-Identifier: Apache-2.0
// Captured forecasts that are under way: launching them, waiting for them, and reading results.
#include <algorithm>

#include "backend/share_out.h"
#include "core/stopwatch.h"
#include "engine/engine.h"

namespace toto {
namespace {

/// While it lives, others may have the turn.
class Released {
 public:
  explicit Released(std::unique_lock<std::mutex>* turn) : turn_(turn) {
    if (turn_ != nullptr) turn_->unlock();
  }
  ~Released() {
    if (turn_ != nullptr) turn_->lock();
  }
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  std::unique_lock<std::mutex>* turn_;
};

}  // namespace

/// Launches what has been staged.
void Engine::depart(const MicroBatch& batch, const ProgramKey& key, CapturedForecast& captured) {
  const Stopwatch watch(work_->times.prefill, "replay");
  Flight& flight = flights_[(oldest_ + under_way_) % kFlights];
  flight.batch = batch;
  flight.key = key;
  flight.captured = &captured;
  await(flight);
  backend_.capture()->launch(*captured.graph, generation_.time_device, flight.awaited);
  captured.under_way = true;
  ++work_->under_way;
  ++under_way_;
}

/// Waits for the oldest and hands its results on, those of the first series while those of others
/// are copied.
void Engine::land(ResultSink& sink) {
  const Flight& flight = flights_[oldest_];
  GraphCapture& capture = *backend_.capture();
  GraphCapture::Graph& graph = *flight.captured->graph;
  const std::byte* const results = flight.captured->buffers.out.host;
  // The threads that share_out() will want sleep by now: they wake while results are copied.
  const bool shared =
      flight.batch.items.size() >= kWorthSharing && sink.concurrent() && backend_.workers() > 1;
  double seconds = 0;
  std::size_t there = GraphCapture::kAll;
  const auto finish = [&] {
    seconds = capture.finish(graph, generation_.time_device, flight.awaited);
  };
  {
    const Stopwatch watch(work_->times.prefill, "wait");
    const Released others(turn_);
    for (const Item& item : flight.batch.items) sink.expect(item.index);
    if (shared) {
      capture.await_copy(graph);
      there = capture.await_results(graph, 0);
    }
    if (there == GraphCapture::kAll) finish();
  }
  begin_reading(flight.batch);
  while (there != GraphCapture::kAll) {
    read(flight.batch, flight.key, results, there, sink);
    there = capture.await_results(graph, there);
    if (there == GraphCapture::kAll) finish();
  }
  read(flight.batch, flight.key, results, there, sink);
  work_->device_seconds += seconds;
  work_->launches = graph.launches();
  ++work_->graph_replays;
  const std::span<const Item> items = flight.batch.items;
  leave_flight();
  for (const Item& item : items) {
    done_ += static_cast<std::size_t>(std::max(item.trajectories, 1)) *
             static_cast<std::size_t>(item.patches);
  }
  sink.progress(done_, total_);
}

/// The buffers of the oldest can be used again.
void Engine::leave_flight() {
  flights_[oldest_].captured->under_way = false;
  oldest_ = (oldest_ + 1) % kFlights;
  --under_way_;
  --work_->under_way;
  ++work_->landed;
  work_->landing.notify_all();
}

/// Where a call ends early: the device writes to buffers that may be freed.
void Engine::give_up_flights() noexcept {
  while (under_way_ > 0) {
    const Flight& flight = flights_[oldest_];
    try {
      backend_.capture()->finish(*flight.captured->graph, generation_.time_device, flight.awaited);
    } catch (...) {  // NOLINT(bugprone-empty-catch): nothing runs on a device that has failed
    }
    leave_flight();
  }
}

/// Until one has landed, of this engine or of others; false where none is under way. What was
/// acquired before is not valid any more.
bool Engine::wait_for_landing(ResultSink& sink) {
  if (under_way_ > 0) {
    land(sink);
    return true;
  }
  if (turn_ == nullptr || work_->under_way == 0) return false;
  const std::uint64_t before = work_->landed;
  work_->landing.wait(*turn_, [&] { return work_->landed != before; });
  return true;
}

/// Which results of the batch kernels write straight to the host.
void Engine::await(Flight& flight) const {
  flight.awaited.clear();
  if (!flight.captured->on_host) return;
  const ProgramKey& key = flight.key;
  const ResultLayout at(key, patch_);
  const auto stride = static_cast<std::size_t>(key.stride());
  const auto exact = static_cast<std::size_t>(key.exact ? key.exact_steps : 0);
  const std::size_t left = static_cast<std::size_t>(key.horizon(patch_)) - exact;
  const auto add = [&](std::size_t offset, std::size_t cell, std::size_t cells, std::size_t used) {
    if (cells == 0) return;
    std::byte* const part = flight.captured->buffers.out.host + offset;
    flight.awaited.push_back({reinterpret_cast<float*>(part) + cell * stride, cells, stride, used});
  };
  std::size_t lane = 0;
  for (const Item& item : flight.batch.items) {
    const auto horizon = static_cast<std::size_t>(item.horizon);
    const std::size_t used = 2 + static_cast<std::size_t>(item.level_count);
    const bool drawn = key.sampled && item.trajectories > 0;
    for (std::int32_t v = 0; v < item.variates; ++v, ++lane) {
      add(at.exact, lane * exact, std::min(horizon, exact), used);
      add(at.sampled, lane * left, drawn && horizon > exact ? horizon - exact : 0, used);
    }
  }
}

/// Before the first read() of a micro-batch.
void Engine::begin_reading(const MicroBatch& batch) {
  first_lanes_.assign(1, 0);
  for (const Item& item : batch.items) {
    first_lanes_.push_back(first_lanes_.back() + static_cast<std::size_t>(item.variates));
  }
  read_ = 0;
}

/// Results that have not been read yet, of all series whose results lie in the first `there` bytes.
void Engine::read(const MicroBatch& batch, const ProgramKey& key, const std::byte* from,
                  std::size_t there, ResultSink& sink) {
  const Stopwatch watch(work_->times.statistics, "statistics");
  const ResultLayout at(key, patch_);
  SeriesResults common;
  common.horizon = static_cast<std::size_t>(key.horizon(patch_));
  common.stride = static_cast<std::size_t>(key.stride());
  common.exact_steps = static_cast<std::size_t>(key.exact ? key.exact_steps : 0);
  common.trajectories = static_cast<std::size_t>(key.trajectories);
  common.parameter_floats = static_cast<std::size_t>(key.parameter_floats);
  // Floats of a lane in each part; 0: there is no such part.
  const std::size_t exact = key.exact ? common.exact_steps * common.stride : 0;
  const std::size_t sampled =
      key.sampled ? (common.horizon - common.exact_steps) * common.stride : 0;
  const std::size_t samples = key.samples ? common.horizon * common.trajectories : 0;
  const std::size_t parameters = common.horizon * common.parameter_floats;
  const auto is_there = [&](std::size_t i) {
    const std::size_t lanes = first_lanes_[i + 1];
    const auto has = [&](std::size_t offset, std::size_t each) {
      return each == 0 || offset + lanes * each * sizeof(float) <= there;
    };
    return there == GraphCapture::kAll ||
           (has(at.exact, exact) && has(at.sampled, sampled) && has(at.parameters, parameters) &&
            has(at.samples, samples));
  };
  const auto one = [&](std::size_t i) {
    const auto part = [&](std::size_t offset, std::size_t each) {
      return std::span(reinterpret_cast<const float*>(from + offset) + first_lanes_[i] * each,
                       (first_lanes_[i + 1] - first_lanes_[i]) * each);
    };
    SeriesResults r = common;
    r.request = batch.items[i].index;
    if (key.exact) r.exact = part(at.exact, exact);
    if (key.sampled) r.sampled = part(at.sampled, sampled);
    if (key.samples) r.samples = part(at.samples, samples);
    if (parameters > 0) r.parameters = part(at.parameters, parameters);
    sink.results(r);
  };
  const std::size_t first = read_;
  while (read_ < batch.items.size() && is_there(read_)) ++read_;
  const std::size_t count = read_ - first;
  if (sink.concurrent()) {
    share_out(backend_, count, [&](std::size_t i) { one(first + i); });
  } else {
    for (std::size_t i = 0; i < count; ++i) one(first + i);
  }
}

}  // namespace toto
