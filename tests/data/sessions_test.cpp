// SPDX-License-Identifier: Apache-2.0
// Market calendars: the holidays of New York, files, and times at which a market is open.
#include "data/sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/calendar.h"
#include "read.h"
#include "support/test_files.h"

namespace toto::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string text_of(std::int64_t day) {
  TimeStyle style;
  style.form = TimeStyle::Form::date;
  return format_time(day * kDayMs, style);
}

std::int64_t day(int year, unsigned month, unsigned of_month) {
  return day_of(std::chrono::year(year) / std::chrono::month(month) / std::chrono::day(of_month));
}

std::vector<std::string> weekdays_that(bool (*is)(std::int64_t), int year) {
  std::vector<std::string> out;
  for (std::int64_t at = day(year, 1, 1); at <= day(year, 12, 31); ++at) {
    if (weekday_of(at) < 5 && is(at)) out.push_back(text_of(at).substr(5));
  }
  return out;
}

/// As the exchange has published them (www.nyse.com/markets/hours-calendars).
TEST(Sessions, HolidaysOfNewYork) {
  EXPECT_THAT(
      weekdays_that(is_nyse_holiday, 2022),
      ElementsAre("01-17", "02-21", "04-15", "05-30", "06-20", "07-04", "09-05", "11-24", "12-26"));
  EXPECT_THAT(weekdays_that(is_nyse_holiday, 2023),
              ElementsAre("01-02", "01-16", "02-20", "04-07", "05-29", "06-19", "07-04", "09-04",
                          "11-23", "12-25"));
  EXPECT_THAT(weekdays_that(is_nyse_holiday, 2024),
              ElementsAre("01-01", "01-15", "02-19", "03-29", "05-27", "06-19", "07-04", "09-02",
                          "11-28", "12-25"));
  EXPECT_THAT(weekdays_that(is_nyse_holiday, 2026),
              ElementsAre("01-01", "01-19", "02-16", "04-03", "05-25", "06-19", "07-03", "09-07",
                          "11-26", "12-25"));
  EXPECT_THAT(weekdays_that(is_nyse_early_close, 2024), ElementsAre("07-03", "11-29", "12-24"));
  EXPECT_THAT(weekdays_that(is_nyse_early_close, 2026), ElementsAre("11-27", "12-24"));
}

TEST(Sessions, AFileSaysDaysHoursAndHolidays) {
  const Sessions open = Sessions::parse(
      "# Riyadh\ntimezone Asia/Riyadh\ndays Sun-Thu\nhours 10:00-15:00\nholiday 2024-02-22\r\n"
      "early 2024-02-21 12:30  # a half day\n",
      "riyadh.txt");
  EXPECT_EQ(open.timezone(), "Asia/Riyadh");
  EXPECT_FALSE(open.is_open(day(2024, 2, 23)));  // a Friday
  EXPECT_TRUE(open.is_open(day(2024, 2, 25)));   // a Sunday
  EXPECT_FALSE(open.is_open(day(2024, 2, 22)));
  EXPECT_EQ(open.opens(), 10 * 3'600'000);
  EXPECT_EQ(open.closes(day(2024, 2, 20)), 15 * 3'600'000);
  EXPECT_EQ(open.closes(day(2024, 2, 21)), 12 * 3'600'000 + 30 * 60'000);
}

TEST(Sessions, AFileThatIsNoneIsRefusedWithItsLine) {
  for (const char* bad : {"hello", "days Mon-Fro", "days", "hours 16:00-09:30", "hours 9:30-16:00",
                          "hours 09:30-25:00", "holiday 2024-02-30", "holiday", "early 2024-12-24",
                          "early 2024-12-24 13", "timezone"}) {
    try {
      (void)Sessions::parse(std::string("days Mon-Fri\n") + bad + "\n", "own.txt");
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "invalid_calendar");
      EXPECT_EQ(error.where(), "own.txt:2") << bad;
    }
  }
  EXPECT_THROW((void)Sessions::find("LSE"), Error);
  EXPECT_THROW((void)Sessions::find("./nowhere.txt"), Error);
}

std::vector<std::string> next_of(const std::string& text, const std::string& calendar,
                                 std::size_t horizon) {
  CsvOptions options;
  options.calendar = calendar;
  const TimeSeries series = read(text, options).series.at(0);
  std::vector<std::string> out;
  for (const std::int64_t time : future_times(series, horizon)) {
    out.push_back(format_time(time, series.style));
  }
  return out;
}

/// Rows of the weekdays from a date on, at these times.
std::string weekdays(std::int64_t first, int count, const std::vector<std::string>& clock) {
  std::string out = "ds,close\n";
  for (std::int64_t at = first; count > 0; ++at) {
    if (weekday_of(at) >= 5) continue;
    --count;
    for (const std::string& time : clock) {
      out += text_of(at) + time + "," + std::to_string(100 + at % 7) + "\n";
    }
  }
  return out;
}

TEST(Sessions, NoDayFallsOnAHoliday) {
  const std::string text = weekdays(day(2024, 12, 2), 16, {""});  // to December 23
  EXPECT_THAT(next_of(text, "NYSE", 6), ElementsAre("2024-12-24", "2024-12-26", "2024-12-27",
                                                    "2024-12-30", "2024-12-31", "2025-01-02"));
  EXPECT_THAT(next_of(text, "", 2), ElementsAre("2024-12-24", "2024-12-25"));
  EXPECT_THAT(next_of(weekdays(day(2024, 12, 2), 5, {""}), "24x7", 2),
              ElementsAre("2024-12-07", "2024-12-08"));
}

TEST(Sessions, HoursEndWithTheSession) {
  const std::string begin = weekdays(day(2024, 6, 24), 7,
                                     {" 09:30", " 10:30", " 11:30", " 12:30", " 13:30", " 14:30",
                                      " 15:30"});  // to July 2; the 3rd closes at one
  EXPECT_THAT(next_of(begin, "NYSE", 5),
              ElementsAre("2024-07-03 09:30", "2024-07-03 10:30", "2024-07-03 11:30",
                          "2024-07-03 12:30", "2024-07-05 09:30"));
  // Bars that are named by their end: that of one o'clock is there.
  const std::string end = weekdays(
      day(2024, 6, 24), 7, {" 10:00", " 11:00", " 12:00", " 13:00", " 14:00", " 15:00", " 16:00"});
  EXPECT_THAT(next_of(end, "NYSE", 5),
              ElementsAre("2024-07-03 10:00", "2024-07-03 11:00", "2024-07-03 12:00",
                          "2024-07-03 13:00", "2024-07-05 10:00"));
}

TEST(Sessions, HoursInUtcFollowTheClocksOfTheMarket) {
  // 9:30 in New York is 13:30 UTC until 2024-11-02, then 14:30.
  const std::string text = weekdays(day(2024, 10, 21), 10, {"T13:30:00Z", "T14:30:00Z"});
  EXPECT_THAT(next_of(text, "NYSE", 2),
              ElementsAre("2024-11-04T14:30:00Z", "2024-11-04T15:30:00Z"));
}

TEST(Sessions, ACalendarThatIsNeverOpenEndsInAnError) {
  std::string text = "days Mon\n";
  const test::TempFolder folder;
  const std::string path = folder.write("never.txt", text);
  const auto found = next_of(weekdays(day(9999, 12, 1), 16, {""}), path, 1);
  EXPECT_EQ(found, std::vector<std::string>{"9999-12-27"});
  try {
    (void)next_of(weekdays(day(9999, 12, 1), 16, {""}), path, 2);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "timestamp_overflow");
  }
}

}  // namespace
}  // namespace toto::data
