// SPDX-License-Identifier: Apache-2.0
// toto::Future: where an answer is waited for and where it is resolved.
#include "engine/service/job.h"
#include "engine/service/service_impl.h"

namespace toto {

Future::Job::Job(const Request& from) : request(from) {
  request.options.progress = {};
  if (!from.borrow) own(from.series);
}

void Future::Job::own(const Series& series) {
  id_ = series.id;
  values_.assign(series.values.begin(), series.values.end());
  mask_.assign(series.mask.begin(), series.mask.end());
  groups_.assign(series.groups.begin(), series.groups.end());
  future_.assign(series.future_exogenous.begin(), series.future_exogenous.end());
  future_mask_.assign(series.future_mask.begin(), series.future_mask.end());
  value_offsets_.assign(series.value_offsets.begin(), series.value_offsets.end());
  request.series.id = id_;
  request.series.values = values_;
  request.series.mask = mask_;
  request.series.groups = groups_;
  request.series.future_exogenous = future_;
  request.series.future_mask = future_mask_;
  request.series.value_offsets = value_offsets_;
}

void Future::Job::resolve(Forecast&& value, std::shared_ptr<const Error> failure) {
  const std::scoped_lock lock(mutex);
  forecast = std::move(value);
  error = std::move(failure);
  ready = true;
  resolved.notify_all();
}

bool Future::ready() const {
  const std::scoped_lock lock(job_->mutex);
  return job_->ready;
}

void Future::wait() const {
  std::unique_lock lock(job_->mutex);
  job_->resolved.wait(lock, [this] { return job_->ready; });
}

bool Future::wait_until(std::chrono::steady_clock::time_point time) const {
  std::unique_lock lock(job_->mutex);
  return job_->resolved.wait_until(lock, time, [this] { return job_->ready; });
}

const Error* Future::error() const {
  wait();
  return job_->error.get();
}

Forecast Future::get() {
  wait();
  if (job_->error != nullptr) throw Error(*job_->error);
  const std::scoped_lock lock(job_->mutex);
  return std::exchange(job_->forecast, {});
}

void Future::cancel() {
  if (const auto service = job_->service.lock()) service->cancel(job_);
}

double Future::queue_seconds() const { return ready() ? job_->queue_seconds : 0; }
double Future::compute_seconds() const { return ready() ? job_->compute_seconds : 0; }

}  // namespace toto
