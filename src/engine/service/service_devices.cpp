// SPDX-License-Identifier: Apache-2.0
// The threads of devices: each gathers a micro-batch, has it computed, and resolves its futures.
#include <algorithm>
#include <cmath>
#include <new>
#include <system_error>
#include <utility>

#include "engine/service/service_impl.h"

namespace toto {

Service::Impl::Impl(std::vector<std::unique_ptr<Runner>> runners, const ServiceOptions& options)
    : options_(options),
      cancelled_(std::make_shared<Error>(ExitStatus::interrupted, "cancelled",
                                         "the request was cancelled")),
      draining_error_(std::make_shared<Error>(ExitStatus::usage, "draining",
                                              "the service takes no more requests", "",
                                              "ask another one")),
      late_(std::make_shared<Error>(ExitStatus::usage, "deadline_exceeded",
                                    "the deadline passed before the forecast was there", "",
                                    "allow more time, or ask for less")),
      no_memory_(std::make_shared<Error>(ExitStatus::internal, "out_of_memory", "not enough memory",
                                         "", "use a shorter context or fewer samples")),
      queue_(options.max_queue) {
  options_.max_batch_requests = std::max<std::size_t>(options_.max_batch_requests, 1);
  for (auto& runner : runners) add_device(std::move(runner));
  idle_ = devices_.size();
  try {
    start_threads();
  } catch (...) {
    close();
    try {
      throw;
    } catch (const std::system_error&) {
      throw Error(ExitStatus::internal, "no_threads", "the system gave no thread for a device", {},
                  "raise the limit of threads (ulimit -u) or of memory");
    }
  }
}

Service::Impl::~Impl() { close(); }

void Service::Impl::add_device(std::unique_ptr<Runner> runner) {
  const std::size_t most = options_.max_batch_requests;
  auto device = std::make_unique<Device>();
  device->index = devices_.size();
  device->runner = std::move(runner);
  for (std::size_t i = 0; i < device->runner->lanes(); ++i) {
    auto lane = std::make_unique<Lane>();
    lane->index = i;
    lane->batch.reserve(most);
    lane->requests.reserve(most);
    lane->outcomes.reserve(most);
    lane->errors.reserve(most);
    lane->stop = [this, l = lane.get()] { return nobody_waits(*l); };
    lane->handed_over = [this, d = device.get(), l = lane.get()] { hand_over(*d, *l); };
    device->lanes.push_back(std::move(lane));
  }
  counted_.devices.emplace_back().name = device->runner->device();
  devices_.push_back(std::move(device));
}

void Service::Impl::start_threads() {
  for (const auto& device : devices_) {
    for (const auto& lane : device->lanes) {
      lane->thread = std::thread([this, d = device.get(), l = lane.get()] { serve(*d, *l); });
    }
  }
}

/// Waits for a request, and takes the device. False: the service ends.
bool Service::Impl::take(Device& device, Lane& lane, Lock& lock) {
  for (;;) {
    device.work.wait(lock, [&] { return stop_ || may_begin(device); });
    if (!may_begin(device)) return false;
    device.taken = lane.has_taken = true;  // others wait while what has expired is given out
    expire(lock);
    device.taken = false;
    if (may_begin(device)) break;
    lane.has_taken = false;
  }
  device.taken = true;
  return true;
}

/// Whether a lane may take the device: where it computes nothing, for whatever waits.
bool Service::Impl::may_begin(const Device& device) const {
  constexpr std::size_t kAhead = 2;  // one that is computed, one that is made ready
  if (device.taken || queue_.size() == 0 || device.under_way == kAhead) return false;
  return device.under_way == 0 || worth_making_ready();
}

/// Whether a micro-batch begins while the one before is computed: where it cannot grow any more, or
/// is so large that it would not become more efficient. A smaller one waits for company.
bool Service::Impl::worth_making_ready() const {
  constexpr double kEfficient = 4096;  // tokens
  return queue_.size() >= options_.max_batch_requests ||
         queue_.cost() >= std::min(kEfficient, options_.max_batch_cost);
}

/// Wakes one lane that may begin, rather one of a device that computes nothing.
void Service::Impl::wake() {
  Device* found = nullptr;
  for (const auto& device : devices_) {
    if (!may_begin(*device)) continue;
    if (found == nullptr || device->under_way < found->under_way) found = device.get();
  }
  if (found != nullptr) found->work.notify_one();
}

/// The device computes what the lane has made ready.
void Service::Impl::hand_over(Device& device, Lane& lane) {
  const std::scoped_lock lock(mutex_);
  leave(device, lane);
  wake();
}

/// Another lane of the device may make a micro-batch ready.
void Service::Impl::leave(Device& device, Lane& lane) {
  if (!lane.has_taken) return;
  lane.has_taken = device.taken = false;
}

/// A lane has taken the device and makes a micro-batch ready.
void Service::Impl::begin(Device& device, Lane& lane) {
  gather(device, lane);
  if (device.under_way++ == 0) --idle_;
  counted_.running += lane.batch.size();
  counted_.devices[device.index].busy = true;
  wake();
}

/// Its micro-batch is done, and the device is there for others.
void Service::Impl::end(Device& device, Lane& lane) {
  if (--device.under_way == 0) ++idle_;
  leave(device, lane);
  wake();
}

void Service::Impl::serve(Device& device, Lane& lane) {
  // Waking another lane takes about as long as giving out so many results.
  constexpr std::size_t kWorthALane = 64;
  Lock lock(mutex_);
  while (take(device, lane, lock)) {
    begin(device, lane);
    double cost = 0;
    for (const JobPointer& job : lane.batch) cost += job->estimate.cost;
    running_cost_ += cost;
    auto begun = Clock::now();
    lock.unlock();

    compute(device, lane);
    const auto ended = Clock::now();

    lock.lock();
    // As long as the device was not there for another one.
    begun = std::clamp(device.last_ended, begun, ended);
    device.last_ended = ended;
    const double seconds = std::chrono::duration<double>(ended - begun).count();
    count(device, lane, cost, seconds);
    for (std::size_t i = 0; i < lane.batch.size(); ++i) {
      lane.batch[i]->queue_seconds =
          std::chrono::duration<double>(begun - lane.batch[i]->submitted).count();
      settle(lane, i, seconds);
    }
    const bool apart = device.lanes.size() > 1 && lane.batch.size() >= kWorthALane;
    if (apart) end(device, lane);
    lock.unlock();
    for (std::size_t i = 0; i < lane.batch.size(); ++i) {
      give(lane.batch[i], std::move(lane.outcomes[i].forecast), lane.errors[i]);
    }
    lock.lock();
    if (!apart) end(device, lane);
    unresolved_ -= lane.batch.size();
    settled_.notify_all();
    lane.batch.clear();
    lane.outcomes.clear();
    lane.errors.clear();
  }
}

/// Counts a micro-batch that was computed.
void Service::Impl::count(const Device& device, const Lane& lane, double cost, double seconds) {
  running_cost_ -= cost;
  if (--busy_batches_ == 0) running_cost_ = 0;
  counted_.running -= lane.batch.size();
  ServiceCounters::Device& counted = counted_.devices[device.index];
  counted.busy = device.under_way > 1;
  ++counted.batches;
  counted.requests += lane.batch.size();
  counted.cost += cost;
  counted.busy_seconds += seconds;
  ++counted_.batches;
  const double size = std::log2(std::max(cost, 1.0)) / 2;
  ++counted_.batch_costs[std::min(static_cast<std::size_t>(size), counted_.batch_costs.size() - 1)];
  calibration_.add(cost, seconds);
}

/// Takes the next micro-batch: of what waits, as much as is left where this and every idle device
/// take the same.
void Service::Impl::gather(const Device& device, Lane& lane) {
  const std::size_t takers = device.under_way == 0 ? idle_ : idle_ + 1;
  const std::size_t requests = (queue_.size() + takers - 1) / takers;
  const double cost = queue_.cost() / static_cast<double>(takers);
  queue_.gather(
      *device.runner,
      {std::min(options_.max_batch_cost, cost), std::min(options_.max_batch_requests, requests)},
      lane.batch);
  ++busy_batches_;
}

/// One call of the runner; where that throws, one for each request.
void Service::Impl::compute(const Device& device, Lane& lane) {
  const std::size_t all = lane.batch.size();
  lane.outcomes.resize(all);
  lane.errors.resize(all);
  lane.requests.clear();
  for (const JobPointer& job : lane.batch) lane.requests.push_back(&job->request);
  try {
    call(device, lane, 0, all);
    return;
  } catch (...) {
    if (all == 1) {
      lane.outcomes.front() = {{}, std::current_exception()};
      return;
    }
  }
  for (std::size_t i = 0; i < all; ++i) {
    lane.outcomes[i] = {};
    try {
      lane.active = std::span(lane.batch).subspan(i, 1);
      if (nobody_waits(lane)) throw Error(*cancelled_);
      call(device, lane, i, 1);
    } catch (...) {
      lane.outcomes[i] = {{}, std::current_exception()};
    }
  }
}

void Service::Impl::call(const Device& device, Lane& lane, std::size_t first, std::size_t all) {
  lane.active = std::span(lane.batch).subspan(first, all);
  device.runner->run(std::span(lane.requests).subspan(first, all),
                     std::span(lane.outcomes).subspan(first, all),
                     {lane.index, lane.stop, lane.handed_over});
}

bool Service::Impl::nobody_waits(const Lane& lane) const {
  if (closing_) return true;
  const auto now = Clock::now();
  return std::all_of(lane.active.begin(), lane.active.end(),
                     [now](const JobPointer& job) { return job->cancelled || job->expired(now); });
}

/// What the future is going to say; counts it.
void Service::Impl::settle(Lane& lane, std::size_t index, double seconds) {
  Future::Job& job = *lane.batch[index];
  Outcome& outcome = lane.outcomes[index];
  ErrorPointer& error = lane.errors[index];
  job.compute_seconds = seconds;
  queue_times_.add(job.queue_seconds);
  compute_times_.add(seconds);
  const bool failed = outcome.error != nullptr;
  if (job.cancelled || (failed && closing_)) {
    error = cancelled_;
    outcome.forecast = {};
    ++counted_.cancelled;
  } else if (failed && job.expired(Clock::now())) {
    error = late_;
    ++counted_.expired;
  } else if (failed) {
    error = error_of(outcome.error);
    ++counted_.failed;
  } else {
    ++counted_.completed;
  }
}

Service::Impl::ErrorPointer Service::Impl::error_of(
    const std::exception_ptr& thrown) const noexcept {
  try {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      return std::make_shared<Error>(error);
    } catch (const std::bad_alloc&) {
      return no_memory_;
    } catch (const std::exception& error) {
      return std::make_shared<Error>(ExitStatus::internal, "internal", error.what());
    } catch (...) {
      return std::make_shared<Error>(ExitStatus::internal, "internal",
                                     "something was thrown that is no std::exception");
    }
  } catch (...) {  // no memory to say so
    return no_memory_;
  }
}

}  // namespace toto
