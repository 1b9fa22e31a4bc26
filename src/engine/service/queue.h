// SPDX-License-Identifier: Apache-2.0
// The requests that wait: bounded, by priority and then by arrival. Not synchronised.
#pragma once

#include <map>
#include <vector>

#include "engine/service/job.h"

namespace toto {

class Queue {
 public:
  explicit Queue(std::size_t bound) : bound_(bound) {}
  [[nodiscard]] bool full() const { return by_arrival_.size() >= bound_; }
  [[nodiscard]] std::size_t size() const { return by_arrival_.size(); }
  /// Of all that wait.
  [[nodiscard]] double cost() const { return size() == 0 ? 0 : cost_; }

  /// Throws std::bad_alloc, and nothing has changed then.
  void add(const JobPointer& job);
  /// False where it does not wait here.
  bool remove(const Future::Job& job);

  struct Bounds {
    double cost = 0;
    std::size_t requests = 0;
  };
  /// Moves the next micro-batch into `batch`, which is empty and has room for `bounds.requests`:
  /// the first request, and whatever is compatible with it and fits beside it. The first one is
  /// taken whatever it costs; one time in kOldestFirst it is the one that has waited longest.
  /// Allocates nothing.
  void gather(const Runner& runner, const Bounds& bounds, std::vector<JobPointer>& batch);
  /// Moves one whose deadline has passed into `to`; false where there is none.
  bool take_expired(Future::Job::Time now, JobPointer& to);
  /// Moves any; false where there is none.
  bool take_any(JobPointer& to);

  static constexpr std::uint64_t kOldestFirst = 4;

 private:
  struct Rank {
    int priority;
    std::uint64_t arrival;
    bool operator<(const Rank& other) const {
      return priority != other.priority ? priority > other.priority : arrival < other.arrival;
    }
  };
  using ByRank = std::map<Rank, JobPointer>;
  static Rank rank_of(const Future::Job& job) { return {job.request.priority, job.arrival}; }
  JobPointer take(ByRank::iterator at);

  std::size_t bound_;
  ByRank by_rank_;
  std::map<std::uint64_t, Future::Job*> by_arrival_;
  std::multimap<Future::Job::Time, Future::Job*> by_deadline_;
  double cost_ = 0;
  std::uint64_t arrivals_ = 0, gathered_ = 0;
};

}  // namespace toto
