// SPDX-License-Identifier: Apache-2.0
// How many steps a season has, by the interval.
#include "data/calendar.h"
#include "toto/tools/data.hpp"

namespace toto::data {

std::size_t seasonal_steps(const Interval& interval) {
  using Unit = Interval::Unit;
  if (!interval.regular) return 1;
  if (interval.unit == Unit::business_day) return 5;
  if (interval.unit == Unit::month) {
    return interval.count > 0 && interval.count < 12 && 12 % interval.count == 0
               ? static_cast<std::size_t>(12 / interval.count)
               : 1;
  }
  if (interval.unit != Unit::milliseconds) return 1;
  if (interval.count == kDayMs) return 7;
  if (interval.count == 7 * kDayMs) return 52;
  if (interval.count <= 0 || interval.count > kDayMs || kDayMs % interval.count != 0) return 1;
  return static_cast<std::size_t>(kDayMs / interval.count);
}

}  // namespace toto::data
