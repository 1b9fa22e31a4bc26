// SPDX-License-Identifier: Apache-2.0
// Placing steps and round ticks on a time axis.
#include "tools/plot/time_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/plot/text.h"

namespace toto::plot {
namespace {

constexpr double kLabelGap = 12.0;          // pixels between neighbouring labels
constexpr double kTickDistance = 64.0;      // pixels between marks, on average, at least
constexpr double kQuarterly = 80.0 * kDay;  // steps that long are named by their quarter

double median_distance(const std::vector<std::int64_t>& times) {
  if (times.size() < 2) return 0.0;
  std::vector<std::int64_t> distances(times.size() - 1);
  for (std::size_t i = 0; i < distances.size(); ++i) distances[i] = times[i + 1] - times[i];
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return static_cast<double>(*middle);
}

// Whether some part of every week (or every day, for data of a few days) never has a step.
bool leaves_out_nights_or_weekends(const std::vector<std::int64_t>& times, double step_ms) {
  if (times.size() < 2 || step_ms > 1.5 * kDay) return false;
  const std::int64_t span = times.back() - times.front();
  const bool hourly = step_ms <= kHour;
  if (span < (hourly ? 30 * kHour : 14 * kDay)) return false;
  const std::int64_t cycle = span >= 14 * kDay ? 7 * kDay : kDay;
  const std::int64_t bin = hourly ? kHour : kDay;
  std::vector<bool> seen(static_cast<std::size_t>(cycle / bin));
  for (const std::int64_t time : times) {
    const std::int64_t phase = ((time % cycle) + cycle) % cycle;
    seen[static_cast<std::size_t>(phase / bin)] = true;
  }
  const auto empty = std::count(seen.begin(), seen.end(), false);
  return static_cast<double>(empty) >= 0.12 * static_cast<double>(seen.size());
}

std::string context_of(Unit unit, std::int64_t time) {
  if (unit == Unit::year) return {};
  return unit >= Unit::day ? format_year(time) : format_date(time);
}

double clamped(double x, std::string_view text, const LabelRoom& room) {
  const double half = text_width(text, room.font_size) / 2;
  return std::clamp(x, room.left + half, std::max(room.left + half, room.right - half));
}

bool apart(double x1, std::string_view text1, double x2, std::string_view text2, double font_size) {
  const double halves = (text_width(text1, font_size) + text_width(text2, font_size)) / 2;
  return x1 + halves + kLabelGap <= x2;
}

// Settles where the labels stand. False if they would touch.
bool place_labels(std::vector<TimeTick>& ticks, const LabelRoom& room) {
  TimeTick* previous_context = nullptr;
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    TimeTick& tick = ticks[i];
    tick.label_x = clamped(tick.x, tick.label, room);
    if (i > 0 && !apart(ticks[i - 1].label_x, ticks[i - 1].label, tick.label_x, tick.label,
                        room.font_size)) {
      return false;
    }
    if (tick.context.empty()) continue;
    tick.context_x = clamped(tick.x, tick.context, room);
    if (previous_context != nullptr &&
        !apart(previous_context->context_x, previous_context->context, tick.context_x, tick.context,
               room.font_size)) {
      // The first one only names the year in which the axis begins: the change says more.
      if (previous_context != ticks.data()) return false;
      previous_context->context.clear();
    }
    previous_context = &tick;
  }
  return true;
}

void keep_changes_of_context(std::vector<TimeTick>& ticks) {
  std::string current;
  for (TimeTick& tick : ticks) {
    if (tick.context == current) {
      tick.context.clear();
    } else {
      current = tick.context;
    }
  }
}

// The day, month or year that a step must lie in to stand for the start of `period`.
Period first_part(const Period& period, double step_ms) {
  const bool quarters = period.unit == Unit::month && step_ms > kQuarterly;
  return {period.unit, quarters ? 3 : 1};
}

}  // namespace

TimeAxis::TimeAxis(std::vector<std::int64_t> times, TimeStyle style, double left, double right)
    : times_(std::move(times)), style_(style), step_ms_(median_distance(times_)) {
  even_steps_ = style_ != TimeStyle::index && leaves_out_nights_or_weekends(times_, step_ms_);
  const std::size_t n = times_.size();
  x_.assign(n, (left + right) / 2);
  if (n < 2) return;
  const auto span = static_cast<double>(times_.back() - times_.front());
  for (std::size_t i = 0; i < n; ++i) {
    const double share = even_steps_ ? static_cast<double>(i) / static_cast<double>(n - 1)
                                     : static_cast<double>(times_[i] - times_.front()) / span;
    x_[i] = left + (right - left) * share;
  }
}

double TimeAxis::between(double time) const {
  const auto after =
      std::lower_bound(times_.begin() + 1, times_.end() - 1, time,
                       [](std::int64_t t, double v) { return static_cast<double>(t) < v; });
  const auto i = static_cast<std::size_t>(after - times_.begin());
  const auto t0 = static_cast<double>(times_[i - 1]);
  const auto t1 = static_cast<double>(times_[i]);
  return x_[i - 1] + (x_[i] - x_[i - 1]) * (time - t0) / (t1 - t0);
}

TimeTick TimeAxis::labelled(const Period& period, double x, std::int64_t time) const {
  TimeTick tick;
  tick.x = x;
  tick.context = context_of(period.unit, time);
  switch (period.unit) {
    case Unit::year:
      tick.label = format_year(time);
      break;
    case Unit::month:
      tick.label = step_ms_ > kQuarterly ? format_quarter(time) : format_month(time);
      break;
    case Unit::week:
    case Unit::day:
      tick.label = format_day(time);
      break;
    default:
      tick.label = format_clock(time, period.unit);
  }
  return tick;
}

// The mark of the period that begins at `start`. A period of days or longer is marked at its first
// step, for steps may be stamped late in their day or at the end of their month or year.
std::optional<TimeTick> TimeAxis::tick_at(const Period& period, std::int64_t start) const {
  const auto found = std::lower_bound(times_.begin(), times_.end(), start);
  if (found == times_.end()) return std::nullopt;
  const auto i = static_cast<std::size_t>(found - times_.begin());
  const bool inside = start >= times_.front();
  const auto late = static_cast<double>(times_[i] - start);
  if (period.unit >= Unit::day) {
    const Period part = even_steps_ ? period : first_part(period, step_ms_);
    const bool own = times_[i] < part.next(start);
    if (own && (late <= 1.1 * step_ms_ || (even_steps_ && i > 0))) {
      return labelled(period, x_[i], period.unit <= Unit::week ? times_[i] : start);
    }
    if (!inside || even_steps_) return std::nullopt;
  }
  if (!inside) return std::nullopt;
  const bool in_a_night =
      late > 0 && static_cast<double>(times_[i] - times_[i - 1]) > 1.5 * step_ms_;
  if (even_steps_ && in_a_night) return std::nullopt;
  return labelled(period, between(static_cast<double>(start)), start);
}

std::vector<TimeTick> TimeAxis::ticks_every(const Period& period) const {
  std::vector<TimeTick> ticks;
  for (std::int64_t start = period.floor(times_.front()); start <= times_.back();
       start = period.next(start)) {
    if (auto tick = tick_at(period, start)) ticks.push_back(std::move(*tick));
  }
  keep_changes_of_context(ticks);
  return ticks;
}

std::vector<TimeTick> TimeAxis::ticks(const LabelRoom& room) const {
  if (times_.empty()) return {};
  if (style_ == TimeStyle::index) return step_ticks(room);
  const double wanted = std::max(2.0, (x_.back() - x_.front()) / kTickDistance);
  const auto span = static_cast<double>(times_.back() - times_.front());
  for (const Period& period : periods()) {
    const double length = period.typical_ms();
    if (times_.size() < 2 || length < 0.9 * step_ms_ || span / length > 400) continue;
    if (style_ == TimeStyle::date && period.unit < Unit::day) continue;
    std::vector<TimeTick> ticks = ticks_every(period);
    if (static_cast<double>(ticks.size()) > wanted || !place_labels(ticks, room)) continue;
    if (ticks.size() >= 2) return ticks;
    break;
  }
  return end_ticks(room);
}

// Round step numbers.
std::vector<TimeTick> TimeAxis::step_ticks(const LabelRoom& room) const {
  const double wanted = std::max(2.0, (x_.back() - x_.front()) / kTickDistance);
  const std::int64_t span = times_.back() - times_.front();
  for (std::int64_t power = 1;; power *= 10) {
    for (const std::int64_t step : {power, 2 * power, 5 * power}) {
      const std::int64_t count = span / step;
      if (static_cast<double>(count) > wanted) continue;
      std::vector<TimeTick> ticks;
      const std::int64_t first = (times_.front() + step - 1) / step * step;
      for (std::int64_t at = first; at <= times_.back(); at += step) {
        TimeTick tick;
        tick.x = x_[static_cast<std::size_t>(at - times_.front())];
        tick.label = fmt::format("{}", at);
        ticks.push_back(std::move(tick));
      }
      if (!ticks.empty()) ticks.front().context = "step";
      if (place_labels(ticks, room)) return ticks;
    }
  }
}

// For what has no round times in it: the first step and, if there is room, the last.
std::vector<TimeTick> TimeAxis::end_ticks(const LabelRoom& room) const {
  std::vector<TimeTick> ticks;
  for (const std::size_t i : {std::size_t{0}, times_.size() - 1}) {
    TimeTick tick;
    tick.x = x_[i];
    const bool date = style_ == TimeStyle::date;
    tick.label = date ? format_date(times_[i]) : format_clock(times_[i], Unit::second);
    if (!date) tick.context = format_date(times_[i]);
    ticks.push_back(std::move(tick));
  }
  if (times_.size() == 1) ticks.pop_back();
  keep_changes_of_context(ticks);
  if (!place_labels(ticks, room)) {
    ticks.pop_back();
    place_labels(ticks, room);
  }
  return ticks;
}

}  // namespace toto::plot
