// SPDX-License-Identifier: Apache-2.0
// The timestamps of the forecast.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "core/json.h"
#include "data/calendar.h"
#include "data/interval.h"
#include "data/sessions.h"
#include "data/zone.h"
#include "toto/tools/data.hpp"

namespace toto::data {
namespace {

constexpr std::int64_t kLatestNs = 9'223'372'036'854'775'807;

/// Whether `steps` steps after `from` can be written. Compares by division: products overflow.
bool fits(std::int64_t from, const Interval& interval, std::int64_t steps, std::int64_t latest) {
  constexpr std::int64_t kMonthMs = 28 * kDayMs;
  switch (interval.unit) {
    case Interval::Unit::index: {  // unsigned: what is left after a negative index is above
                                   // INT64_MAX
      const std::uint64_t left = std::uint64_t{INT64_MAX} - static_cast<std::uint64_t>(from);
      return static_cast<std::uint64_t>(steps) <= left / static_cast<std::uint64_t>(interval.count);
    }
    case Interval::Unit::milliseconds:
      return steps <= (latest - from) / interval.count;
    case Interval::Unit::business_day:
      return steps <= (latest - from) / kDayMs * 5 / 7;
    case Interval::Unit::month:
      return steps <= (latest - from) / kMonthMs / interval.count &&
             advance(from, interval, steps) <= latest;
  }
  return false;
}

}  // namespace

std::vector<std::int64_t> future_times(const TimeSeries& series, std::size_t horizon) {
  const bool index = series.style.form == TimeStyle::Form::index;
  const std::int64_t offset = index ? 0 : series.style.zone_offset_minutes * std::int64_t{60'000};
  const std::int64_t from = series.times.back() + offset;
  const std::int64_t latest = series.style.epoch_decimals == 9 ? kLatestNs / 1'000'000 : kLatestMs;
  if (horizon == 0) return {};
  if (auto open = open_times(series, horizon)) return std::move(*open);
  if (horizon > static_cast<std::size_t>(latest) ||
      !fits(from, series.interval, static_cast<std::int64_t>(horizon), latest)) {
    throw Error(
        ExitStatus::bad_data, "timestamp_overflow",
        fmt::format("{} steps of {} after {} are beyond the last date that can be written", horizon,
                    describe(series.interval), format_time(series.times.back(), series.style)),
        "series " + quote(series.id), "shorten the horizon");
  }
  // By the hour time runs on evenly; days, months and weeks begin by the clock on the wall.
  const bool by_the_wall =
      !series.style.timezone.empty() &&
      (series.interval.unit != Interval::Unit::milliseconds || series.interval.count % kDayMs == 0);
  std::optional<Zone> zone;
  if (by_the_wall) zone.emplace(series.style.timezone);
  std::vector<std::int64_t> times(horizon);
  for (std::size_t i = 0; i < horizon; ++i) {
    const std::int64_t local = advance(from, series.interval, static_cast<std::int64_t>(i + 1));
    times[i] = zone ? zone->instants_of(local).first : local - offset;
  }
  return times;
}

}  // namespace toto::data
