// SPDX-License-Identifier: Apache-2.0
// The times after a series at which its market is open.
#include <algorithm>
#include <map>

#include "data/calendar.h"
#include "data/sessions.h"
#include "data/zone.h"
#include "toto/error.hpp"

namespace toto::data {
namespace {

constexpr std::int64_t kMinuteMs = 60'000;

/// Whether times are those of a clock without a zone, which is then the market's.
bool is_naive(const TimeStyle& style) {
  return style.zone == TimeStyle::Zone::none && style.timezone.empty() &&
         style.form != TimeStyle::Form::epoch;
}

/// Without rows to go by: from the opening on, a step apart.
std::vector<std::int64_t> times_of_session(const Sessions& sessions, std::int64_t step) {
  std::vector<std::int64_t> out;
  for (std::int64_t at = sessions.opens(); at < sessions.usually_closes(); at += step) {
    out.push_back(at);
  }
  return out;
}

}  // namespace

std::vector<std::int64_t> market_clock(std::span<const std::int64_t> times, const TimeStyle& style,
                                       const Sessions& sessions) {
  std::vector<std::int64_t> out(times.begin(), times.end());
  if (is_naive(style) || sessions.timezone().empty()) return out;
  const Zone zone(sessions.timezone());
  for (std::int64_t& time : out) time += zone.offset_at(time) * kMinuteMs;
  return out;
}

std::vector<std::int64_t> usual_times_of_day(std::span<const std::int64_t> local) {
  constexpr std::size_t kDays = 20;
  std::map<std::int64_t, std::size_t> found;
  std::size_t days = 0;
  std::int64_t latest = 0;
  for (std::size_t i = local.size(); i-- > 0;) {
    const std::int64_t day = floor_div(local[i], kDayMs);
    if (days == 0 || day != latest) {
      if (days == kDays) break;
      ++days;
    }
    latest = day;
    ++found[floor_mod(local[i], kDayMs)];
  }
  std::vector<std::int64_t> out;
  for (const auto& [time, count] : found) {
    if (2 * count >= days) out.push_back(time);
  }
  return out;
}

std::optional<std::vector<std::int64_t>> open_times(const TimeSeries& series, std::size_t horizon) {
  if (!series.calendar || series.calendar->always()) return std::nullopt;
  const Sessions& sessions = *series.calendar;
  const Interval& interval = series.interval;
  const bool business = interval.unit == Interval::Unit::business_day;
  if (!business && (interval.unit != Interval::Unit::milliseconds || interval.count > kDayMs)) {
    return std::nullopt;
  }
  const bool daily = business || interval.count == kDayMs;
  // Days are those that the file writes; shorter steps are of the market's clock.
  const std::int64_t offset = series.style.zone_offset_minutes * kMinuteMs;
  const std::span<const std::int64_t> end(&series.times.vector().back(), 1);
  const std::int64_t last =
      daily ? series.times.back() + offset : market_clock(end, series.style, sessions).front();
  std::vector<std::int64_t> clock = series.times_of_day;
  if (daily) clock = {floor_mod(last, kDayMs)};
  if (clock.empty()) clock = times_of_session(sessions, interval.count);
  // Bars are named by their end where one ends with the session and none begins with it.
  const bool by_end = !std::ranges::binary_search(clock, sessions.opens()) &&
                      std::ranges::binary_search(clock, sessions.usually_closes());
  std::optional<Zone> zone;
  if (!daily && !is_naive(series.style) && !sessions.timezone().empty()) {
    zone.emplace(sessions.timezone());
  }
  std::vector<std::int64_t> out;
  for (std::int64_t day = floor_div(last, kDayMs); out.size() < horizon; ++day) {
    if (day * kDayMs > kLatestMs) {
      throw Error(ExitStatus::bad_data, "timestamp_overflow",
                  "the horizon ends beyond the last date that can be written",
                  "series '" + series.id + "'", "shorten the horizon");
    }
    if (!sessions.is_open(day)) continue;
    const std::int64_t close = sessions.closes(day);
    for (const std::int64_t at : clock) {
      const std::int64_t local = day * kDayMs + at;
      // An early close cuts what usually comes; what comes after the usual close is the file's own.
      const bool cut =
          !daily && close != sessions.usually_closes() && (by_end ? at > close : at >= close);
      if (local <= last || cut || out.size() == horizon) continue;
      out.push_back(daily ? local - offset : zone ? zone->instants_of(local).first : local);
    }
  }
  return out;
}

}  // namespace toto::data
