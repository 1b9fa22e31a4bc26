// SPDX-License-Identifier: Apache-2.0
// Timestamps: forms, values, and the way back to text.
#include "data/timestamp.h"

#include <gtest/gtest.h>

#include "read.h"

namespace toto::data {
namespace {

using Form = TimeStyle::Form;
using Zone = TimeStyle::Zone;

struct Reading {
  std::vector<std::int64_t> times;
  TimeStyle style;
};

/// Reads a column; the series is as long as the first refusal lets it be.
Reading read_column(const std::vector<std::string>& texts) {
  TimeReader reader;
  Reading out;
  std::int64_t lowest = INT64_MAX, highest = INT64_MIN;
  for (const std::string& text : texts) {
    const auto stamp = reader.read(text);
    if (!stamp) break;
    out.times.push_back(stamp->time);
    lowest = std::min(lowest, stamp->time);
    highest = std::max(highest, stamp->time);
  }
  reader.finish(lowest, highest);
  for (std::int64_t& time : out.times) time = reader.convert(time);
  out.style = reader.style();
  return out;
}

TEST(Timestamp, ReadsEveryFormAndWritesItBack) {
  const struct {
    std::vector<std::string> texts;
    Form form;
    std::vector<std::int64_t> times;
  } cases[] = {
      {{"1970-01-01", "2000-02-29"}, Form::date, {0, 951782400000}},
      {{"0001-01-01", "9999-12-31"}, Form::date, {-62135596800000, 253402214400000}},
      {{"1969/12/31"}, Form::date, {-86400000}},
      {{"20200229", "20200301"}, Form::date, {1582934400000, 1583020800000}},
      {{"2020-02", "2020-03"}, Form::month, {1580515200000, 1583020800000}},
      {{"2020/02"}, Form::month, {1580515200000}},
      {{"202002", "202003"}, Form::month, {1580515200000, 1583020800000}},
      {{"1700", "2200"}, Form::year, {-8520336000000, 7258118400000}},
      {{"2020-01-01T00:00:00", "2020-01-01T23:59:59"},
       Form::datetime,
       {1577836800000, 1577923199000}},
      {{"2020-01-01 12:30"}, Form::datetime, {1577881800000}},
      {{"2010/01/01 00:00"}, Form::datetime, {1262304000000}},
      {{"2020-01-01T00:00:00Z"}, Form::datetime, {1577836800000}},
      {{"2020-01-01T00:00:00+05:30"}, Form::datetime, {1577817000000}},
      {{"2020-01-01 00:00:00-0800"}, Form::datetime, {1577865600000}},
      {{"2020-01-01 00:00:00+00"}, Form::datetime, {1577836800000}},
      {{"2020-01-01T00:00-03:30"}, Form::datetime, {1577849400000}},
      {{"2020-01-01T00:00:00.5"}, Form::datetime, {1577836800500}},
      {{"2020-01-01T00:00:00.123Z"}, Form::datetime, {1577836800123}},
      {{"2020-01-01T00:00:00.123000", "2020-01-01T00:00:00.124000"},
       Form::datetime,
       {1577836800123, 1577836800124}},
      {{"1577836800", "1577836860"}, Form::epoch, {1577836800000, 1577836860000}},
      {{"-1577836800"}, Form::epoch, {-1577836800000}},
      {{"1577836800.25"}, Form::epoch, {1577836800250}},
      {{"-1577836800.25"}, Form::epoch, {-1577836800250}},
      {{"1577836800000"}, Form::epoch, {1577836800000}},
      {{"1577836800001000"}, Form::epoch, {1577836800001}},
      {{"1577836800001000000"}, Form::epoch, {1577836800001}},
      {{"0", "100000000"}, Form::epoch, {0, 100000000000}},
      {{"0", "1", "2"}, Form::index, {0, 1, 2}},
      {{"-5", "7"}, Form::index, {-5, 7}},
      {{"1499", "2000"}, Form::index, {1499, 2000}},
      {{"2000", "2201"}, Form::index, {2000, 2201}},
      {{"123456", "123457"}, Form::index, {123456, 123457}},
      {{"99999999"}, Form::index, {99999999}},
  };
  for (const auto& c : cases) {
    const Reading reading = read_column(c.texts);
    EXPECT_EQ(reading.style.form, c.form) << c.texts[0];
    EXPECT_EQ(reading.times, c.times) << c.texts[0];
    EXPECT_EQ(texts_of(reading.times, reading.style), c.texts);
  }
}

TEST(Timestamp, ReadsWholeNumbersFromFloatingPoint) {
  const Reading years = read_column({"1700.0", "1701.00"});
  EXPECT_EQ(years.style.form, Form::year);
  EXPECT_EQ(texts_of(years.times, years.style), (std::vector<std::string>{"1700", "1701"}));
  const Reading epoch = read_column({"1577836800.0", "1577836800.5"});
  EXPECT_EQ(epoch.times, (std::vector<std::int64_t>{1577836800000, 1577836800500}));
}

TEST(Timestamp, KeepsWhatVaries) {
  const Reading fractions = read_column({"2020-01-01T00:00:00", "2020-01-01T00:00:00.25"});
  EXPECT_EQ(fractions.times.size(), 2U);
  EXPECT_EQ(fractions.style.fraction_digits, 2);
  EXPECT_EQ(format_time(fractions.times[0], fractions.style), "2020-01-01T00:00:00.00");
  const Reading summer = read_column({"2020-03-29T00:00+01:00", "2020-03-30T00:00+02:00"});
  EXPECT_EQ(summer.times[1] - summer.times[0], 23 * 3600 * 1000);
  EXPECT_EQ(summer.style.zone_offset_minutes, 120);
}

TEST(Timestamp, RefusesWhatIsNotOne) {
  for (const char* text : {"",
                           "yesterday",
                           "2020-13-01",
                           "2020-02-30",
                           "2019-02-29",
                           "2020-01-01T24:00",
                           "2020-01-01T00:60",
                           "2020-01-01T00:00:60",
                           "2020-01-01T00:00:00.",
                           "2020-01-01T00:00:00.1234567890",
                           "2020-01-01T00",
                           "2020-01-01T",
                           "2020-01-01X00:00",
                           "2020-01-01T00:00+15:00",
                           "2020-01-01T00:00+1",
                           "2020-01-01T00:00Zulu",
                           "2020-01/01",
                           "2020-",
                           "0000-01-01",
                           "1.5",
                           "12abc",
                           "4000000000000000001",
                           "9223372036854775808",
                           "-9223372036854775808",
                           "1e9",
                           "0x10"}) {
    EXPECT_FALSE(TimeReader().read(text).has_value()) << text;
  }
}

TEST(Timestamp, RefusesAnotherFormThanTheFirst) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"2020-01-01", "2020-01-02T00:00"},
      {"2020-01-01", "2020/01/02"},
      {"2020-01-01", "20200102"},
      {"2020-01", "2020-02-01"},
      {"2020-01-01T00:00", "2020-01-02 00:00"},
      {"2020-01-01T00:00", "2020-01-02T00:00Z"},
      {"2020-01-01T00:00Z", "2020-01-02T00:00+00:00"},
      {"20200101", "20200199"},
      {"20200101", "30200101"},
      {"202012", "202013"},
      {"1", "2020-01-01"},
      {"1", "1.5"},
      {"1577836800.5", "2020-01-01"},
  };
  for (const auto& [first, second] : cases) {
    TimeReader reader;
    EXPECT_TRUE(reader.read(first).has_value()) << first;
    EXPECT_FALSE(reader.read(second).has_value()) << second;
  }
}

TEST(Timestamp, OnlySeparatedDatesLookLikeTime) {
  for (const char* text : {"2020-01-01", "2020/01/01 00:00", "2020-01", " 2020-01-01T00:00Z "}) {
    EXPECT_TRUE(looks_like_time(text)) << text;
  }
  for (const char* text : {"20200101", "202001", "2020", "1.5", "", "abc", "-2020"}) {
    EXPECT_FALSE(looks_like_time(text)) << text;
  }
}

}  // namespace
}  // namespace toto::data
