// SPDX-License-Identifier: Apache-2.0
#include "data/pattern_words.h"

#include <array>
#include <cstddef>
#include <span>

namespace toto::data {
namespace {

constexpr auto kMonths =
    std::to_array<std::string_view>({"January", "February", "March", "April", "May", "June", "July",
                                     "August", "September", "October", "November", "December"});
constexpr auto kDays = std::to_array<std::string_view>(
    {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"});

bool same(std::string_view text, std::string_view name) {
  if (text.size() != name.size()) return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if ((text[i] | 0x20) != (name[i] | 0x20)) return false;
  }
  return true;
}

/// The number of the name in front, from 1, or 0.
int take_name(std::string_view& text, std::span<const std::string_view> names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (const std::size_t size : {names[i].size(), std::size_t{3}}) {
      if (!same(text.substr(0, size), names[i].substr(0, size))) continue;
      text.remove_prefix(size);
      return static_cast<int>(i) + 1;
    }
  }
  return 0;
}

}  // namespace

std::string_view month_name(unsigned month) { return kMonths[month - 1]; }
std::string_view weekday_name(int weekday) { return kDays[static_cast<std::size_t>(weekday)]; }

int take_month_name(std::string_view& text) { return take_name(text, kMonths); }
bool take_weekday_name(std::string_view& text) { return take_name(text, kDays) > 0; }

}  // namespace toto::data
