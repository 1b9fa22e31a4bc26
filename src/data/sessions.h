// SPDX-License-Identifier: Apache-2.0
// When a market is open: weekdays, hours, holidays, early closes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "toto/tools/data.hpp"

namespace toto::data {

class Sessions {
 public:
  /// "NYSE" (also XNYS, NASDAQ, XNAS), "24x7", or the path of a file. Throws Error invalid_calendar
  /// (65; 2 for a word that is neither), file_not_found (66).
  static std::shared_ptr<const Sessions> find(const std::string& name);
  /// A file: a line each of `timezone America/New_York`, `days Mon-Fri`, `hours 09:30-16:00`, and
  /// any number of `holiday 2026-12-25` and `early 2026-12-24 13:00`; # begins a comment. Without
  /// `days` and `hours`: Monday to Friday, all day. Throws Error invalid_calendar (65), (2)
  /// unknown_timezone.
  static Sessions parse(std::string_view text, const std::string& name);

  [[nodiscard]] bool always() const { return always_; }
  /// Of the hours and days; empty: those of the file.
  [[nodiscard]] const std::string& timezone() const { return timezone_; }
  /// `day`: days since 1970-01-01, by the clock of the market.
  [[nodiscard]] bool is_open(std::int64_t day) const;
  /// Milliseconds of the day.
  [[nodiscard]] std::int64_t opens() const { return open_; }
  [[nodiscard]] std::int64_t closes(std::int64_t day) const;
  [[nodiscard]] std::int64_t usually_closes() const { return close_; }

 private:
  bool always_ = false, nyse_ = false;
  std::string timezone_;
  std::array<bool, 7> weekdays_ = {true, true, true, true, true, false, false};  // from Monday
  std::int64_t open_ = 0, close_ = 86'400'000;
  std::set<std::int64_t> holidays_;
  std::map<std::int64_t, std::int64_t> early_;
};

/// Holidays and early closes of the New York Stock Exchange by the rules in force today (Juneteenth
/// since 2022). Days without a session for other reasons are not known.
bool is_nyse_holiday(std::int64_t day);
bool is_nyse_early_close(std::int64_t day);

/// The times of the day (ms, ascending) that at least half of the last 20 days with rows have.
/// `local` ascends.
std::vector<std::int64_t> usual_times_of_day(std::span<const std::int64_t> local);

/// The next `horizon` times of a series on which its market is open. Days and business days keep
/// their time of day; of shorter steps each day has the series' usual times of day. nullopt where
/// the step is longer, where the market is always open, or without a calendar. Throws Error (65)
/// timestamp_overflow.
std::optional<std::vector<std::int64_t>> open_times(const TimeSeries& series, std::size_t horizon);

/// Times by the clock of the market: as they stand where the file names no zone.
std::vector<std::int64_t> market_clock(std::span<const std::int64_t> times, const TimeStyle& style,
                                       const Sessions& sessions);

}  // namespace toto::data
