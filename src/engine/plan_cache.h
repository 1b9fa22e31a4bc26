// SPDX-License-Identifier: Apache-2.0
// Plan entries on disk: a folder of small files, one for each key.
//
// Any number of processes may use one folder. Each file is written under a temporary name, flushed
// and renamed, so that a reader finds a whole entry or none, whenever a writer is killed. Whatever
// is not a whole entry for the key (truncated, foreign, of another version) is a miss, never an
// error. The loser of two writers at the same moment loses what it measured, nothing more.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>

#include "engine/plan_entry.h"
#include "toto/log.hpp"
#include "toto/settings.hpp"

namespace toto {

class PlanCache {
 public:
  /// The folder is made, for this user only, when the first entry is written. One that is not safe
  /// or cannot be used is a warning to `log` and left alone: the cache is then empty and stays so.
  PlanCache(std::string folder, CachePolicy policy, LogSink log);

  /// Whether there is a folder to read from.
  [[nodiscard]] bool usable() const { return usable_; }

  /// Nothing where there is no entry for the key. Throws Error (78) plan_cache_miss instead where
  /// the policy is `only`.
  [[nodiscard]] std::optional<PlanEntry> load(const PlanCacheKey& key) const;

  /// Writes `entry`, and in addition what the folder already knows for the key. True if it was
  /// written; failures are warnings to `log`. Only the policy `prefer` writes.
  bool store(const PlanCacheKey& key, const PlanEntry& entry);

 private:
  [[nodiscard]] std::optional<PlanEntry> find(const PlanCacheKey& key) const;
  void give_up(std::string_view reason);

  std::string folder_;
  CachePolicy policy_;
  LogSink log_;
  std::atomic<bool> usable_;
};

/// Why a plan cache must not use this folder; empty where it may. A folder that is not there is
/// fine.
std::string plan_folder_problem(const std::string& folder, bool for_writing);

}  // namespace toto
