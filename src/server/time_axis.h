// SPDX-License-Identifier: Apache-2.0
// Timestamps of ISO 8601 and the step between them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "toto/tools/data.hpp"

namespace toto::server {

/// When the steps of a series are.
class TimeAxis {
 public:
  /// `start` is the time of step 0.
  TimeAxis(std::int64_t start, data::TimeStyle style, data::Interval interval);

  /// Step 0 moves on.
  void skip(std::size_t steps) { origin_ += steps; }
  /// The text of a step's time. Throws Error timestamp_overflow (65) beyond the year 9999.
  [[nodiscard]] std::string at(std::size_t step) const;

 private:
  std::int64_t start_;  // ms since 1970 UTC
  std::size_t origin_ = 0;
  data::TimeStyle style_;
  data::Interval interval_;
};

struct IsoTime {
  std::int64_t time = 0;  ///< ms since 1970 UTC
  data::TimeStyle style;  ///< in which times of the same series are written
};

/// Any form of ISO 8601 for a date, or a date and a time of day: calendar, week and ordinal dates,
/// years and months alone, with and without separators, a fraction of the last part, a zone or none
/// (then UTC); and with a space for the T. Nothing for other text.
std::optional<IsoTime> parse_iso_time(std::string_view text);

/// "hour", "H", "15min", "D", "MS", "Q", ...: the words of KServe and of pandas, a number before
/// them or none. Nothing for other text.
std::optional<data::Interval> parse_frequency(std::string_view text);

/// The axis of a series that starts there. Errors name `where`: (2) invalid_timestamp,
/// invalid_frequency.
TimeAxis make_axis(std::string_view start, std::string_view frequency, std::string_view where);

}  // namespace toto::server
