// SPDX-License-Identifier: Apache-2.0
// Round ticks for every kind of timestamps, placed at the data they name.
#include "tools/plot/time_axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "tools/plot/text.h"

namespace toto::plot {
namespace {

using std::chrono::sys_days;
using std::chrono::year;
using ::testing::ElementsAre;

std::int64_t date(int y, unsigned m, unsigned d) {
  return sys_days(year(y) / std::chrono::month(m) / std::chrono::day(d))
             .time_since_epoch()
             .count() *
         kDay;
}

std::vector<std::int64_t> every(std::int64_t start, std::int64_t step, std::size_t count) {
  std::vector<std::int64_t> times;
  for (std::size_t i = 0; i < count; ++i) {
    times.push_back(start + static_cast<std::int64_t>(i) * step);
  }
  return times;
}

// `count` months from the first of January on, each stamped by `stamp(year, month)`.
std::vector<std::int64_t> months(int first_year, int count,
                                 const std::function<std::int64_t(int, unsigned)>& stamp) {
  std::vector<std::int64_t> times;
  for (int i = 0; i < count; ++i) {
    times.push_back(stamp(first_year + i / 12, static_cast<unsigned>(i % 12) + 1));
  }
  return times;
}

std::int64_t month_end(int y, unsigned m) {
  return m == 12 ? date(y + 1, 1, 1) - kDay : date(y, m + 1, 1) - kDay;
}

std::vector<std::int64_t> business_days(std::int64_t start, std::size_t count) {
  std::vector<std::int64_t> times;
  for (std::int64_t day = start; times.size() < count; day += kDay) {
    const auto weekday = (day / kDay + 3) % 7;  // Monday is 0
    if (weekday < 5) times.push_back(day);
  }
  return times;
}

const LabelRoom kRoom{0, 900, 12};

TimeAxis axis_of(std::vector<std::int64_t> times, TimeStyle style = TimeStyle::date) {
  return {std::move(times), style, 40, 900};
}

std::vector<std::string> labels(const std::vector<TimeTick>& ticks) {
  std::vector<std::string> all;
  for (const TimeTick& tick : ticks) {
    all.push_back(tick.context.empty() ? tick.label : tick.label + "/" + tick.context);
  }
  return all;
}

std::vector<std::string> labels(const TimeAxis& axis) { return labels(axis.ticks(kRoom)); }

// The step that stands at x.
std::size_t step_at(const TimeAxis& axis, double x) {
  for (std::size_t i = 0; i < axis.size(); ++i) {
    if (std::abs(axis.x(i) - x) < 1e-6) return i;
  }
  ADD_FAILURE() << "no step at " << x;
  return 0;
}

void expect_sound(const std::vector<TimeTick>& ticks, double left, double right,
                  const LabelRoom& room) {
  ASSERT_FALSE(ticks.empty());
  const auto half = [&](const std::string& text) { return text_width(text, room.font_size) / 2; };
  double line1 = room.left - 10;
  double line2 = room.left - 10;
  double mark = left - 1;
  for (const TimeTick& tick : ticks) {
    EXPECT_GT(tick.x, mark);
    EXPECT_GE(tick.x, left - 1e-6);
    EXPECT_LE(tick.x, right + 1e-6);
    mark = tick.x;
    EXPECT_GE(tick.label_x - half(tick.label), line1 + 8);
    line1 = tick.label_x + half(tick.label);
    EXPECT_LE(line1, room.right + 1e-6);
    if (tick.context.empty()) continue;
    EXPECT_GE(tick.context_x - half(tick.context), line2 + 8);
    line2 = tick.context_x + half(tick.context);
    EXPECT_LE(line2, room.right + 1e-6);
  }
}

TEST(TimeAxis, AnyRegularSeriesHasSoundTicks) {
  for (const std::int64_t step :
       {std::int64_t{1}, std::int64_t{20}, kSecond, 15 * kSecond, kMinute, 5 * kMinute, kHour,
        6 * kHour, kDay, 7 * kDay, 30 * kDay, 91 * kDay, 365 * kDay}) {
    for (const std::size_t count : {1U, 2U, 3U, 7U, 40U, 333U, 3000U}) {
      for (const double right : {130.0, 330.0, 900.0}) {
        const std::int64_t start = -1'234'567'890'123 / step * step;
        const bool date_only = step % kDay == 0;
        const TimeAxis axis(every(start, step, count),
                            date_only ? TimeStyle::date : TimeStyle::time, 40, right);
        const LabelRoom room{0, right, 10};
        SCOPED_TRACE(testing::Message() << step << " ms x " << count << " to " << right);
        const auto ticks = axis.ticks(room);
        expect_sound(ticks, 40, right, room);
        EXPECT_LE(ticks.size(), 20U);
        if (right == 900 && count >= 40) {
          EXPECT_GE(ticks.size(), 3U) << labels(ticks).size();
        }
      }
    }
  }
}

TEST(TimeAxis, TimeRunsEvenly) {
  const TimeAxis axis = axis_of({0, kDay, 10 * kDay});
  EXPECT_EQ(axis.x(0), 40);
  EXPECT_EQ(axis.x(1), 40 + 86);
  EXPECT_EQ(axis.x(2), 900);
  EXPECT_EQ(axis_of({123 * kDay}).x(0), 470);
}

TEST(TimeAxis, NamesYearsQuartersMonthsDaysAndHours) {
  const auto first_of = [](int y, unsigned m) { return date(y, m, 1); };
  EXPECT_THAT(labels(axis_of(months(1996, 96, first_of))),
              ElementsAre("1996", "1997", "1998", "1999", "2000", "2001", "2002", "2003"));
  EXPECT_THAT(labels(axis_of(months(2023, 14, first_of))),
              ElementsAre("Jan/2023", "Mar", "May", "Jul", "Sep", "Nov", "Jan/2024"));
  EXPECT_THAT(labels(axis_of(every(date(2024, 3, 1), kDay, 20))),
              ElementsAre("2 Mar/2024", "4 Mar", "6 Mar", "8 Mar", "10 Mar", "12 Mar", "14 Mar",
                          "16 Mar", "18 Mar", "20 Mar"));
  std::vector<std::int64_t> from_february = months(2023, 15, first_of);
  from_february.erase(from_february.begin());
  EXPECT_THAT(labels(axis_of(from_february)),
              ElementsAre("Mar/2023", "May", "Jul", "Sep", "Nov", "Jan/2024", "Mar"));
  EXPECT_THAT(labels(axis_of(every(date(2024, 3, 1) + 20 * kHour, kMinute, 600), TimeStyle::time)),
              ElementsAre("20:00/1 Mar 2024", "21:00", "22:00", "23:00", "00:00/2 Mar 2024",
                          "01:00", "02:00", "03:00", "04:00", "05:00"));
  EXPECT_THAT(labels(axis_of(every(0, 10, 300), TimeStyle::time)),
              ElementsAre("00:00:00.000/1 Jan 1970", "00:00:00.500", "00:00:01.000", "00:00:01.500",
                          "00:00:02.000", "00:00:02.500"));
  std::vector<std::int64_t> quarters;
  for (int i = 0; i < 9; ++i) {
    quarters.push_back(month_end(2020 + i / 4, static_cast<unsigned>(i % 4) * 3 + 3));
  }
  EXPECT_THAT(labels(axis_of(quarters)),
              ElementsAre("Q1/2020", "Q2", "Q3", "Q4", "Q1/2021", "Q2", "Q3", "Q4", "Q1/2022"));
}

TEST(TimeAxis, SeriesOfDecadesAndCenturies) {
  std::vector<std::int64_t> years;
  for (int y = 1700; y <= 2030; ++y) years.push_back(date(y, 1, 1));
  EXPECT_THAT(labels(axis_of(years)),
              ElementsAre("1700", "1750", "1800", "1850", "1900", "1950", "2000"));
}

TEST(TimeAxis, PeriodsStampedAtTheirEndAreMarkedWhereTheyStand) {
  const TimeAxis monthly = axis_of(months(2023, 12, month_end));
  for (const TimeTick& tick : monthly.ticks(kRoom)) {
    const std::size_t step = step_at(monthly, tick.x);
    EXPECT_EQ(tick.label, format_month(monthly.time(step)));
  }
  std::vector<std::int64_t> years;
  for (int y = 1960; y <= 2010; ++y) years.push_back(date(y, 12, 31));
  const TimeAxis yearly = axis_of(years);
  const auto ticks = yearly.ticks(kRoom);
  EXPECT_GE(ticks.size(), 5U);
  for (const TimeTick& tick : ticks) {
    EXPECT_EQ(tick.label, format_year(yearly.time(step_at(yearly, tick.x))));
  }
}

TEST(TimeAxis, DailyDataStampedAtTheCloseKeepTheirDay) {
  const TimeAxis axis = axis_of(every(date(2024, 3, 1) + 21 * kHour, kDay, 9), TimeStyle::time);
  const auto ticks = axis.ticks(kRoom);
  EXPECT_EQ(ticks.size(), 9U);
  EXPECT_EQ(ticks.front().label, "1 Mar");
  EXPECT_EQ(ticks.front().x, axis.x(0));
}

TEST(TimeAxis, BusinessDaysAreEquallyWide) {
  const TimeAxis axis = axis_of(business_days(date(2024, 1, 2), 66));
  ASSERT_TRUE(axis.even_steps());
  for (std::size_t i = 1; i < axis.size(); ++i) {
    EXPECT_NEAR(axis.x(i) - axis.x(i - 1), 860.0 / 65, 1e-9);
  }
  const auto ticks = axis.ticks(kRoom);
  expect_sound(ticks, 40, 900, kRoom);
  for (const TimeTick& tick : ticks) {
    EXPECT_EQ(tick.label, format_day(axis.time(step_at(axis, tick.x))));
  }
}

TEST(TimeAxis, AMonthOfBusinessDaysBeginsAtItsFirstOne) {
  const TimeAxis axis = axis_of(business_days(date(2023, 12, 11), 250));
  const auto ticks = axis.ticks(kRoom);
  EXPECT_THAT(labels(ticks), ElementsAre("Jan/2024", "Feb", "Mar", "Apr", "May", "Jun", "Jul",
                                         "Aug", "Sep", "Oct", "Nov"));
  // 1 June 2024 is a Saturday.
  EXPECT_EQ(axis.time(step_at(axis, ticks[5].x)), date(2024, 6, 3));
}

TEST(TimeAxis, NightsOfAMarketTakeNoRoom) {
  std::vector<std::int64_t> times;
  for (const std::int64_t day : business_days(date(2024, 5, 20), 6)) {
    for (int bar = 0; bar < 78; ++bar) {
      times.push_back(day + 13 * kHour + 30 * kMinute + bar * 5 * kMinute);
    }
  }
  const TimeAxis axis = axis_of(times, TimeStyle::time);
  ASSERT_TRUE(axis.even_steps());
  const auto ticks = axis.ticks(kRoom);
  expect_sound(ticks, 40, 900, kRoom);
  for (const TimeTick& tick : ticks) {
    const std::int64_t time = axis.time(step_at(axis, tick.x));
    EXPECT_EQ(tick.label, format_clock(time, Unit::hour));
    EXPECT_EQ(time % kHour, 0);
  }
}

TEST(TimeAxis, RoundTheClockDataAndOutagesKeepRealTime) {
  EXPECT_FALSE(axis_of(every(0, kDay, 100)).even_steps());
  EXPECT_FALSE(axis_of(every(0, kHour, 1000), TimeStyle::time).even_steps());
  std::vector<std::int64_t> outage = every(0, kHour, 1000);
  outage.erase(outage.begin() + 300, outage.begin() + 400);
  EXPECT_FALSE(axis_of(outage, TimeStyle::time).even_steps());
  EXPECT_FALSE(axis_of(every(0, 7 * kDay, 100)).even_steps());
}

TEST(TimeAxis, StepsAreNumbered) {
  std::vector<std::int64_t> steps;
  for (std::int64_t i = 1234; i < 1334; ++i) steps.push_back(i);
  const TimeAxis axis = axis_of(steps, TimeStyle::index);
  EXPECT_THAT(labels(axis), ElementsAre("1240/step", "1250", "1260", "1270", "1280", "1290", "1300",
                                        "1310", "1320", "1330"));
  EXPECT_THAT(labels(axis_of({0}, TimeStyle::index)), ElementsAre("0/step"));
}

TEST(TimeAxis, OneTimestampIsWrittenOut) {
  EXPECT_THAT(labels(axis_of({date(2024, 3, 5)})), ElementsAre("5 Mar 2024"));
  EXPECT_THAT(labels(axis_of({date(2024, 3, 5) + kHour}, TimeStyle::time)),
              ElementsAre("01:00:00/5 Mar 2024"));
  EXPECT_TRUE(axis_of({}).ticks(kRoom).empty());
}

}  // namespace
}  // namespace toto::plot
