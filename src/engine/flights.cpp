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

/// Waits for the oldest and hands its results on.
void Engine::land(ResultSink& sink) {
  Flight& flight = flights_[oldest_];
  double seconds = 0;
  {
    const Stopwatch watch(work_->times.prefill, "wait");
    const Released others(turn_);
    for (const Item& item : flight.batch.items) sink.expect(item.index);
    // The threads that share_out() will want sleep by now: they wake while results are copied.
    if (flight.batch.items.size() >= kWorthSharing && sink.concurrent() && backend_.workers() > 1) {
      backend_.capture()->await_copy(*flight.captured->graph);
    }
    seconds = backend_.capture()->finish(*flight.captured->graph, generation_.time_device,
                                         flight.awaited);
  }
  work_->device_seconds += seconds;
  work_->launches = flight.captured->graph->launches();
  ++work_->graph_replays;
  read(flight.batch, flight.key, flight.captured->buffers.out.host, sink);
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

void Engine::read(const MicroBatch& batch, const ProgramKey& key, const std::byte* from,
                  ResultSink& sink) {
  const Stopwatch watch(work_->times.statistics, "statistics");
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
