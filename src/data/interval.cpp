// SPDX-License-Identifier: Apache-2.0
#include "data/interval.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "data/calendar.h"

namespace toto::data {
namespace {

struct Step {
  std::int64_t most_common = 1;  // the smallest of them; positions increase, so it is at least 1
  std::int64_t median = 0;       // the lower one
  bool divides_all = true;
  bool half_there = false;  // of the grid that most_common spans
};

Step measure(std::span<const std::int64_t> positions) {
  std::vector<std::int64_t> steps(positions.size() - 1);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = positions[i + 1] - positions[i];
  std::ranges::sort(steps);
  Step out;
  out.median = steps[(steps.size() - 1) / 2];
  std::size_t most = 0;
  for (auto from = steps.begin(); from != steps.end();) {
    const auto to = std::upper_bound(from, steps.end(), *from);
    if (const auto count = static_cast<std::size_t>(to - from); count > most) {
      most = count;
      out.most_common = *from;
    }
    from = to;
  }
  out.divides_all =
      std::ranges::all_of(steps, [&](std::int64_t step) { return step % out.most_common == 0; });
  const std::int64_t grid = (positions.back() - positions.front()) / out.most_common + 1;
  out.half_there = grid <= 2 * static_cast<std::int64_t>(positions.size());
  return out;
}

Inferred from_steps(std::span<const std::int64_t> positions, Interval::Unit unit, int day) {
  const Step step = measure(positions);
  Inferred out;
  out.interval = {unit, step.divides_all ? step.most_common : step.median, day, step.divides_all};
  out.fill_gaps = step.divides_all && step.half_there;
  return out;
}

std::vector<std::int64_t> days_of(std::span<const std::int64_t> times) {
  std::vector<std::int64_t> days(times.size());
  std::ranges::transform(times, days.begin(), [](std::int64_t t) { return floor_div(t, kDayMs); });
  return days;
}

/// How far apart the times of day lie.
std::int64_t spread_of_clock(std::span<const std::int64_t> times) {
  std::int64_t lowest = kDayMs, highest = 0;
  for (const std::int64_t time : times) {
    lowest = std::min(lowest, floor_mod(time, kDayMs));
    highest = std::max(highest, floor_mod(time, kDayMs));
  }
  return highest - lowest;
}

/// One row a month at most, always on the same day or on the month's last one.
std::optional<Inferred> infer_months(std::span<const std::int64_t> times) {
  if (times.back() - times.front() < 28 * kDayMs || spread_of_clock(times) != 0) {
    return std::nullopt;
  }
  const std::vector<std::int64_t> days = days_of(times);
  std::vector<std::int64_t> months(days.size());
  std::ranges::transform(days, months.begin(),
                         [](std::int64_t day) { return month_number(date_of(day)); });
  if (std::ranges::adjacent_find(months, std::greater_equal{}) != months.end()) return std::nullopt;

  const auto always_on = [&](int day) {
    for (std::size_t i = 0; i < days.size(); ++i) {
      if (date_of(days[i]) != date_in_month(months[i], day)) return false;
    }
    return true;
  };
  int latest = 1;
  for (const std::int64_t day : days) {
    latest = std::max(latest, static_cast<int>(static_cast<unsigned>(date_of(day).day())));
  }
  if (always_on(31)) latest = 31;
  if (!always_on(latest)) return std::nullopt;
  return from_steps(months, Interval::Unit::month, latest);
}

/// A row a day, none or next to none at weekends. Holidays are gaps like any other; an hour's
/// spread of the clock is the season's.
std::optional<Inferred> infer_business_days(std::span<const std::int64_t> times) {
  constexpr std::int64_t kOneWeekendRowIn = 50;
  if (times.back() - times.front() < 3 * kDayMs || spread_of_clock(times) > 3'600'000) {
    return std::nullopt;
  }
  const std::vector<std::int64_t> days = days_of(times);
  const auto rows = static_cast<std::int64_t>(days.size());
  std::int64_t weekend_rows = 0, weekends = 0;
  for (std::size_t i = 0; i < days.size(); ++i) {
    weekend_rows += weekday_of(days[i]) >= 5 ? 1 : 0;
    if (i == 0) continue;
    if (days[i] == days[i - 1]) return std::nullopt;
    weekends += floor_div(days[i] + 3, 7) > floor_div(days[i - 1] + 3, 7) ? 1 : 0;
  }
  const std::int64_t span = business_day_number(days.back()) - business_day_number(days.front());
  if (weekends == 0 || weekend_rows * kOneWeekendRowIn > rows || span + 1 > 2 * rows ||
      measure(days).most_common != 1) {
    return std::nullopt;
  }
  Inferred out;
  out.interval.unit = Interval::Unit::business_day;
  return out;
}

}  // namespace

Inferred infer_interval(std::span<const std::int64_t> times, TimeStyle::Form form) {
  if (form == TimeStyle::Form::index) return from_steps(times, Interval::Unit::index, 1);
  if (const auto months = infer_months(times)) return *months;
  if (const auto days = infer_business_days(times)) return *days;
  return from_steps(times, Interval::Unit::milliseconds, 1);
}

std::int64_t steps_between(std::int64_t from, std::int64_t to, const Interval& interval) {
  if (interval.unit != Interval::Unit::month) return (to - from) / interval.count;
  const auto month = [](std::int64_t time) {
    return month_number(date_of(floor_div(time, kDayMs)));
  };
  return (month(to) - month(from)) / interval.count;
}

std::int64_t advance(std::int64_t from, const Interval& interval, std::int64_t steps) {
  const std::int64_t day = floor_div(from, kDayMs);
  const std::int64_t clock = floor_mod(from, kDayMs);
  switch (interval.unit) {
    case Interval::Unit::month: {
      const std::int64_t month = month_number(date_of(day)) + steps * interval.count;
      return day_of(date_in_month(month, interval.day)) * kDayMs + clock;
    }
    case Interval::Unit::business_day:
      return business_day(business_day_number(day) + steps) * kDayMs + clock;
    default:
      return from + steps * interval.count;
  }
}

}  // namespace toto::data
