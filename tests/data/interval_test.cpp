// SPDX-License-Identifier: Apache-2.0
// The step between timestamps: inferred, described and continued.
#include "data/interval.h"

#include <gtest/gtest.h>

#include <chrono>

#include "data/calendar.h"
#include "read.h"

namespace toto::data {
namespace {

using Texts = std::vector<std::string>;

struct Case {
  Texts times;
  std::string interval;
  Texts future;
};

void check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const TimeSeries series = only(table_of(c.times));
    EXPECT_EQ(describe(series.interval), c.interval) << c.times[0];
    EXPECT_EQ(future_texts(series, c.future.size()), c.future) << c.times[0];
    for (std::size_t i = 1; i < series.times.size(); ++i) {
      EXPECT_LT(series.times[i - 1], series.times[i]) << c.times[0];
    }
    EXPECT_EQ(format_time(series.times.back(), series.style), c.times.back());
  }
}

TEST(Interval, FixedSteps) {
  check({
      {{"2020-01-01T00:00:00.000", "2020-01-01T00:00:00.250"},
       "250 milliseconds",
       {"2020-01-01T00:00:00.500", "2020-01-01T00:00:00.750", "2020-01-01T00:00:01.000"}},
      {{"2020-02-28T23:59:58", "2020-02-28T23:59:59"},
       "1 second",
       {"2020-02-29T00:00:00", "2020-02-29T00:00:01"}},
      {{"2020-01-01 00:00:00", "2020-01-01 00:00:15", "2020-01-01 00:00:30"},
       "15 seconds",
       {"2020-01-01 00:00:45", "2020-01-01 00:01:00"}},
      {{"2020-01-01 00:00", "2020-01-01 00:01"}, "1 minute", {"2020-01-01 00:02"}},
      {{"2020-12-31 23:30", "2020-12-31 23:45"},
       "15 minutes",
       {"2021-01-01 00:00", "2021-01-01 00:15"}},
      {{"2020-02-28T22:00Z", "2020-02-28T23:00Z"}, "1 hour", {"2020-02-29T00:00Z"}},
      {{"2021-02-28T22:00+09:00", "2021-02-28T23:00+09:00"},
       "1 hour",
       {"2021-03-01T00:00+09:00", "2021-03-01T01:00+09:00"}},
      {{"2020-01-01T00:00+0530", "2020-01-01T06:00+0530"}, "6 hours", {"2020-01-01T12:00+0530"}},
      {{"2020-02-27", "2020-02-28"}, "1 day", {"2020-02-29", "2020-03-01"}},
      {{"20210227", "20210228"}, "1 day", {"20210301"}},
      {{"2100/02/27", "2100/02/28"}, "1 day", {"2100/03/01"}},  // not a leap year
      {{"2020-01-04", "2020-01-11", "2020-01-18"}, "1 week", {"2020-01-25", "2020-02-01"}},
      {{"2019-12-02", "2019-12-16"}, "2 weeks", {"2019-12-30", "2020-01-13"}},
      {{"1577836800", "1577836860"}, "1 minute", {"1577836920"}},
      {{"1577836800000", "1577836800100"}, "100 milliseconds", {"1577836800200"}},
      {{"1577836800.5", "1577836801.0"}, "500 milliseconds", {"1577836801.5", "1577836802.0"}},
      {{"1577836800000000000", "1577840400000000000"}, "1 hour", {"1577844000000000000"}},
      {{"0", "1", "2"}, "1 step", {"3", "4"}},
      {{"10", "20", "30"}, "10 steps", {"40"}},
      {{"-30", "-20", "-10"}, "10 steps", {"0", "10"}},
  });
}

TEST(Interval, MonthsQuartersYears) {
  check({
      {{"2019-11-01", "2019-12-01"}, "1 month", {"2020-01-01", "2020-02-01", "2020-03-01"}},
      {{"2021-02-01", "2021-03-01"}, "1 month", {"2021-04-01"}},  // 28 days, and not 4 weeks
      {{"2019-12-31", "2020-01-31"},
       "1 month, at the end of the month",
       {"2020-02-29", "2020-03-31", "2020-04-30"}},
      {{"2021-02-28", "2021-03-31"}, "1 month, at the end of the month", {"2021-04-30"}},
      {{"2020-04-30", "2020-05-31"}, "1 month, at the end of the month", {"2020-06-30"}},
      {{"2020-01-15", "2020-02-15"}, "1 month", {"2020-03-15"}},
      {{"2021-01-30", "2021-02-28", "2021-03-30"}, "1 month", {"2021-04-30", "2021-05-30"}},
      {{"2020-01", "2020-02"}, "1 month", {"2020-03", "2020-04"}},
      {{"202011", "202012"}, "1 month", {"202101"}},
      {{"2020-01-01", "2020-04-01"}, "3 months", {"2020-07-01", "2020-10-01", "2021-01-01"}},
      {{"2020-03-31", "2020-06-30"},
       "3 months, at the end of the month",
       {"2020-09-30", "2020-12-31"}},
      {{"1998", "1999"}, "1 year", {"2000", "2001"}},
      {{"1990", "2000"}, "10 years", {"2010"}},
      {{"2018-07-01", "2019-07-01"}, "1 year", {"2020-07-01"}},
      {{"2020-02-29", "2021-02-28"},
       "1 year, at the end of the month",
       {"2022-02-28", "2023-02-28", "2024-02-29"}},
      {{"2019-12-31T22:00:00-02:00", "2020-01-31T22:00:00-02:00"},
       "1 month, at the end of the month",
       {"2020-02-29T22:00:00-02:00"}},
      {{"2020-01-01T00:00:00+01:00", "2020-02-01T00:00:00+01:00"},  // December and January in UTC
       "1 month",
       {"2020-03-01T00:00:00+01:00"}},
  });
}

TEST(Interval, BusinessDays) {
  check({
      {{"2020-01-02", "2020-01-03", "2020-01-06", "2020-01-07"},
       "business days",
       {"2020-01-08", "2020-01-09", "2020-01-10", "2020-01-13"}},
      {{"2019-12-30", "2019-12-31", "2020-01-02", "2020-01-03", "2020-01-06"},  // a holiday
       "business days",
       {"2020-01-07"}},
      {{"2020-04-08", "2020-04-09", "2020-04-14", "2020-04-15", "2020-04-16", "2020-04-17"},
       "business days",
       {"2020-04-20", "2020-04-21"}},
      {{"2020-01-02 16:00", "2020-01-03 16:00", "2020-01-06 16:00"},
       "business days",
       {"2020-01-07 16:00"}},
      // Monday to Friday, but no weekend to tell: every day.
      {{"2020-01-06", "2020-01-07", "2020-01-08", "2020-01-09", "2020-01-10"},
       "1 day",
       {"2020-01-11"}},
  });
}

// Offsets that change with the season: the wall clock counts for days, UTC for hours.
TEST(Interval, ZonesWithSummerTime) {
  check({
      {{"2024-03-07 00:00:00-05:00", "2024-03-08 00:00:00-05:00", "2024-03-11 00:00:00-04:00",
        "2024-03-12 00:00:00-04:00"},
       "business days",
       {"2024-03-13 00:00:00-04:00"}},
      {{"2024-03-30T00:00+01:00", "2024-03-31T00:00+01:00", "2024-04-01T00:00+02:00"},
       "1 day",
       {"2024-04-02T00:00+02:00"}},
      {{"2024-03-31T01:00+01:00", "2024-03-31T03:00+02:00", "2024-03-31T04:00+02:00"},
       "1 hour",
       {"2024-03-31T05:00+02:00"}},
      {{"2024-10-27T02:00+02:00", "2024-10-27T02:00+01:00", "2024-10-27T03:00+01:00"},
       "1 hour",
       {"2024-10-27T04:00+01:00"}},
      {{"2024-02-01T00:00+01:00", "2024-03-01T00:00+01:00", "2024-04-01T00:00+02:00"},
       "1 month",
       {"2024-05-01T00:00+02:00"}},
  });
}

TEST(Interval, GapsInTheData) {
  check({
      {{"2020-01-01", "2020-01-02", "2020-01-05", "2020-01-06"}, "1 day", {"2020-01-07"}},
      {{"2020-01-01 00:00", "2020-01-01 01:00", "2020-01-01 05:00", "2020-01-01 06:00"},
       "1 hour",
       {"2020-01-01 07:00"}},
      {{"2020-01-31", "2020-02-29", "2020-05-31", "2020-06-30"},
       "1 month, at the end of the month",
       {"2020-07-31"}},
      {{"2000", "2001", "2003", "2004"}, "1 year", {"2005"}},
      {{"1", "2", "5", "6"}, "1 step", {"7"}},
  });
}

TEST(Interval, IrregularData) {
  check({
      {{"2020-01-01T00:00:00", "2020-01-01T00:00:03", "2020-01-01T00:00:05", "2020-01-01T00:00:09"},
       "irregular (median 3 seconds)",
       {"2020-01-01T00:00:12", "2020-01-01T00:00:15"}},
      {{"2020-01", "2020-03", "2020-06", "2020-08", "2020-10"},
       "irregular (median 2 months)",
       {"2020-12", "2021-02"}},
      {{"1", "3", "6"}, "irregular (median 2 steps)", {"8"}},
  });
}

TEST(Interval, AWeekendSessionIsNoNewWeek) {
  Texts times;
  const auto start = day_of(std::chrono::year(2019) / 1 / 7);  // a Monday
  for (int day = 0; day < 140; ++day) {
    if (weekday_of(start + day) < 5 || day == 61) {
      times.push_back(format_time((start + day) * kDayMs, {.form = TimeStyle::Form::date}));
    }
  }
  EXPECT_EQ(describe(only(table_of(times)).interval), "business days");
  times.resize(46);  // one Saturday in 46 rows
  EXPECT_EQ(describe(only(table_of(times)).interval), "1 day");
}

// Steps over every day of 2,000 years agree with a calendar that walks.
TEST(Interval, TheCalendarHolds) {
  int weekday = 3;  // 1970-01-01
  std::int64_t business = business_day_number(0);
  for (std::int64_t day = 0; day < 730'000; ++day, weekday = (weekday + 1) % 7) {
    ASSERT_EQ(weekday_of(day), weekday);
    if (weekday < 5) {
      ASSERT_EQ(business_day_number(day), business);
      ASSERT_EQ(business_day(business), day);
      ++business;
    } else {
      ASSERT_EQ(business_day_number(day), business - 1);
    }
    ASSERT_EQ(weekday_of(-day), (7 + 3 - static_cast<int>(day % 7)) % 7);
  }
  EXPECT_EQ(date_in_month(24241, 31), std::chrono::year(2020) / 2 / 29);
  EXPECT_EQ(date_in_month(24229, 30), std::chrono::year(2019) / 2 / 28);
  EXPECT_EQ(month_number(std::chrono::year(2020) / 2 / 29), 24241);
}

TEST(Interval, TheFutureHasAnEnd) {
  const auto code_of = [](const Texts& times, std::size_t horizon) -> std::string {
    try {
      (void)future_times(only(table_of(times)), horizon);
      return "";
    } catch (const Error& error) {
      return error.code();
    }
  };
  EXPECT_EQ(code_of({"9999-12-29", "9999-12-30"}, 1), "");
  EXPECT_EQ(code_of({"9999-12-29", "9999-12-30"}, 2), "timestamp_overflow");
  EXPECT_EQ(code_of({"2020-01-01", "2021-01-01"}, 7978), "");
  EXPECT_EQ(code_of({"2020-01-01", "2021-01-01"}, 7979), "timestamp_overflow");
  EXPECT_EQ(code_of({"2000", "2001"}, 100'000), "timestamp_overflow");
  EXPECT_EQ(code_of({"9999-12-30", "9999-12-31"}, 100'000), "timestamp_overflow");
  EXPECT_EQ(code_of({"-99999999", "99999999"}, 100'000), "");
  EXPECT_EQ(code_of({"-99999999999", "99999999999"}, 100'000), "timestamp_overflow");
  EXPECT_EQ(code_of({"1577836800000000000", "4000000000000000000"}, 3), "timestamp_overflow");
  EXPECT_EQ(code_of({"1577836800000000000", "4000000000000000000"}, 2), "");
  EXPECT_EQ(code_of({"0001-01-01", "9999-01-01"}, 1), "timestamp_overflow");
}

}  // namespace
}  // namespace toto::data
