// SPDX-License-Identifier: Apache-2.0
// A device that only notes what it was given, so that tests see how a service schedules.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/service/service_impl.h"

namespace toto::test {

/// Opens once; who passes waits for that.
class Gate {
 public:
  void open() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

/// What all fake devices of a service did, in order of their starts.
struct FakeLog {
  struct Batch {
    std::string device;
    std::vector<std::string> ids;
  };
  std::mutex mutex;
  std::condition_variable grown;
  std::vector<Batch> batches;

  void add(Batch batch) {
    const std::scoped_lock lock(mutex);
    batches.push_back(std::move(batch));
    grown.notify_all();
  }
  /// Whether there are so many, after a minute at most.
  bool wait_for(std::size_t count) {
    std::unique_lock lock(mutex);
    return grown.wait_for(lock, std::chrono::minutes(1), [&] { return batches.size() >= count; });
  }
  std::vector<Batch> all() {
    const std::scoped_lock lock(mutex);
    return batches;
  }
};

/// A request costs its horizon; requests of equal seeds are compatible; the forecast's mean is the
/// horizon.
class FakeRunner final : public Runner {
 public:
  using OnRun = std::function<void(std::span<const Request* const>, const StopCheck&)>;
  FakeRunner(std::string name, FakeLog& log, OnRun on_run = {}, bool gpu = false)
      : name_(std::move(name)), log_(log), on_run_(std::move(on_run)), gpu_(gpu) {}

  [[nodiscard]] std::string_view device() const override { return name_; }
  [[nodiscard]] std::size_t lanes() const override { return gpu_ ? 3 : 1; }
  void check(const Request& request) const override {
    if (request.options.horizon == 0) throw Error(ExitStatus::usage, "invalid_horizon", "zero");
  }
  [[nodiscard]] Estimate estimate(const Request& request, bool /*bytes*/) const override {
    const std::size_t horizon = request.options.horizon;
    return {static_cast<double>(horizon), horizon * 1000, 0};
  }
  [[nodiscard]] bool compatible(const Request& a, const Request& b) const override {
    return a.options.seed == b.options.seed;
  }
  void run(std::span<const Request* const> requests, std::span<Outcome> outcomes,
           const RunnerCall& call) override {
    FakeLog::Batch batch{name_, {}};
    for (const Request* r : requests) batch.ids.emplace_back(r->series.id);
    log_.add(std::move(batch));
    if (on_run_) on_run_(requests, call.stop);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      outcomes[i].forecast.mean = {static_cast<float>(requests[i]->options.horizon)};
    }
  }

 private:
  std::string name_;
  FakeLog& log_;
  OnRun on_run_;
  bool gpu_;
};

inline Request fake_request(std::string_view id, std::size_t cost = 1, int priority = 0,
                            std::uint64_t seed = 0) {
  Request r;
  r.series.id = id;
  r.options.horizon = cost;
  r.options.seed = seed;
  r.priority = priority;
  return r;
}

inline Service fake_service(FakeLog& log, std::size_t devices = 1,
                            const FakeRunner::OnRun& on_run = {},
                            const ServiceOptions& options = {}, bool gpus = false) {
  std::vector<std::unique_ptr<Runner>> runners;
  for (std::size_t i = 0; i < devices; ++i) {
    runners.push_back(std::make_unique<FakeRunner>("fake:" + std::to_string(i), log, on_run, gpus));
  }
  return make_service(std::move(runners), options);
}

/// A service with one device that holds its first request, named "plug", until the gate opens:
/// what is submitted meanwhile waits.
struct PluggedService {
  explicit PluggedService(const ServiceOptions& options = {}, FakeRunner::OnRun after = {})
      : service(fake_service(
            log, 1,
            [this, after = std::move(after)](std::span<const Request* const> requests,
                                             const StopCheck& stop) {
              if (requests.front()->series.id == "plug") {
                gate.pass();
              } else if (after) {
                after(requests, stop);
              }
            },
            options)),
        plug(service.submit(fake_request("plug"))) {
    EXPECT_TRUE(log.wait_for(1));
  }
  ~PluggedService() { gate.open(); }
  PluggedService(const PluggedService&) = delete;
  PluggedService& operator=(const PluggedService&) = delete;

  /// Ids of the micro-batches after the plug's, once all requests are done.
  std::vector<std::vector<std::string>> rest() {
    gate.open();
    EXPECT_TRUE(service.drain(std::chrono::seconds(60)));
    std::vector<std::vector<std::string>> ids;
    for (const auto& batch : log.all()) ids.push_back(batch.ids);
    ids.erase(ids.begin());
    return ids;
  }

  FakeLog log;
  Gate gate;
  Service service;
  Future plug;
};

inline std::string code_of(const Future& future) {
  const Error* error = future.error();
  return error == nullptr ? "" : error->code();
}

}  // namespace toto::test
