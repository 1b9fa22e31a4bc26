// SPDX-License-Identifier: Apache-2.0
// Jan-18: January of 2018, or a day without its year? The times around it tell.
#pragma once

#include <cstdint>
#include <string_view>

namespace toto::data {

/// Whether times of this pattern may be days of a year that is not said: %b-%y, %B-%y.
bool may_be_days(std::string_view pattern);

inline constexpr std::string_view kMonthOrDay =
    "if it is a month, say --date-format '%b-%y'; days need their year in the file";

/// The times of one series as months, in the order of the file.
class ShortMonths {
 public:
  /// `time`: ms since 1970 of a month.
  void add(std::int64_t time);

  /// They are months: they go on in one direction by less than a year, and not from a month to the
  /// same one of another year. Days would have Jan-18 and Jan-19 next to each other.
  [[nodiscard]] bool clear() const { return moved_ && !unclear_; }

 private:
  std::int64_t last_ = 0;
  int direction_ = 0;
  bool any_ = false, moved_ = false, unclear_ = false;
};

}  // namespace toto::data
