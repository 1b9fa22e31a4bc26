// SPDX-License-Identifier: Apache-2.0
// The live series of a server. One thread makes all changes, so that those that come together are
// one transaction; readers see what was committed.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "server/live_database.h"
#include "toto/error.hpp"

namespace toto::server {

struct LiveOptions {
  std::size_t context = 4096;  ///< steps kept of each series
  std::size_t max_series = 10'000;
  std::uint64_t max_bytes = std::uint64_t{256} << 20;  ///< of all series, each with a full context
  std::size_t max_changes = 4096;                      ///< that wait
  std::string path;  ///< of the database; empty: nothing outlives the process
};

using LivePointer = std::shared_ptr<const LiveSeries>;

/// What became of a change.
struct Outcome {
  LivePointer series;          ///< as it is now; null after remove()
  std::optional<Error> error;  ///< nothing was changed
  bool made = false;           ///< there was none of that id
};
using Told = std::function<void(const Outcome&)>;

/// Safe to use from many threads.
class LiveStore {
 public:
  /// Reads what the database has. Throws what LiveDatabase throws.
  explicit LiveStore(LiveOptions options);
  ~LiveStore() { stop(); }
  LiveStore(const LiveStore&) = delete;
  LiveStore& operator=(const LiveStore&) = delete;

  /// Finishes what waits; from now on changes are refused.
  void stop();
  /// Throws Error unknown_series.
  [[nodiscard]] LivePointer find(const std::string& id) const;
  [[nodiscard]] std::vector<LivePointer> all() const;
  [[nodiscard]] std::size_t size() const;

  /// Changes: `told` is called once, on the thread of the store, after the database has committed.
  /// Throw Error queue_full, draining. Errors of the outcome: unknown_series, conflict,
  /// limit_exceeded, invalid_request, store_failed.
  void put(LiveSeries series, Told told);
  void append(const std::string& id, Points points, Told told);
  void remove(const std::string& id, Told told);

 private:
  struct Change {
    enum class Kind { put, append, remove } kind;
    LiveSeries series;  // of put; of the others its id
    Points points;
    Told told;
    Outcome outcome;
  };
  using Staged = std::map<std::string, LivePointer>;  // null: removed

  void add(Change change);
  void work();
  void apply(std::deque<Change>& batch);
  void stage(Change& change, Staged& staged, std::uint64_t& bytes);
  [[nodiscard]] LivePointer staged_or_kept(const std::string& id, const Staged& staged) const;
  [[nodiscard]] std::uint64_t bytes_of(const LiveSeries& series) const;

  const LiveOptions options_;
  std::unique_ptr<LiveDatabase> database_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::map<std::string, LivePointer> series_;
  std::deque<Change> waiting_;
  bool ends_ = false;
  std::uint64_t bytes_ = 0;  // of the thread alone
  std::size_t count_ = 0;    // likewise
  std::thread thread_;       // the last to be made
};

}  // namespace toto::server
