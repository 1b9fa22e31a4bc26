// SPDX-License-Identifier: Apache-2.0
// Live series on disk: SQLite with a write-ahead log, so that a process that is killed loses
// nothing that was committed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/live_series.h"

struct sqlite3;

namespace toto::server {

/// Not for more than one thread at a time. What fails throws Error (74) store_failed.
class LiveDatabase {
 public:
  /// Opens or makes the file. Throws Error (74) store_failed, also where another process has it
  /// open; (65) store_format for a file that is none of ours.
  explicit LiveDatabase(const std::string& path);

  /// All series, with their last `context` steps. Throws Error (65) store_damaged for rows that do
  /// not fit together.
  [[nodiscard]] std::vector<LiveSeries> load(std::size_t context);

  /// Changes between begin() and commit() are there together or not at all.
  void begin();
  void commit();
  void rollback() noexcept;
  /// In the place of what has its id.
  void put(const LiveSeries& series);
  /// `rows` are the last steps of the series; steps before its last `context` are dropped.
  void append(const LiveSeries& series, const std::vector<float>& rows, std::size_t context);
  void remove(const std::string& id);

 private:
  void execute(const char* sql);
  void add_rows(const LiveSeries& series, const float* rows, std::size_t steps);

  std::unique_ptr<sqlite3, void (*)(sqlite3*)> database_;
  std::string path_;
};

}  // namespace toto::server
