// SPDX-License-Identifier: Apache-2.0
// What stands behind toto::Service: a queue, and the threads of each device.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/service/calibration.h"
#include "engine/service/queue.h"
#include "engine/service/recent.h"
#include "engine/service/runner.h"

namespace toto {

struct Service::Impl : std::enable_shared_from_this<Service::Impl> {
 public:
  /// At least one runner.
  Impl(std::vector<std::unique_ptr<Runner>> runners, const ServiceOptions& options);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  JobPointer submit(const Request& request, std::function<void(Future)> done);
  void cancel(const JobPointer& job);
  [[nodiscard]] ServiceEstimate estimate(const Request& request) const;
  [[nodiscard]] ServiceCounters counters() const;
  bool drain(std::chrono::nanoseconds timeout);
  void close();

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;
  using ErrorPointer = std::shared_ptr<const Error>;

  /// A micro-batch and the thread that gathers it, has it computed and gives out its results.
  struct Lane {
    // Vectors have room for the largest micro-batch from the start.
    std::vector<JobPointer> batch;
    std::vector<const Request*> requests;
    std::vector<Outcome> outcomes;
    std::vector<ErrorPointer> errors;
    std::span<const JobPointer> active;  // of the call of the runner
    std::size_t index = 0;
    StopCheck stop;
    std::function<void()> handed_over;
    bool has_taken = false;  // its device; under the mutex
    std::thread thread;
  };

  /// A GPU has several lanes: while it computes the micro-batch of one, another makes the next one
  /// ready, and a third gives out results.
  struct Device {
    std::size_t index = 0;
    std::unique_ptr<Runner> runner;
    std::vector<std::unique_ptr<Lane>> lanes;
    bool taken = false;              // by a lane that makes a micro-batch ready
    std::size_t under_way = 0;       // micro-batches that are made ready or computed
    std::condition_variable work;    // a lane may begin
    Clock::time_point last_ended{};  // of its micro-batches
  };

  // service.cpp: what callers do
  [[nodiscard]] const Runner& any_runner() const { return *devices_.front()->runner; }
  [[nodiscard]] ErrorPointer reason_to_refuse(const Future::Job& job);
  [[nodiscard]] double wait_seconds() const;
  void expire(Lock& lock);
  void give(const JobPointer& job, Forecast&& forecast, const ErrorPointer& error);

  // service_devices.cpp: what the threads of devices do
  void add_device(std::unique_ptr<Runner> runner);
  void start_threads();
  void serve(Device& device, Lane& lane);
  [[nodiscard]] bool take(Device& device, Lane& lane, Lock& lock);
  void hand_over(Device& device, Lane& lane);
  void leave(Device& device, Lane& lane);
  [[nodiscard]] bool may_begin(const Device& device) const;
  [[nodiscard]] bool worth_making_ready() const;
  void wake();
  void begin(Device& device, Lane& lane);
  void end(Device& device, Lane& lane);
  void gather(const Device& device, Lane& lane);
  void compute(const Device& device, Lane& lane);
  void call(const Device& device, Lane& lane, std::size_t first, std::size_t all);
  void count(const Device& device, const Lane& lane, double cost, double seconds);
  [[nodiscard]] bool nobody_waits(const Lane& lane) const;
  void settle(Lane& lane, std::size_t index, double seconds);
  [[nodiscard]] ErrorPointer error_of(const std::exception_ptr& thrown) const noexcept;

  ServiceOptions options_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::mutex joining_;
  // Made beforehand, so that they can be given when there is no memory.
  ErrorPointer cancelled_, draining_error_, late_, no_memory_;
  std::atomic<bool> closing_{false};

  mutable std::mutex mutex_;  // of all that follows
  std::condition_variable settled_;
  Queue queue_;
  std::size_t idle_ = 0;        // devices that have no micro-batch
  std::size_t unresolved_ = 0;  // requests that were admitted and whose future is not ready
  double running_cost_ = 0;
  std::size_t busy_batches_ = 0;
  bool draining_ = false, stop_ = false;
  Calibration calibration_;
  ServiceCounters counted_;  // without what is formed when it is asked for
  Recent queue_times_, compute_times_;
};

/// A service over runners of the caller's own.
Service make_service(std::vector<std::unique_ptr<Runner>> runners,
                     const ServiceOptions& options = {});

}  // namespace toto
