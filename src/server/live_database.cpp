// SPDX-License-Identifier: Apache-2.0
#include "server/live_database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstring>

#include "core/json.h"
#include "core/printable.h"
#include "toto/error.hpp"

namespace toto::server {
namespace {

constexpr int kApplication = 0x746f746f;  // "toto"
constexpr int kVersion = 1;
constexpr std::size_t kMaxSteps = 256;  // of one row of the table

void close_database(sqlite3* database) { sqlite3_close_v2(database); }

/// SQLite's own words in one line: they name tables as the file spells them.
std::string words_of(sqlite3* database) { return to_utf8(printable(sqlite3_errmsg(database))); }

/// One statement, prepared and bound.
class Statement {
 public:
  Statement(sqlite3* database, const std::string& path, const char* sql)
      : database_(database), path_(path), statement_(nullptr, sqlite3_finalize) {
    sqlite3_stmt* made = nullptr;
    const int result = sqlite3_prepare_v2(database, sql, -1, &made, nullptr);
    statement_.reset(made);
    if (result != SQLITE_OK) fail();
  }
  Statement& bind(std::int64_t value) {
    if (sqlite3_bind_int64(statement_.get(), ++bound_, value) != SQLITE_OK) fail();
    return *this;
  }
  Statement& bind(const std::string& value) {
    const auto size = static_cast<int>(value.size());
    if (sqlite3_bind_text(statement_.get(), ++bound_, value.data(), size, SQLITE_TRANSIENT) !=
        SQLITE_OK) {
      fail();
    }
    return *this;
  }
  Statement& bind(const float* values, std::size_t count) {
    const auto bytes = static_cast<int>(count * sizeof(float));
    if (sqlite3_bind_blob(statement_.get(), ++bound_, values, bytes, SQLITE_TRANSIENT) !=
        SQLITE_OK) {
      fail();
    }
    return *this;
  }
  /// True: there is a row.
  bool step() {
    const int result = sqlite3_step(statement_.get());
    if (result != SQLITE_ROW && result != SQLITE_DONE) fail();
    return result == SQLITE_ROW;
  }
  [[nodiscard]] std::int64_t whole(int column) {
    return sqlite3_column_int64(statement_.get(), column);
  }
  [[nodiscard]] std::string text(int column) {
    const auto* const bytes =
        static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
    return bytes == nullptr ? std::string() : std::string(bytes, size);
  }

 private:
  [[noreturn]] void fail() const {
    const int code = sqlite3_errcode(database_);
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT) {
      throw Error(ExitStatus::bad_data, "store_format",
                  fmt::format("not a store of series, or a damaged one: {}", words_of(database_)),
                  path_, "name another --store, or bring back a copy");
    }
    throw Error(ExitStatus::io, "store_failed", words_of(database_), path_,
                code == SQLITE_BUSY ? "another process has it open" : "see that the disk has room");
  }

  sqlite3* database_;
  const std::string& path_;
  std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement_;
  int bound_ = 0;
};

}  // namespace

LiveDatabase::LiveDatabase(const std::string& path)
    : database_(nullptr, close_database), path_(path) {
  sqlite3* made = nullptr;
  const int result =
      sqlite3_open_v2(path.c_str(), &made,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  database_.reset(made);
  if (result != SQLITE_OK) {
    throw Error(ExitStatus::io, "store_failed",
                made == nullptr ? "there is no memory" : words_of(made), path,
                "name a file in a folder that can be written to");
  }
  sqlite3_busy_timeout(made, 2000);  // the process before this one may be ending
  execute("PRAGMA locking_mode=EXCLUSIVE");
  execute("PRAGMA journal_mode=WAL");
  execute("PRAGMA synchronous=FULL");  // committed is on the disk, not on its way
  begin();
  const auto number = [this](const char* pragma) {
    Statement one(database_.get(), path_, pragma);
    return one.step() ? one.whole(0) : 0;
  };
  const std::int64_t application = number("PRAGMA application_id");
  const std::int64_t tables = number("SELECT count(*) FROM sqlite_master");
  if (application != kApplication && (application != 0 || tables != 0)) {
    throw Error(ExitStatus::bad_data, "store_format", "a database of another program", path,
                "name another --store");
  }
  if (application == kApplication && number("PRAGMA user_version") != kVersion) {
    throw Error(ExitStatus::bad_data, "store_format", "a store of another version of toto", path,
                "name another --store");
  }
  execute(fmt::format("PRAGMA application_id={}", kApplication).c_str());
  execute(fmt::format("PRAGMA user_version={}", kVersion).c_str());
  execute(
      "CREATE TABLE IF NOT EXISTS series(id TEXT PRIMARY KEY, variates INTEGER NOT NULL,"
      " univariate INTEGER NOT NULL, frequency TEXT NOT NULL, start TEXT NOT NULL,"
      " count INTEGER NOT NULL) WITHOUT ROWID");
  execute(
      "CREATE TABLE IF NOT EXISTS points(id TEXT NOT NULL, step INTEGER NOT NULL,"
      " rows BLOB NOT NULL, PRIMARY KEY(id, step)) WITHOUT ROWID");
  commit();
}

void LiveDatabase::execute(const char* sql) {
  Statement one(database_.get(), path_, sql);
  while (one.step()) {
  }
}

void LiveDatabase::begin() { execute("BEGIN IMMEDIATE"); }
void LiveDatabase::commit() { execute("COMMIT"); }
void LiveDatabase::rollback() noexcept {
  (void)sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void LiveDatabase::add_rows(const LiveSeries& series, const float* rows, std::size_t steps) {
  for (std::size_t done = 0; done < steps; done += kMaxSteps) {
    const std::size_t some = std::min(kMaxSteps, steps - done);
    Statement(database_.get(), path_, "INSERT INTO points VALUES(?, ?, ?)")
        .bind(series.id)
        .bind(static_cast<std::int64_t>(series.count - steps + done))
        .bind(rows + done * series.variates, some * series.variates)
        .step();
  }
}

void LiveDatabase::put(const LiveSeries& series) {
  remove(series.id);
  Statement(database_.get(), path_, "INSERT INTO series VALUES(?, ?, ?, ?, ?, ?)")
      .bind(series.id)
      .bind(static_cast<std::int64_t>(series.variates))
      .bind(std::int64_t{series.univariate})
      .bind(series.frequency)
      .bind(series.start)
      .bind(static_cast<std::int64_t>(series.count))
      .step();
  add_rows(series, series.rows.data(), series.steps());
}

void LiveDatabase::append(const LiveSeries& series, const std::vector<float>& rows,
                          std::size_t context) {
  const std::size_t steps = std::min(rows.size() / series.variates, series.steps());
  if (steps == series.steps()) {  // nothing older is kept
    Statement(database_.get(), path_, "DELETE FROM points WHERE id = ?").bind(series.id).step();
  }
  add_rows(series, rows.data() + rows.size() - steps * series.variates, steps);
  Statement(database_.get(), path_, "UPDATE series SET count = ? WHERE id = ?")
      .bind(static_cast<std::int64_t>(series.count))
      .bind(series.id)
      .step();
  if (series.count <= context + kMaxSteps) return;
  // Rows hold at most kMaxSteps steps, so those that begin before this end before the context.
  Statement(database_.get(), path_, "DELETE FROM points WHERE id = ? AND step < ?")
      .bind(series.id)
      .bind(static_cast<std::int64_t>(series.count - context - kMaxSteps))
      .step();
}

void LiveDatabase::remove(const std::string& id) {
  Statement(database_.get(), path_, "DELETE FROM series WHERE id = ?").bind(id).step();
  Statement(database_.get(), path_, "DELETE FROM points WHERE id = ?").bind(id).step();
}

std::vector<LiveSeries> LiveDatabase::load(std::size_t context) {
  const auto require = [this](bool holds, const std::string& id) {
    if (holds) return;
    throw Error(ExitStatus::bad_data, "store_damaged",
                fmt::format("the rows of series {} do not fit together", quote(id)), path_,
                "name another --store, or bring back a copy");
  };
  std::vector<LiveSeries> all;
  Statement series(database_.get(), path_,
                   "SELECT id, variates, univariate, frequency, start, count FROM series");
  while (series.step()) {
    LiveSeries one;
    one.id = series.text(0);
    const std::int64_t variates = series.whole(1);
    const std::int64_t count = series.whole(5);
    require(variates > 0 && variates < 1 << 20 && count >= 0, one.id);
    one.variates = static_cast<std::size_t>(variates);
    one.univariate = series.whole(2) != 0;
    one.frequency = series.text(3);
    one.start = series.text(4);
    Statement points(database_.get(), path_,
                     "SELECT step, rows FROM points WHERE id = ? ORDER BY step");
    points.bind(one.id);
    bool first = true;
    while (points.step()) {
      const auto step = static_cast<std::uint64_t>(points.whole(0));
      const std::string bytes = points.text(1);
      const std::size_t row = one.variates * sizeof(float);
      require((first || step == one.count) && bytes.size() % row == 0 && !bytes.empty(), one.id);
      if (first) one.count = step;
      first = false;
      std::vector<float> rows(bytes.size() / sizeof(float));
      std::memcpy(rows.data(), bytes.data(), bytes.size());
      one.append(rows, context);
    }
    require(first ? count == 0 : one.count == static_cast<std::uint64_t>(count), one.id);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace toto::server
