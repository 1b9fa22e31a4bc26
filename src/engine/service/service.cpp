// SPDX-License-Identifier: Apache-2.0
// toto::Service: admission, refusals, cancellation, counters.
#include <fmt/format.h>

#include <utility>

#include "engine/service/forecaster_runner.h"
#include "engine/service/service_impl.h"

namespace toto {
namespace {

double mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

std::shared_ptr<const Error> refusal(std::string_view code, std::string_view message,
                                     const Future::Job& job, std::string_view remedy) {
  return std::make_shared<Error>(ExitStatus::usage, code, message,
                                 fmt::format("series '{}'", job.request.series.id), remedy);
}

std::vector<std::unique_ptr<Runner>> runners_of(std::span<const Model> replicas,
                                                const ServiceOptions& options) {
  check_replicas(replicas);
  ForecasterOptions forecaster = options.forecaster;
  if (options.memory_limit != 0) forecaster.memory_limit = options.memory_limit;
  std::vector<std::unique_ptr<Runner>> runners;
  for (const Model& model : replicas) {
    runners.push_back(std::make_unique<ForecasterRunner>(model, forecaster));
  }
  return runners;
}

}  // namespace

JobPointer Service::Impl::submit(const Request& request, std::function<void(Future)> done) {
  const auto job = std::make_shared<Future::Job>(request);
  job->submitted = Clock::now();
  job->done = std::move(done);
  job->service = weak_from_this();
  ErrorPointer wrong;
  try {
    any_runner().check(job->request);
    job->estimate = any_runner().estimate(job->request, options_.memory_limit > 0);
  } catch (...) {
    wrong = error_of(std::current_exception());
  }
  {
    Lock lock(mutex_);
    ++counted_.submitted;
    expire(lock);
    if (wrong != nullptr) {
      ++counted_.failed;
    } else {
      wrong = reason_to_refuse(*job);
    }
    if (wrong == nullptr) {
      queue_.add(job);
      ++unresolved_;
      wake();
      return job;
    }
  }
  give(job, {}, wrong);
  return job;
}

/// Counts it, too. nullptr: it is admitted.
Service::Impl::ErrorPointer Service::Impl::reason_to_refuse(const Future::Job& job) {
  if (draining_) {
    ++counted_.refused_draining;
    return draining_error_;
  }
  const double cost_limit = options_.max_request_cost;
  if (cost_limit > 0 && job.estimate.cost > cost_limit) {
    ++counted_.refused_too_large;
    return refusal("request_too_large",
                   fmt::format("expected at most {:.0f} tokens (max_request_cost), found {:.0f}, "
                               "{:.1f} times as many",
                               cost_limit, job.estimate.cost, job.estimate.cost / cost_limit),
                   job, "shorten context or horizon, or ask for fewer samples");
  }
  const std::uint64_t limit = options_.memory_limit;
  if (limit > 0 && job.estimate.bytes > limit) {
    ++counted_.refused_too_large;
    return refusal("request_too_large",
                   fmt::format("expected at most {:.1f} MiB (memory_limit), found {:.1f} MiB, "
                               "{:.1f} MiB more",
                               mebibytes(limit), mebibytes(job.estimate.bytes),
                               mebibytes(job.estimate.bytes - limit)),
                   job, "shorten context or horizon, or keep no samples");
  }
  if (job.expired(Clock::now())) {
    ++counted_.expired;
    return late_;
  }
  if (queue_.full()) {
    ++counted_.refused_queue_full;
    const double wait = wait_seconds();
    return refusal("queue_full", fmt::format("{} requests wait already (max_queue)", queue_.size()),
                   job, wait > 0 ? fmt::format("try again in {:.3f} s", wait) : "try again later");
  }
  return nullptr;
}

/// What is left to do before a request that comes now, shared by all devices.
double Service::Impl::wait_seconds() const {
  return calibration_.seconds(queue_.cost() + running_cost_) / static_cast<double>(devices_.size());
}

/// Refuses what waits and has passed its deadline.
void Service::Impl::expire(Lock& lock) {
  const auto now = Clock::now();
  for (JobPointer job; queue_.take_expired(now, job);) {
    ++counted_.expired;
    lock.unlock();
    give(job, {}, late_);
    lock.lock();
    --unresolved_;
    settled_.notify_all();
  }
}

/// Makes the future ready and tells whoever wants to be told. Without any lock.
void Service::Impl::give(const JobPointer& job, Forecast&& forecast, const ErrorPointer& error) {
  job->resolve(std::move(forecast), error);
  const auto done = std::exchange(job->done, {});
  if (!done) return;
  try {
    done(Future(job));
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    ++counted_.callback_errors;
  }
}

void Service::Impl::cancel(const JobPointer& job) {
  {
    const std::scoped_lock lock(mutex_);
    job->cancelled = true;
    if (!queue_.remove(*job)) return;
    ++counted_.cancelled;
  }
  give(job, {}, cancelled_);
  const std::scoped_lock lock(mutex_);
  --unresolved_;
  settled_.notify_all();
}

ServiceEstimate Service::Impl::estimate(const Request& request) const {
  any_runner().check(request);
  ServiceEstimate e;
  e.request = any_runner().estimate(request, true);
  const std::scoped_lock lock(mutex_);
  e.request.seconds = calibration_.seconds(e.request.cost);
  e.requests_ahead = queue_.size();
  if (queue_.size() > 0 || running_cost_ > 0) e.wait_seconds = wait_seconds();
  return e;
}

ServiceCounters Service::Impl::counters() const {
  ServiceCounters counters;
  std::vector<double> queued, computed;
  {
    const std::scoped_lock lock(mutex_);
    counters = counted_;
    counters.queued = queue_.size();
    queued = queue_times_.values();
    computed = compute_times_.values();
  }
  counters.queue = quantiles_of(std::move(queued));
  counters.compute = quantiles_of(std::move(computed));
  return counters;
}

bool Service::Impl::drain(std::chrono::nanoseconds timeout) {
  Lock lock(mutex_);
  draining_ = true;
  return settled_.wait_for(lock, timeout, [this] { return unresolved_ == 0; });
}

void Service::Impl::close() {
  {
    Lock lock(mutex_);
    draining_ = true;
    closing_ = true;
    for (JobPointer job; queue_.take_any(job);) {
      ++counted_.cancelled;
      lock.unlock();
      give(job, {}, cancelled_);
      lock.lock();
      --unresolved_;
    }
    stop_ = true;
    for (const auto& device : devices_) device->work.notify_all();
    settled_.notify_all();
  }
  const std::scoped_lock lock(joining_);
  for (const auto& device : devices_) {
    for (const auto& lane : device->lanes) {
      if (lane->thread.joinable()) lane->thread.join();
    }
  }
}

namespace {

Service::Impl& alive(const std::shared_ptr<Service::Impl>& impl) {
  if (impl) return *impl;
  throw Error(ExitStatus::usage, "moved_from", "this service was moved from", "toto::Service",
              "use what it was moved to");
}

}  // namespace

Service make_service(std::vector<std::unique_ptr<Runner>> runners, const ServiceOptions& options) {
  return Service(std::make_shared<Service::Impl>(std::move(runners), options));
}

Service::Service(std::span<const Model> replicas, const ServiceOptions& options)
    : impl_(std::make_shared<Impl>(runners_of(replicas, options), options)) {}
Service::Service(const Model& model, const ServiceOptions& options)
    : Service(std::span(&model, 1), options) {}
Service::~Service() {
  if (impl_) impl_->close();
}
Service::Service(Service&&) noexcept = default;
Service& Service::operator=(Service&& other) noexcept {
  if (this != &other) {
    if (impl_) impl_->close();
    impl_ = std::move(other.impl_);
  }
  return *this;
}

Future Service::submit(const Request& request) { return Future(alive(impl_).submit(request, {})); }
Future Service::submit(const Request& request, std::function<void(Future)> done) {
  return Future(alive(impl_).submit(request, std::move(done)));
}
Forecast Service::forecast(const Request& request) {
  Request borrowed = request;
  borrowed.borrow = true;
  return submit(borrowed).get();
}
ServiceEstimate Service::estimate(const Request& request) const {
  return alive(impl_).estimate(request);
}
ServiceCounters Service::counters() const { return alive(impl_).counters(); }
bool Service::drain(std::chrono::nanoseconds timeout) { return alive(impl_).drain(timeout); }
void Service::close() { alive(impl_).close(); }

}  // namespace toto
