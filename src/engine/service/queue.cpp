// SPDX-License-Identifier: Apache-2.0
#include "engine/service/queue.h"

#include <algorithm>
#include <utility>

namespace toto {

void Queue::add(const JobPointer& job) {
  job->arrival = ++arrivals_;
  const auto arrived = by_arrival_.emplace_hint(by_arrival_.end(), job->arrival, job.get());
  const auto& deadline = job->request.deadline;
  auto timed = by_deadline_.end();
  try {
    if (deadline.has_value()) timed = by_deadline_.emplace(*deadline, job.get());
    by_rank_.emplace(rank_of(*job), job);
  } catch (...) {
    if (timed != by_deadline_.end()) by_deadline_.erase(timed);
    by_arrival_.erase(arrived);
    throw;
  }
  cost_ += job->estimate.cost;
}

JobPointer Queue::take(ByRank::iterator at) {
  JobPointer job = std::move(at->second);
  by_rank_.erase(at);
  by_arrival_.erase(job->arrival);
  if (job->request.deadline.has_value()) {
    auto [timed, end] = by_deadline_.equal_range(*job->request.deadline);
    while (timed != end && timed->second != job.get()) ++timed;
    if (timed != end) by_deadline_.erase(timed);
  }
  cost_ -= job->estimate.cost;
  return job;
}

bool Queue::remove(const Future::Job& job) {
  const auto at = by_rank_.find(rank_of(job));
  if (at == by_rank_.end() || at->second.get() != &job) return false;
  take(at);
  return true;
}

void Queue::gather(const Runner& runner, const Bounds& bounds, std::vector<JobPointer>& batch) {
  if (by_rank_.empty() || bounds.requests == 0) return;
  const bool oldest = ++gathered_ % kOldestFirst == 0;
  const auto first =
      oldest ? by_rank_.find(rank_of(*by_arrival_.begin()->second)) : by_rank_.begin();
  double left = bounds.cost - first->second->estimate.cost;
  batch.push_back(take(first));
  const Request& head = batch.front()->request;
  for (auto at = by_rank_.begin(); at != by_rank_.end() && left > 0;) {
    if (batch.size() >= bounds.requests) break;
    const auto next = std::next(at);
    const Future::Job& job = *at->second;
    if (job.estimate.cost <= left && runner.compatible(head, job.request)) {
      left -= job.estimate.cost;
      batch.push_back(take(at));
    }
    at = next;
  }
}

bool Queue::take_expired(Future::Job::Time now, JobPointer& to) {
  if (by_deadline_.empty() || by_deadline_.begin()->first > now) return false;
  to = take(by_rank_.find(rank_of(*by_deadline_.begin()->second)));
  return true;
}

bool Queue::take_any(JobPointer& to) {
  if (by_rank_.empty()) return false;
  to = take(by_rank_.begin());
  return true;
}

}  // namespace toto
