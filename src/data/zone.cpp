// SPDX-License-Identifier: Apache-2.0
#include "data/zone.h"

#include <date/tz.h>

#include <algorithm>
#include <stdexcept>

#include "core/json.h"
#include "toto/error.hpp"

namespace toto::data {
namespace {

constexpr std::int64_t kMinuteMs = 60'000;

}  // namespace

/// The period between two changes of the clock that was asked for last: neighbours share it.
struct Zone::Rules {
  const date::time_zone* zone = nullptr;
  std::int64_t begin = 0, end = 0;  // s since 1970 UTC
  int offset = 0;                   // minutes

  void look_up(std::int64_t seconds) {
    if (seconds >= begin && seconds < end) return;
    const date::sys_info info = zone->get_info(date::sys_seconds(std::chrono::seconds(seconds)));
    begin = info.begin.time_since_epoch().count();
    end = info.end.time_since_epoch().count();
    offset = static_cast<int>(info.offset.count() / 60);
  }
  int offset_at(std::int64_t time) {
    look_up(time / 1000 - (time % 1000 < 0 ? 1 : 0));
    return offset;
  }
};

Zone::Zone(const std::string& name) : rules_(std::make_shared<Rules>()) {
  try {
    rules_->zone = date::locate_zone(name);
  } catch (const std::runtime_error&) {
    throw Error(ExitStatus::usage, "unknown_timezone",
                "the tz database of this machine has no zone " + quote(name), "--timezone",
                "names are such as UTC, Europe/Berlin and America/New_York");
  }
}

int Zone::offset_at(std::int64_t time) const { return rules_->offset_at(time); }

Zone::Instants Zone::instants_of(std::int64_t local) const {
  constexpr std::int64_t kDay = 86'400'000;
  // The offsets in force a day before and a day after are all that can be meant.
  const std::int64_t before = rules_->offset_at(local - kDay) * kMinuteMs;
  const std::int64_t after = rules_->offset_at(local + kDay) * kMinuteMs;
  if (before == after) return {local - before, local - before};
  const std::int64_t early = local - std::max(before, after);
  const std::int64_t late = local - std::min(before, after);
  const bool early_shows = early + rules_->offset_at(early) * kMinuteMs == local;
  const bool late_shows = late + rules_->offset_at(late) * kMinuteMs == local;
  if (early_shows && late_shows) return {early, late};
  if (early_shows) return {early, early};
  if (late_shows) return {late, late};
  return {local - before, local - before};
}

}  // namespace toto::data
