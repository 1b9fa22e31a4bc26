// SPDX-License-Identifier: Apache-2.0
#include "data/context.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "data/calendar.h"
#include "data/interval.h"
#include "data/sessions.h"

namespace toto::data {
namespace {

constexpr std::int64_t kMinuteMs = 60'000;

/// The step that the rows have been put on.
Inferred stated(const Interval& step, const RowGroup& group, std::vector<std::int64_t>& local) {
  using Unit = Interval::Unit;
  const bool days = step.unit != Unit::milliseconds || step.count % kDayMs == 0;
  for (std::size_t row = 0; row < group.offsets.size(); ++row) {
    local[row] += (days ? group.offsets[row] : group.offsets.back()) * kMinuteMs;
  }
  return {step, step.unit != Unit::business_day};
}

/// Infers the step and settles what the local times are.
Inferred infer(const RowGroup& group, TimeStyle::Form form, std::vector<std::int64_t>& local) {
  local = group.times;
  if (local.size() < 2) return {};
  if (group.step) return stated(*group.step, group, local);
  if (group.offsets.empty()) return infer_interval(local, form);

  std::vector<std::int64_t> wall = group.times;
  for (std::size_t row = 0; row < wall.size(); ++row) {
    local[row] += group.offsets.back() * kMinuteMs;
    wall[row] += group.offsets[row] * kMinuteMs;
  }
  if (wall == local) return infer_interval(local, form);
  // The clock on the wall was put forward or back. Hours run on evenly in UTC, days do not.
  const Inferred even = infer_interval(local, form);
  const bool by_the_hour = even.interval.unit == Interval::Unit::milliseconds &&
                           even.interval.regular && even.interval.count < kDayMs;
  const bool increasing = std::ranges::adjacent_find(wall, std::greater_equal{}) == wall.end();
  if (by_the_hour || !increasing) return even;
  local = std::move(wall);
  return infer_interval(local, form);
}

/// What a calendar says about days of which rows are missing.
void adopt(const Sessions& calendar, Inferred& inferred) {
  using Unit = Interval::Unit;
  Interval& interval = inferred.interval;
  const bool days = interval.unit == Unit::business_day ||
                    (interval.unit == Unit::milliseconds && interval.count <= kDayMs);
  if (!days) return;
  if (!calendar.always()) {
    inferred.fill_gaps = false;
  } else if (interval.unit == Unit::business_day) {
    interval = {Unit::milliseconds, kDayMs, 1, true};
    inferred.fill_gaps = true;
  } else {
    inferred.fill_gaps = interval.regular;
  }
}

}  // namespace

std::size_t Context::step_of(std::size_t row) const {
  if (!fill_gaps) return row;
  return static_cast<std::size_t>(steps_between(local[0], local[row], interval));
}

Context make_context(const RowGroup& group, const TimeStyle& style, std::size_t limit,
                     const Sessions* calendar) {
  Context out;
  Inferred inferred = infer(group, style.form, out.local);
  if (calendar != nullptr) adopt(*calendar, inferred);
  out.interval = inferred.interval;
  out.fill_gaps = inferred.fill_gaps;
  out.style = style;
  if (!group.offsets.empty()) out.style.zone_offset_minutes = group.offsets.back();

  const std::size_t all = out.step_of(out.local.size() - 1) + 1;
  const std::size_t steps = std::min(limit, all);
  out.begin = all - steps;
  out.rows.assign(steps, Context::kNoRow);
  for (std::size_t end = out.local.size(); end > 0; --end) {
    const std::size_t row = end - 1;
    const std::size_t step = out.step_of(row);
    if (step < out.begin) break;
    out.rows[step - out.begin] = row;
  }
  Times::Vector times(steps);
  for (std::size_t i = 0; i < steps; ++i) {
    const std::int64_t time =
        out.rows[i] != Context::kNoRow
            ? out.local[out.rows[i]]
            : advance(out.local[0], out.interval, static_cast<std::int64_t>(out.begin + i));
    times[i] = time - out.style.zone_offset_minutes * kMinuteMs;
  }
  out.times = std::move(times);
  return out;
}

}  // namespace toto::data
