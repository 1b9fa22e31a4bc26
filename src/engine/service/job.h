// SPDX-License-Identifier: Apache-2.0
// A request on its way through the service: what stands behind toto::Future.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/service/runner.h"

namespace toto {

struct Future::Job {
  using Time = std::chrono::steady_clock::time_point;

  /// Copies what the request points to, unless it is borrowed.
  explicit Job(const Request& from);

  /// Makes it ready, once.
  void resolve(Forecast&& value, std::shared_ptr<const Error> failure);
  [[nodiscard]] bool expired(Time now) const {
    return request.deadline.has_value() && now >= *request.deadline;
  }

  Request request;  // its series points to what is owned, or borrowed
  Estimate estimate;
  Time submitted{};
  std::function<void(Future)> done;
  std::weak_ptr<Service::Impl> service;  // that it waits in

  // Under the mutex of the service.
  std::uint64_t arrival = 0;  // in order
  double queue_seconds = 0, compute_seconds = 0;
  std::atomic<bool> cancelled{false};  // and read by those that run it

  mutable std::mutex mutex;
  mutable std::condition_variable resolved;
  bool ready = false;
  Forecast forecast;
  std::shared_ptr<const Error> error;

 private:
  void own(const Series& series);
  std::string id_;
  std::vector<float> values_, future_;
  std::vector<std::uint8_t> mask_, future_mask_;
  std::vector<std::int32_t> groups_;
  std::vector<double> value_offsets_;
};

using JobPointer = std::shared_ptr<Future::Job>;

}  // namespace toto
