// SPDX-License-Identifier: Apache-2.0
// A column of timestamps: which form it has, and its values as integers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "toto/tools/data.hpp"

namespace toto::data {

/// ms since 1970 UTC, or, until TimeReader::finish has spoken, an integer as it stands.
struct Timestamp {
  std::int64_t time = 0;
  std::int16_t offset_minutes = 0;  // of the zone, east of UTC
};

/// Reads one column. The first timestamp settles what the others must look like. Plain integers
/// stay as they are until the last row: only all of them together say whether they are years, an
/// epoch (and its unit) or an index.
class TimeReader {
 public:
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
  enum class Text { unknown, integer, epoch_fraction, month, date, datetime };

  bool settle(std::string_view text);
  std::optional<Timestamp> read_integer(std::string_view text) const;
  std::optional<Timestamp> read_epoch_fraction(std::string_view text);
  std::optional<Timestamp> read_calendar(std::string_view text);

  Text text_ = Text::unknown;
  TimeStyle style_;
};

/// A date or date-time with separators, that nobody takes for a number.
bool looks_like_time(std::string_view text);

}  // namespace toto::data
