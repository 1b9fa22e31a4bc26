// SPDX-License-Identifier: Apache-2.0
// The threads of devices: each gathers a micro-batch, computes it, and resolves its futures.
#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "core/stopwatch.h"
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
  const std::size_t most = options_.max_batch_requests;
  for (auto& runner : runners) {
    auto device = std::make_unique<Device>();
    device->runner = std::move(runner);
    device->batch.reserve(most);
    device->requests.reserve(most);
    device->outcomes.reserve(most);
    device->errors.reserve(most);
    device->stop = [this, d = device.get()] { return nobody_waits(*d); };
    counted_.devices.emplace_back().name = device->runner->device();
    devices_.push_back(std::move(device));
  }
  idle_ = devices_.size();
  try {
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      devices_[i]->thread = std::thread([this, i] { serve(i); });
    }
  } catch (...) {  // the system has no more threads
    close();
    throw;
  }
}

Service::Impl::~Impl() { close(); }

void Service::Impl::serve(std::size_t index) {
  Device& device = *devices_[index];
  Lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return stop_ || queue_.size() > 0; });
    expire(lock);
    if (queue_.size() == 0) {
      if (stop_) return;
      continue;
    }
    gather(device);
    --idle_;
    ServiceCounters::Device& counted = counted_.devices[index];
    double cost = 0;
    for (const JobPointer& job : device.batch) cost += job->estimate.cost;
    running_cost_ += cost;
    counted_.running += device.batch.size();
    counted.busy = true;
    if (queue_.size() > 0 && idle_ > 0) work_.notify_one();
    const auto begun = Clock::now();
    lock.unlock();

    double seconds = 0;
    {
      const Stopwatch watch(seconds);
      compute(device);
    }

    lock.lock();
    running_cost_ -= cost;
    if (--busy_batches_ == 0) running_cost_ = 0;
    counted_.running -= device.batch.size();
    counted.busy = false;
    ++counted.batches;
    counted.requests += device.batch.size();
    counted.cost += cost;
    counted.busy_seconds += seconds;
    ++counted_.batches;
    const double size = std::log2(std::max(cost, 1.0)) / 2;
    ++counted_
          .batch_costs[std::min(static_cast<std::size_t>(size), counted_.batch_costs.size() - 1)];
    calibration_.add(cost, seconds);
    for (std::size_t i = 0; i < device.batch.size(); ++i) {
      device.batch[i]->queue_seconds =
          std::chrono::duration<double>(begun - device.batch[i]->submitted).count();
      settle(device, i, seconds);
    }
    lock.unlock();
    for (std::size_t i = 0; i < device.batch.size(); ++i) {
      give(device.batch[i], std::move(device.outcomes[i].forecast), device.errors[i]);
    }
    lock.lock();
    ++idle_;
    unresolved_ -= device.batch.size();
    settled_.notify_all();
    device.batch.clear();
    device.outcomes.clear();
    device.errors.clear();
  }
}

/// Takes the next micro-batch: of what waits, as much as is left where every idle device takes the
/// same.
void Service::Impl::gather(Device& device) {
  const std::size_t requests = (queue_.size() + idle_ - 1) / idle_;
  const double cost = queue_.cost() / static_cast<double>(idle_);
  queue_.gather(
      *device.runner,
      {std::min(options_.max_batch_cost, cost), std::min(options_.max_batch_requests, requests)},
      device.batch);
  ++busy_batches_;
}

/// One call of the runner; where that throws, one for each request.
void Service::Impl::compute(Device& device) {
  const std::size_t count = device.batch.size();
  device.outcomes.resize(count);
  device.errors.resize(count);
  device.requests.clear();
  for (const JobPointer& job : device.batch) device.requests.push_back(&job->request);
  try {
    call(device, 0, count);
    return;
  } catch (...) {
    if (count == 1) {
      device.outcomes.front() = {{}, std::current_exception()};
      return;
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    device.outcomes[i] = {};
    try {
      device.active = std::span(device.batch).subspan(i, 1);
      if (nobody_waits(device)) throw Error(*cancelled_);
      call(device, i, 1);
    } catch (...) {
      device.outcomes[i] = {{}, std::current_exception()};
    }
  }
}

void Service::Impl::call(Device& device, std::size_t first, std::size_t count) {
  device.active = std::span(device.batch).subspan(first, count);
  device.runner->run(std::span(device.requests).subspan(first, count),
                     std::span(device.outcomes).subspan(first, count), device.stop);
}

bool Service::Impl::nobody_waits(const Device& device) const {
  if (closing_) return true;
  const auto now = Clock::now();
  return std::all_of(device.active.begin(), device.active.end(),
                     [now](const JobPointer& job) { return job->cancelled || job->expired(now); });
}

/// What the future is going to say; counts it.
void Service::Impl::settle(Device& device, std::size_t index, double seconds) {
  Future::Job& job = *device.batch[index];
  Outcome& outcome = device.outcomes[index];
  ErrorPointer& error = device.errors[index];
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
