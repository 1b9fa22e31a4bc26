// SPDX-License-Identifier: Apache-2.0
#include "data/buckets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "core/json.h"
#include "data/calendar.h"
#include "data/frequency.h"
#include "data/interval.h"

namespace toto::data {
namespace {

using Gather = Resample::Gather;
constexpr std::int64_t kMinuteMs = 60'000;

class Bucket {
 public:
  explicit Bucket(Gather gather) : gather_(gather) {}
  void add(float value) {
    if (std::isnan(value)) return;
    ++count_;
    sum_ += value;
    if (count_ == 1) first_ = lowest_ = highest_ = value;
    last_ = value;
    lowest_ = std::min(lowest_, value);
    highest_ = std::max(highest_, value);
  }
  [[nodiscard]] double sum() const { return sum_; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] float value() const {
    if (count_ == 0) return std::numeric_limits<float>::quiet_NaN();
    switch (gather_) {
      case Gather::mean:
        return static_cast<float>(sum_ / static_cast<double>(count_));
      case Gather::sum:
        return static_cast<float>(sum_);
      case Gather::last:
        return last_;
      case Gather::first:
        return first_;
      case Gather::max:
        return highest_;
      case Gather::min:
        return lowest_;
    }
    return 0.0F;
  }

 private:
  Gather gather_;
  std::size_t count_ = 0;
  double sum_ = 0.0;
  float first_ = 0.0F, last_ = 0.0F, lowest_ = 0.0F, highest_ = 0.0F;
};

/// Nine steps of ten from row to row are no longer.
std::int64_t long_step(std::span<const std::int64_t> times) {
  std::vector<std::int64_t> steps;
  for (std::size_t i = 1; i < times.size(); ++i) steps.push_back(times[i] - times[i - 1]);
  if (steps.empty()) return 0;
  const auto at = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() * 9 / 10);
  std::ranges::nth_element(steps, at);
  return *at;
}

/// Whether rows reach from the begin of the first step and to the end of the last one, to one and a
/// half of their own steps.
struct Whole {
  bool first = true, last = true;
};

Whole whole_ends(std::span<const std::int64_t> local, const Interval& step) {
  if (local.empty()) return {};
  const std::int64_t room = long_step(local) * 3 / 2;
  const std::int64_t begin = begin_of_step(local.front(), step);
  const std::int64_t end = advance(begin_of_step(local.back(), step), step, 1);
  return {local.front() - begin <= room, end - local.back() <= room};
}

/// Sums of values that are differences from an offset: they have an offset of their own, that of
/// the fullest step.
void sum_differences(std::span<const Bucket> all, std::size_t width, RowGroup& out) {
  for (std::size_t column = 0; column < width; ++column) {
    const double offset = out.value_offsets[column];
    std::size_t most = 0;
    for (std::size_t i = column; i < all.size(); i += width) most = std::max(most, all[i].count());
    const double sum = offset * static_cast<double>(most);
    const bool fits = std::abs(sum) <= std::numeric_limits<float>::max();
    out.value_offsets[column] = fits ? sum : 0.0;
    for (std::size_t i = column; offset != 0 && i < all.size(); i += width) {
      if (all[i].count() == 0) continue;
      const double whole = offset * static_cast<double>(all[i].count()) - out.value_offsets[column];
      out.values[i] = static_cast<float>(all[i].sum() + whole);
    }
  }
}

void drop_row(RowGroup& group, std::size_t width, std::size_t row) {
  const auto at = static_cast<std::ptrdiff_t>(row);
  const auto begin = group.values.begin() + at * static_cast<std::ptrdiff_t>(width);
  group.values.erase(begin, begin + static_cast<std::ptrdiff_t>(width));
  group.times.edit().erase(group.times.edit().begin() + at);
  if (!group.offsets.empty()) group.offsets.erase(group.offsets.begin() + at);
}

}  // namespace

Resample parse_resample(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, Gather>, 6> kWords = {{{"mean", Gather::mean},
                                                                          {"sum", Gather::sum},
                                                                          {"last", Gather::last},
                                                                          {"first", Gather::first},
                                                                          {"max", Gather::max},
                                                                          {"min", Gather::min}}};
  const std::size_t colon = text.find(':');
  Resample out;
  out.step = parse_frequency(std::string_view(text).substr(0, colon), "--resample");
  if (colon == std::string::npos) return out;
  const std::string_view word = std::string_view(text).substr(colon + 1);
  const auto* const found =
      std::ranges::find(kWords, word, &std::pair<std::string_view, Gather>::first);
  if (found == kWords.end()) {
    throw Error(ExitStatus::usage, "invalid_resample", quote(word) + " is no way to gather values",
                "--resample", "one of mean, sum, last, first, max, min: 5min:sum");
  }
  out.gather = found->second;
  return out;
}

std::int64_t begin_of_step(std::int64_t local, const Interval& step) {
  if (step.unit == Interval::Unit::milliseconds) {
    // Weeks begin on Mondays; 1970-01-01 was a Thursday.
    const std::int64_t origin = step.count % (7 * kDayMs) == 0 ? 4 * kDayMs : 0;
    return floor_div(local - origin, step.count) * step.count + origin;
  }
  const std::int64_t day = floor_div(local, kDayMs);
  if (step.unit == Interval::Unit::business_day) {
    return business_day(business_day_number(day)) * kDayMs;
  }
  const std::int64_t month = floor_div(month_number(date_of(day)), step.count) * step.count;
  const std::int64_t stamp = step.day == 1 ? month : month + step.count - 1;
  return day_of(date_in_month(stamp, step.day)) * kDayMs;
}

std::size_t gather_rows(RowGroup& group, std::size_t width, const Resample& resample) {
  const Interval& step = resample.step;
  const bool days = step.unit != Interval::Unit::milliseconds || step.count % kDayMs == 0;
  // Within days time runs on evenly, whatever the clock on the wall does.
  const auto offset_of = [&](std::size_t row) {
    if (group.offsets.empty()) return std::int64_t{0};
    return (days ? group.offsets[row] : group.offsets.back()) * kMinuteMs;
  };
  std::vector<std::int64_t> local(group.times);
  for (std::size_t row = 0; row < local.size(); ++row) local[row] += offset_of(row);
  RowGroup out;
  out.id = group.id;
  out.repeated = group.repeated;
  out.value_offsets = group.value_offsets;
  const bool sums = resample.gather == Gather::sum && !group.value_offsets.empty();
  std::vector<Bucket> all;  // of every step, where sums are to have an offset
  for (std::size_t row = 0; row < local.size();) {
    const std::int64_t begin = begin_of_step(local[row], step);
    const std::size_t first = row;
    std::vector<Bucket> buckets(width, Bucket(resample.gather));
    for (; row < local.size() && begin_of_step(local[row], step) == begin; ++row) {
      for (std::size_t i = 0; i < width; ++i) buckets[i].add(group.values[row * width + i]);
    }
    const std::int64_t time = begin - offset_of(first);
    // The day on which clocks are put back may begin twice; the later rows belong to it, too.
    if (!out.times.empty() && time <= out.times.back()) continue;
    out.times.edit().push_back(time);
    if (!group.offsets.empty()) {
      out.offsets.push_back(static_cast<std::int16_t>(offset_of(first) / kMinuteMs));
    }
    for (const Bucket& bucket : buckets) out.values.push_back(bucket.value());
    if (sums) all.insert(all.end(), buckets.begin(), buckets.end());
  }
  if (sums) sum_differences(all, width, out);
  const Whole whole = whole_ends(local, step);
  group = std::move(out);
  std::size_t dropped = 0;
  if (resample.gather != Gather::sum) return dropped;
  if (!whole.last && group.times.size() > 2) {
    drop_row(group, width, group.times.size() - 1);
    ++dropped;
  }
  if (!whole.first && group.times.size() > 2) {
    drop_row(group, width, 0);
    ++dropped;
  }
  return dropped;
}

}  // namespace toto::data
