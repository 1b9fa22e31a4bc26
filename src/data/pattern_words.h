// SPDX-License-Identifier: Apache-2.0
// Names of months and weekdays, in English and in the three-letter forms that others share.
#pragma once

#include <string_view>

namespace toto::data {

/// 1 to 12.
std::string_view month_name(unsigned month);
/// 0 is Monday.
std::string_view weekday_name(int weekday);

/// Takes a month's name, whole or its first three letters, off the front: 1 to 12, or 0.
int take_month_name(std::string_view& text);
bool take_weekday_name(std::string_view& text);

}  // namespace toto::data
