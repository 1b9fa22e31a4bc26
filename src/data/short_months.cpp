// SPDX-License-Identifier: Apache-2.0
#include "data/short_months.h"

#include <cstdlib>

#include "data/calendar.h"

namespace toto::data {

bool may_be_days(std::string_view pattern) { return pattern == "%b-%y" || pattern == "%B-%y"; }

void ShortMonths::add(std::int64_t time) {
  constexpr std::int64_t kYear = 12;
  const std::int64_t month = month_number(date_of(floor_div(time, kDayMs)));
  const std::int64_t step = any_ ? month - last_ : 0;
  any_ = true;
  last_ = month;
  if (step == 0) return;
  const int direction = step > 0 ? 1 : -1;
  unclear_ = unclear_ || std::abs(step) >= kYear || (moved_ && direction != direction_);
  direction_ = direction;
  moved_ = true;
}

}  // namespace toto::data
