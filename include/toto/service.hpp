// SPDX-License-Identifier: Apache-2.0
// A service: requests of many threads go into a queue, and micro-batches of them onto devices.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "toto/forecast.hpp"

#pragma GCC visibility push(default)
namespace toto {

/// One series to forecast, with options of its own.
struct Request {
  Series series;
  ForecastOptions options;  ///< `progress` is not called: cancel by the future
  int priority = 0;         ///< the higher goes first
  /// A request that has not begun by then is Error deadline_exceeded; one that has begun is
  /// stopped, unless others of its micro-batch go on.
  std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt;
  /// False: submit() copies what `series` points to. True: the memory must stay as it is until the
  /// future is ready.
  bool borrow = false;
  /// Where the statistics go (statistic_rows, array_size): memory of the caller's that must stay
  /// until the future is ready, and is written to only before. The Forecast has none of them then.
  /// Empty: they are in the Forecast. Another size is Error (2) invalid_output.
  std::span<float> out = {};
};

/// What a request takes, as far as can be told before it is computed.
struct Estimate {
  double cost = 0;          ///< tokens that go through the network, of all trajectories
  std::uint64_t bytes = 0;  ///< the least working memory that it can do with, and its results
  double seconds = 0;       ///< of computing it alone, from what was measured; 0: nothing was yet
};

struct ServiceEstimate {
  Estimate request;
  std::size_t requests_ahead = 0;  ///< in the queue
  double wait_seconds = 0;         ///< until it may begin: what is in the queue, shared by all
                                   ///< devices; 0 where nothing was measured yet
};

/// The answer to one request, now or later. Copies share it. Safe to use from many threads. All
/// members but valid() need a future that submit() gave.
class Future {
 public:
  Future() = default;
  [[nodiscard]] bool valid() const { return job_ != nullptr; }
  [[nodiscard]] bool ready() const;
  void wait() const;
  /// Whether it is ready by then.
  [[nodiscard]] bool wait_until(std::chrono::steady_clock::time_point time) const;
  /// Waits. nullptr: the forecast is there. The error lives as long as the future.
  [[nodiscard]] const Error* error() const;
  /// Waits and hands the forecast over, once: a second call gives an empty one. Throws the error.
  [[nodiscard]] Forecast get();
  /// Nobody needs the answer. A request that waits leaves the queue at once, as Error cancelled;
  /// one that runs is stopped where nobody else of its micro-batch goes on, or its forecast is
  /// dropped at the end. The future becomes ready in each case. Does nothing to one that is ready.
  void cancel();
  /// Seconds from submit() until a device was free for it, and of the micro-batch it was in; 0
  /// until it is ready.
  [[nodiscard]] double queue_seconds() const;
  [[nodiscard]] double compute_seconds() const;

  struct [[gnu::visibility("hidden")]] Job;
  explicit Future(std::shared_ptr<Job> job) : job_(std::move(job)) {}

 private:
  std::shared_ptr<Job> job_;
};

struct ServiceOptions {
  std::size_t max_queue = 1024;  ///< requests that wait; one more is Error queue_full
  /// Tokens of a micro-batch (Estimate::cost), on one device. A single request may take more.
  double max_batch_cost = 65536;
  std::size_t max_batch_requests = 1024;
  double max_request_cost = 0;  ///< of one request, else Error request_too_large; 0: no limit
  /// Bytes of one device for working memory and results of a request: one whose estimate is above
  /// is Error request_too_large. Overrides ForecasterOptions::memory_limit. 0: no limit.
  std::uint64_t memory_limit = 0;
  /// Of the forecaster of each device. Its functions are called on the service's threads.
  ForecasterOptions forecaster;
};

/// Of the last 1,024 requests, in seconds.
struct Quantiles {
  double p50 = 0, p95 = 0, p99 = 0;
};

/// A snapshot: all numbers are of one moment. Counts since the service was made.
struct ServiceCounters {
  std::uint64_t submitted = 0;  ///< all calls of submit()
  std::uint64_t completed = 0;  ///< with a forecast
  std::uint64_t failed = 0;     ///< with an error of their own, before or after they were admitted
  std::uint64_t cancelled = 0;
  std::uint64_t expired = 0;  ///< deadline_exceeded
  std::uint64_t refused_queue_full = 0, refused_too_large = 0, refused_draining = 0;
  std::uint64_t queued = 0;   ///< now
  std::uint64_t running = 0;  ///< now
  std::uint64_t batches = 0;
  std::uint64_t callback_errors = 0;  ///< callbacks that threw
  /// Micro-batches by cost: below 4, 16, 64, ... 4^15 tokens, and all others.
  std::array<std::uint64_t, 16> batch_costs{};
  Quantiles queue;    ///< from submit() to the start
  Quantiles compute;  ///< of the micro-batch that a request was in
  struct Device {
    std::string name;
    std::uint64_t batches = 0, requests = 0;
    double cost = 0, busy_seconds = 0;
    bool busy = false;  ///< now
  };
  std::vector<Device> devices;
};

/// One object with all of them, keys as the members.
std::string to_json(const ServiceCounters& counters);

/// "cpu" or "cuda:1", or several, separated by commas: names of devices, each once. "cuda:all" is
/// all that the process sees. Throws Error (2) invalid_device for other words, (69)
/// device_unavailable where there is none for cuda:all.
std::vector<std::string> parse_devices(std::string_view text);

/// How many threads of the host each of `devices` (as parse_devices gives them) computes with.
/// Several GPUs share them: `threads` of the options, or TOTO_NUM_THREADS, or the cores, divided by
/// their number. Throws Error (78) invalid_threads for the variable.
int threads_of_each(const LoadOptions& options, std::span<const std::string> devices);

/// Loads the model onto each of the devices, with threads_of_each. Throws what Model::load throws,
/// and what parse_devices throws. `device`, `device_index` and `backend` of the options are set by
/// each device.
std::vector<Model> load_replicas(const ModelQuery& query, const LoadOptions& options,
                                 std::span<const std::string> devices);

/// Forecasts for many threads. Every device takes the next micro-batch as soon as it is free: a
/// request that finds a device idle begins at once, and what comes while all are busy is gathered,
/// by priority and then by arrival, as far as the bounds allow. A GPU takes a micro-batch that is
/// full, or large, while it still computes the one before, so that it need not wait for the host.
/// One micro-batch in four begins with the request that has waited longest, whatever its priority.
/// Idle devices share out what waits.
///
/// The forecast of a request has the bits that it has alone (toto::Forecaster).
///
/// All members may be called from any thread. A callback must not call drain(), close(), the
/// destructor or assignment, which wait for callbacks.
class Service {
 public:
  /// One replica of the model for each device that is to be used; at least one. They must be
  /// replicas of one model, loaded one by one (load_replicas): copies of a Model share a device.
  /// Throws Error (2) invalid_replicas.
  explicit Service(std::span<const Model> replicas, const ServiceOptions& options = {});
  explicit Service(const Model& model, const ServiceOptions& options = {});
  /// close().
  ~Service();
  Service(Service&&) noexcept;
  Service& operator=(Service&&) noexcept;

  /// Takes a request, or refuses it; the future has the answer in each case, and throws nothing but
  /// std::bad_alloc here. Errors of the future: those of Forecaster::forecast; (2) queue_full,
  /// request_too_large, deadline_exceeded, draining; (130) cancelled.
  [[nodiscard]] Future submit(const Request& request);
  /// The same, and calls `done` once, with a future that is ready: on a thread of the service, or
  /// in submit() or cancel(). What it throws is counted and dropped; while it runs, its device
  /// waits.
  Future submit(const Request& request, std::function<void(Future)> done);
  /// submit() and get().
  [[nodiscard]] Forecast forecast(const Request& request);

  /// What the request would take now. Throws what checking it throws.
  [[nodiscard]] ServiceEstimate estimate(const Request& request) const;
  [[nodiscard]] ServiceCounters counters() const;

  /// From now on every request is refused as Error draining; returns when those that are here are
  /// done, or false after `timeout`.
  bool drain(std::chrono::nanoseconds timeout);
  /// Drains without patience: what waits or runs is cancelled. Returns when all futures are ready.
  void close();

  struct [[gnu::visibility("hidden")]] Impl;
  explicit Service(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace toto
#pragma GCC visibility pop
