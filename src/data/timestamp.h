// SPDX-License-Identifier: Apache-2.0
// A column of timestamps: which form it has, and its values as integers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/zone.h"
#include "toto/tools/data.hpp"

namespace toto::data {

/// ms since 1970 UTC, or, until TimeReader::finish has spoken, an integer as it stands.
struct Timestamp {
  std::int64_t time = 0;
  std::int16_t offset_minutes = 0;  // of the zone, east of UTC
  // Where the clock on the wall shows this time twice: minutes from the first to the second time.
  std::int16_t again_after = 0;
};

/// Reads one column. The first timestamp settles what the others must look like. Plain integers
/// stay as they are until the last row: only all of them together say whether they are years, an
/// epoch (and its unit) or an index.
///
/// Forms that are not those of ISO 8601 are read by a pattern. Where day and month may be in either
/// order, both are tried until a text tells which it is; until then times count days first.
class TimeReader {
 public:
  /// `format`: a pattern of strftime, or dmy, mdy or ymd, or nothing. `zone_name`: of times that
  /// are written without a zone; empty: UTC. Throws Error (2) invalid_date_format,
  /// unknown_timezone.
  explicit TimeReader(const std::string& format = {}, const std::string& zone_name = {});

  /// Day and month may still be in either order.
  [[nodiscard]] bool ambiguous() const { return patterns_.size() > 1; }
  /// The pattern found, in the words of --date-format; empty: ISO 8601 or a number.
  [[nodiscard]] std::string pattern() const { return patterns_.empty() ? "" : patterns_.front(); }

  /// Nothing when `text` is not a timestamp, or not one of the form of the first.
  std::optional<Timestamp> read(std::string_view text);

  /// What is expected, for messages.
  [[nodiscard]] std::string_view expected() const;

  /// Settles integers that lie between `lowest` and `highest`.
  void finish(std::int64_t lowest, std::int64_t highest);
  /// The time in TimeSeries' terms of what read() gave; call after finish().
  [[nodiscard]] std::int64_t convert(std::int64_t time) const;
  [[nodiscard]] const TimeStyle& style() const { return style_; }

 private:
  enum class Text { unknown, integer, epoch_fraction, month, date, datetime, pattern };

  bool settle(std::string_view text);
  bool settle_pattern(std::string_view text);
  std::optional<Timestamp> read_integer(std::string_view text) const;
  std::optional<Timestamp> read_epoch_fraction(std::string_view text);
  std::optional<Timestamp> read_calendar(std::string_view text);
  std::optional<Timestamp> read_by_pattern(std::string_view text);
  [[nodiscard]] Timestamp in_zone(std::int64_t local) const;

  Text text_ = Text::unknown;
  TimeStyle style_;
  std::string order_;  // dmy, mdy or ymd, if told
  std::vector<std::string> patterns_;
  std::optional<Zone> zone_;
};

/// A date or date-time in any form that nobody takes for a number.
bool looks_like_time(std::string_view text);

/// A time of day alone: 15:30, 3:30 PM, 15:30:00.
bool looks_like_clock(std::string_view text);

}  // namespace toto::data
