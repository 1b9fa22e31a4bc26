// SPDX-License-Identifier: Apache-2.0
// Periods and dates.
#include "tools/plot/calendar.h"

#include <gtest/gtest.h>

namespace toto::plot {
namespace {

constexpr std::int64_t kLeapDay = 1709164800000;  // 2024-02-29, a Thursday

TEST(Calendar, FloorsToPeriods) {
  const std::int64_t t = kLeapDay + 13 * kHour + 37 * kMinute + 11 * kSecond + 250;
  EXPECT_EQ((Period{Unit::minute, 15}.floor(t)), kLeapDay + 13 * kHour + 30 * kMinute);
  EXPECT_EQ((Period{Unit::hour, 6}.floor(t)), kLeapDay + 12 * kHour);
  EXPECT_EQ((Period{Unit::day, 1}.floor(t)), kLeapDay);
  EXPECT_EQ((Period{Unit::week, 1}.floor(t)), kLeapDay - 3 * kDay);
  EXPECT_EQ((Period{Unit::month, 1}.floor(t)), kLeapDay - 28 * kDay);
  EXPECT_EQ((Period{Unit::month, 3}.floor(t)), kLeapDay - 59 * kDay);
  EXPECT_EQ((Period{Unit::year, 1}.floor(t)), kLeapDay - 59 * kDay);
  EXPECT_EQ((Period{Unit::year, 10}.floor(t)), 1577836800000);  // 2020-01-01
}

TEST(Calendar, WorksBefore1970) {
  const std::int64_t t = -1;  // the last millisecond of 1969
  EXPECT_EQ((Period{Unit::day, 1}.floor(t)), -kDay);
  EXPECT_EQ((Period{Unit::month, 1}.floor(t)), -31 * kDay);
  EXPECT_EQ((Period{Unit::week, 1}.floor(t)), -3 * kDay);
  EXPECT_EQ((Period{Unit::year, 100}.floor(t)), -2208988800000);  // 1900-01-01
  EXPECT_EQ(format_date(t), "31 Dec 1969");
  EXPECT_EQ(format_clock(t, Unit::millisecond), "23:59:59.999");
}

TEST(Calendar, PeriodsTileTime) {
  for (const Period& period : periods()) {
    std::int64_t start = period.floor(kLeapDay + 12345678);
    for (int i = 0; i < 20; ++i) {
      const std::int64_t next = period.next(start);
      ASSERT_GT(next, start);
      EXPECT_EQ(period.floor(next), next);
      EXPECT_EQ(period.floor(next - 1), start);
      start = next;
    }
  }
  for (std::size_t i = 1; i < periods().size(); ++i) {
    EXPECT_GT(periods()[i].typical_ms(), periods()[i - 1].typical_ms());
  }
}

TEST(Calendar, Formats) {
  const std::int64_t t = kLeapDay + 5 * kHour + 4 * kMinute + 3 * kSecond + 2;
  EXPECT_EQ(format_year(t), "2024");
  EXPECT_EQ(format_quarter(t), "Q1");
  EXPECT_EQ(format_quarter(t + 300 * kDay), "Q4");
  EXPECT_EQ(format_month(t), "Feb");
  EXPECT_EQ(format_day(t), "29 Feb");
  EXPECT_EQ(format_date(t), "29 Feb 2024");
  EXPECT_EQ(format_clock(t, Unit::hour), "05:04");
  EXPECT_EQ(format_clock(t, Unit::second), "05:04:03");
  EXPECT_EQ(format_clock(t, Unit::millisecond), "05:04:03.002");
}

TEST(Calendar, KnowsItsLimits) {
  EXPECT_TRUE(in_calendar(0));
  EXPECT_EQ(format_date(-62135596800000), "1 Jan 1");
  EXPECT_TRUE(in_calendar(-62135596800000));
  EXPECT_FALSE(in_calendar(-62135596800001));
  EXPECT_EQ(format_date(253402300799999), "31 Dec 9999");
  EXPECT_TRUE(in_calendar(253402300799999));
  EXPECT_FALSE(in_calendar(253402300800000));
  EXPECT_FALSE(in_calendar(INT64_MIN));
  EXPECT_FALSE(in_calendar(INT64_MAX));
}

}  // namespace
}  // namespace toto::plot
