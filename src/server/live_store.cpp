// SPDX-License-Identifier: Apache-2.0
#include "server/live_store.h"

#include <fmt/format.h>

#include "core/json.h"
#include "server/errors.h"

namespace toto::server {
namespace {

constexpr std::size_t kMaxBatch = 1024;
constexpr std::uint64_t kOverhead = 1024;  // of a series, besides its rows

Error unknown(const std::string& id) {
  return {ExitStatus::usage, "unknown_series", "no series is called " + quote(id), "id",
          "make it: PUT /v1/series/ID"};
}

}  // namespace

LiveStore::LiveStore(LiveOptions options) : options_(std::move(options)) {
  if (!options_.path.empty()) {
    database_ = std::make_unique<LiveDatabase>(options_.path);
    for (LiveSeries& one : database_->load(options_.context)) {
      bytes_ += bytes_of(one);
      const std::string id = one.id;
      series_.emplace(id, std::make_shared<const LiveSeries>(std::move(one)));
    }
    count_ = series_.size();
  }
  thread_ = std::thread([this] { work(); });
}

void LiveStore::stop() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

std::uint64_t LiveStore::bytes_of(const LiveSeries& series) const {
  return kOverhead + std::uint64_t{options_.context} * series.variates * sizeof(float);
}

LivePointer LiveStore::find(const std::string& id) const {
  const std::scoped_lock lock(mutex_);
  const auto found = series_.find(id);
  if (found == series_.end()) throw Error(unknown(id));
  return found->second;
}

std::vector<LivePointer> LiveStore::all() const {
  std::vector<LivePointer> all;
  const std::scoped_lock lock(mutex_);
  all.reserve(series_.size());
  for (const auto& [id, one] : series_) all.push_back(one);
  return all;
}

std::size_t LiveStore::size() const {
  const std::scoped_lock lock(mutex_);
  return series_.size();
}

void LiveStore::put(LiveSeries series, Told told) {
  add({Change::Kind::put, std::move(series), {}, std::move(told), {}});
}

void LiveStore::append(const std::string& id, Points points, Told told) {
  Change change{Change::Kind::append, {}, std::move(points), std::move(told), {}};
  change.series.id = id;
  add(std::move(change));
}

void LiveStore::remove(const std::string& id, Told told) {
  Change change{Change::Kind::remove, {}, {}, std::move(told), {}};
  change.series.id = id;
  add(std::move(change));
}

void LiveStore::add(Change change) {
  const std::scoped_lock lock(mutex_);
  if (ends_) throw Error(ExitStatus::usage, "draining", "the server ends");
  if (waiting_.size() >= options_.max_changes) {
    throw Error(ExitStatus::usage, "queue_full",
                fmt::format("{} changes wait for the disk", waiting_.size()), {},
                "try again in 1 s");
  }
  waiting_.push_back(std::move(change));
  changed_.notify_all();
}

void LiveStore::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::deque<Change> batch;
    while (!waiting_.empty() && batch.size() < kMaxBatch) {
      batch.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    lock.unlock();
    apply(batch);
    for (Change& one : batch) one.told(one.outcome);
    batch.clear();
    lock.lock();
  }
}

/// All changes of a batch are in one transaction. What is wrong with one leaves the others alone;
/// when the database fails none of them happened.
void LiveStore::apply(std::deque<Change>& batch) {
  Staged staged;
  std::uint64_t bytes = bytes_;
  const std::size_t count = count_;
  try {
    if (database_ != nullptr) database_->begin();
    for (Change& one : batch) stage(one, staged, bytes);
    if (database_ != nullptr) database_->commit();
  } catch (...) {
    if (database_ != nullptr) database_->rollback();
    const Error error = current_error();
    for (Change& one : batch) one.outcome = {nullptr, error, false};
    count_ = count;
    return;
  }
  bytes_ = bytes;
  const std::scoped_lock lock(mutex_);
  for (auto& [id, one] : staged) {
    if (one == nullptr) {
      series_.erase(id);
    } else {
      series_[id] = one;
    }
  }
}

LivePointer LiveStore::staged_or_kept(const std::string& id, const Staged& staged) const {
  if (const auto found = staged.find(id); found != staged.end()) return found->second;
  const std::scoped_lock lock(mutex_);
  const auto found = series_.find(id);
  return found == series_.end() ? nullptr : found->second;
}

void LiveStore::stage(Change& change, Staged& staged, std::uint64_t& bytes) {
  Outcome& outcome = change.outcome;
  const std::string id = change.series.id;
  const LivePointer old = staged_or_kept(id, staged);
  if (old == nullptr && change.kind != Change::Kind::put) {
    outcome.error = unknown(id);
    return;
  }
  switch (change.kind) {
    case Change::Kind::remove:
      if (database_ != nullptr) database_->remove(id);
      bytes -= bytes_of(*old);
      --count_;
      staged[id] = nullptr;
      return;
    case Change::Kind::put: {
      const std::uint64_t now =
          bytes - (old == nullptr ? 0 : bytes_of(*old)) + bytes_of(change.series);
      try {
        require_limit(count_ + (old == nullptr ? 1 : 0), options_.max_series, "live series",
                      "--max-live-series", "id");
        require_limit(now, options_.max_bytes, "bytes of live series", "--max-live-memory", "id");
      } catch (const Error& error) {
        outcome.error = error;
        return;
      }
      if (database_ != nullptr) database_->put(change.series);
      bytes = now;
      count_ += old == nullptr ? 1 : 0;
      outcome.made = old == nullptr;
      outcome.series = std::make_shared<const LiveSeries>(std::move(change.series));
      break;
    }
    case Change::Kind::append: {
      const Points& points = change.points;
      if (points.at && *points.at != old->count) {
        outcome.error =
            Error(ExitStatus::usage, "conflict",
                  fmt::format("expected at {}, which is how many steps there are, found {}",
                              old->count, *points.at),
                  "at", "look which of your steps are there, and send the others");
        return;
      }
      if (points.variates != old->variates) {
        outcome.error = invalid_request(
            fmt::format("expected rows of {} numbers, found {}", old->variates, points.variates),
            "values");
        return;
      }
      auto grown = std::make_shared<LiveSeries>(*old);
      grown->append(points.rows, options_.context);
      if (database_ != nullptr) database_->append(*grown, points.rows, options_.context);
      outcome.series = std::move(grown);
      break;
    }
  }
  staged[id] = outcome.series;
}

}  // namespace toto::server
