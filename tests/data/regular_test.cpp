// SPDX-License-Identifier: Apache-2.0
// Regular times: steps that are said, stamps that waver, rows gathered into steps, counters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "data/frequency.h"
#include "read.h"

namespace toto::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string stamp(std::int64_t ms) {
  TimeStyle style;
  style.form = TimeStyle::Form::datetime;
  style.fraction_digits = 3;
  return format_time(1'704'067'200'000 + ms, style);  // 2024-01-01, a Monday
}

std::string row(std::int64_t ms, double value) {
  return stamp(ms) + "," + std::to_string(value) + "\n";
}

CsvOptions asked(const std::string& freq, const std::string& resample = {}) {
  CsvOptions options;
  options.freq = freq;
  options.resample = resample;
  return options;
}

std::string error_code(const std::string& text, const CsvOptions& options) {
  try {
    (void)read(text, options);
  } catch (const Error& error) {
    return std::string(error.code());
  }
  return {};
}

/// The next two times, as they are written.
std::vector<std::string> next_of(const std::string& text, const std::string& freq) {
  const TimeSeries series = read(text, asked(freq)).series.at(0);
  std::vector<std::string> out;
  for (const std::int64_t time : future_times(series, 2)) {
    out.push_back(format_time(time, series.style));
  }
  return out;
}

TEST(Frequency, StepsThatTheTableCannotWriteAreWrittenLonger) {
  const std::string months = "m,y\n2024-01,1\n2024-02,2\n2024-03,3\n2024-04,1\n";
  EXPECT_THAT(next_of(months, "D"), ElementsAre("2024-04-02", "2024-04-03"));
  EXPECT_THAT(next_of(months, "12h"), ElementsAre("2024-04-01 12:00", "2024-04-02 00:00"));
  EXPECT_THAT(next_of(months, "MS"), ElementsAre("2024-05", "2024-06"));
  const std::string quarters = "q,y\n2023Q2,1\n2023Q3,2\n2023Q4,3\n2024Q1,1\n";
  EXPECT_THAT(next_of(quarters, "QS"), ElementsAre("2024Q2", "2024Q3"));
  EXPECT_THAT(next_of(quarters, "MS"), ElementsAre("2024-02-01", "2024-03-01"));
  EXPECT_THAT(next_of(quarters, "D"), ElementsAre("2024-01-02", "2024-01-03"));
  const std::string days = "d,y\n01.02.2024,1\n02.02.2024,2\n14.02.2024,3\n15.02.2024,1\n";
  EXPECT_THAT(next_of(days, "D"), ElementsAre("16.02.2024", "17.02.2024"));
  EXPECT_THAT(next_of(days, "6h"), ElementsAre("2024-02-15 06:00", "2024-02-15 12:00"));
}

TEST(Frequency, IsReadAsPandasWritesIt) {
  using Unit = Interval::Unit;
  const auto is = [](std::string_view text, Unit unit, std::int64_t count, int day = 1) {
    const Interval found = parse_frequency(text, "--freq");
    return found == Interval{unit, count, day, true};
  };
  EXPECT_TRUE(is("15s", Unit::milliseconds, 15'000));
  EXPECT_TRUE(is("5min", Unit::milliseconds, 300'000));
  EXPECT_TRUE(is("h", Unit::milliseconds, 3'600'000));
  EXPECT_TRUE(is("2D", Unit::milliseconds, 2 * 86'400'000));
  EXPECT_TRUE(is("W", Unit::milliseconds, 7 * 86'400'000));
  EXPECT_TRUE(is("B", Unit::business_day, 1));
  EXPECT_TRUE(is("MS", Unit::month, 1));
  EXPECT_TRUE(is("ME", Unit::month, 1, 31));
  EXPECT_TRUE(is("QS", Unit::month, 3));
  EXPECT_TRUE(is("YS", Unit::month, 12));
  for (const char* bad : {"", "0min", "-5min", "2B", "5 min", "1.5h", "fortnight", "99999999D"}) {
    EXPECT_THROW((void)parse_frequency(bad, "--freq"), Error) << bad;
  }
}

TEST(Regular, StampsThatWaverAreMovedWithANote) {
  std::string text = "ds,y\n";
  for (int i = 0; i < 40; ++i) {
    if (i == 17) continue;
    text += row(i * 15'000 + (i * 37) % 400, i);
  }
  const Dataset data = read(text);
  ASSERT_EQ(data.series.size(), 1U);
  const TimeSeries& series = data.series[0];
  EXPECT_EQ(series.steps, 40U);
  EXPECT_EQ(series.interval, (Interval{Interval::Unit::milliseconds, 15'000, 1, true}));
  EXPECT_EQ(series.mask[17], 0);
  EXPECT_EQ(series.times[39] - series.times[0], 39 * 15'000);
  EXPECT_EQ(series.times[0], 1'704'067'200'000);  // on the quarter of a minute, not beside it
  ASSERT_EQ(data.warnings.size(), 1U);
  EXPECT_THAT(data.warnings[0], HasSubstr("moved to steps of 15 seconds, by up to"));
}

TEST(Regular, WhatIsOnAGridOrFarFromOneStays) {
  std::string even = "ds,y\n", wild = "ds,y\n";
  std::int64_t at = 0;
  for (int i = 0; i < 40; ++i) {
    even += row(i * 15'000 + 250, i);
    at += 15'000 + (i % 3 - 1) * 9'000;
    wild += row(at, i);
  }
  const Dataset kept = read(even);
  EXPECT_EQ(kept.series[0].times[0], 1'704'067'200'250);
  EXPECT_THAT(kept.warnings, testing::IsEmpty());
  const Dataset far = read(wild);
  for (const std::string& warning : far.warnings)
    EXPECT_THAT(warning, testing::Not(HasSubstr("moved")));
}

TEST(Regular, AStepThatIsSaidMakesGapsAndMovesRows) {
  std::string text = "ds,y\n";
  for (const int second : {0, 61, 119, 300, 420}) text += row(second * 1000, second);
  const Dataset data = read(text, asked("1min"));
  const TimeSeries& series = data.series[0];
  EXPECT_EQ(series.steps, 8U);
  EXPECT_THAT(series.mask, ElementsAre(1, 1, 1, 0, 0, 1, 0, 1));
  EXPECT_EQ(series.times[1], 1'704'067'200'000 + 60'000);
  EXPECT_THAT(data.warnings, ElementsAre(HasSubstr("steps of 1 minute, by up to 1000 ms")));
}

TEST(Regular, MonthsAreMovedToTheirBeginOrEnd) {
  const std::string text = "ds,y\n2024-01-15,1\n2024-02-13,2\n2024-04-16,4\n";
  const TimeSeries begin = read(text, asked("MS")).series[0];
  EXPECT_THAT(begin.mask, ElementsAre(1, 1, 0, 1));
  EXPECT_EQ(format_time(begin.times[3], begin.style), "2024-04-01");
  EXPECT_EQ(format_time(future_times(begin, 1)[0], begin.style), "2024-05-01");
  const TimeSeries end = read(text, asked("ME")).series[0];
  EXPECT_EQ(format_time(end.times[1], end.style), "2024-02-29");
}

/// The next step of four rows, with `options`.
std::string next(const std::vector<std::string>& times, const CsvOptions& options) {
  const TimeSeries series = only(table_of(times), options);
  return future_texts(series, 2)[1];
}

TEST(Regular, FinerStepsAreWrittenToTheFinestPart) {
  const std::vector<std::string> minutes = {"2024-03-31 00:00", "2024-03-31 00:30",
                                            "2024-03-31 01:00", "2024-03-31 01:30"};
  EXPECT_EQ(next(minutes, asked("15s")), "2024-03-31 01:30:30");
  EXPECT_EQ(next(minutes, asked("", "20s:last")), "2024-03-31 01:30:40");
  EXPECT_EQ(next({"1700000000", "1700000001", "1700000002"}, asked("500ms")), "1700000003.000");
  EXPECT_EQ(next(minutes, asked("10min")), "2024-03-31 01:50");
  const std::vector<std::string> days = {"2024/01/01", "2024/01/02", "2024/01/03"};
  EXPECT_EQ(next(days, asked("6h")), "2024/01/03 12:00");
  EXPECT_EQ(next(days, asked("2D")), "2024/01/07");
  const std::vector<std::string> german = {"30.12.2023", "31.12.2023", "01.01.2024"};
  EXPECT_EQ(next(german, asked("12h")), "2024-01-02 00:00");
  EXPECT_EQ(next(german, asked("D")), "03.01.2024");
  const std::vector<std::string> quarters = {"2023Q3", "2023Q4", "2024Q1"};
  EXPECT_EQ(next(quarters, asked("MS")), "2024-03-01");
  EXPECT_EQ(next(quarters, asked("QS")), "2024Q3");
  const std::vector<std::string> seconds = {"2024-01-01 00:00:00", "2024-01-01 00:00:01",
                                            "2024-01-01 00:00:02"};
  EXPECT_EQ(next(seconds, asked("250ms")), "2024-01-01 00:00:02.500");
}

TEST(Regular, RowsAreGathered) {
  std::string text = "ds,y\n";
  for (const auto& [second, value] : std::vector<std::pair<int, double>>{
           {0, 1}, {20, 2}, {40, 6}, {60, 4}, {80, 5}, {100, 7}, {180, 9}, {200, 8}, {239, 3}}) {
    text += row(second * 1000, value);
  }
  const auto values = [&](const std::string& how) {
    const TimeSeries series = read(text, asked("", how)).series[0];
    EXPECT_THAT(series.mask, ElementsAre(1, 1, 0, 1)) << how;
    return std::vector<float>{series.values[0], series.values[1], series.values[3]};
  };
  EXPECT_THAT(values("1min"), ElementsAre(3, 16.0F / 3, 20.0F / 3));
  EXPECT_THAT(values("1min:sum"), ElementsAre(9, 16, 20));
  EXPECT_THAT(values("1min:first"), ElementsAre(1, 4, 9));
  EXPECT_THAT(values("1min:last"), ElementsAre(6, 7, 3));
  EXPECT_THAT(values("1min:max"), ElementsAre(6, 7, 9));
  EXPECT_THAT(values("1min:min"), ElementsAre(1, 4, 3));
}

TEST(Regular, SumsOfStepsThatAreNotWholeAreLeftOut) {
  std::string text = "ds,y\n";
  for (int second = 90; second < 360; second += 10) text += row(second * 1000, 1);
  text += row(360'000, 1);  // one row of the last minute
  const Dataset data = read(text, asked("", "1min:sum"));
  EXPECT_THAT(data.series[0].values, ElementsAre(6, 6, 6, 6));
  EXPECT_EQ(data.series[0].times[0], 1'704'067'200'000 + 120'000);
  EXPECT_THAT(data.warnings, ElementsAre(HasSubstr("2 first and last steps are not whole")));
}

TEST(Regular, RowsOfOneTimeMayBeGatheredInAnyOrder) {
  const std::string text = "ds,y\n" + row(70'000, 5) + row(10'000, 1) + row(10'000, 3) +
                           row(130'000, 7) + row(70'000, 9);
  EXPECT_EQ(error_code(text, {}), "duplicate_timestamp");
  EXPECT_THAT(read(text, asked("", "1min")).series[0].values, ElementsAre(2, 7, 7));
}

TEST(Regular, DaysAreThoseOfTheClockOnTheWall) {
  CsvOptions options = asked("", "1D:sum");
  options.timezone = "Europe/Berlin";
  std::string text = "ds,y\n";
  // Clocks go forward on 2024-03-31: that day has 23 hours.
  for (int day = 29; day <= 31; ++day) {
    for (int hour = 0; hour < 24; ++hour) {
      if (day == 31 && hour == 2) continue;
      text += "2024-03-" + std::to_string(day) + " " + (hour < 10 ? "0" : "") +
              std::to_string(hour) + ":00,1\n";
    }
  }
  EXPECT_THAT(read(text, options).series[0].values, ElementsAre(24, 24, 23));
}

TEST(Regular, CountersAreRatesAndBeginAnew) {
  CsvOptions options;
  options.rate = true;
  // Near 1e12 a float has steps of 65,536: differences are those of the digits in the file.
  const Dataset data = read(
      "ds,requests\n2024-01-01T00:00:00,1000000000000\n"
      "2024-01-01T00:00:10,1000000000030\n"
      "2024-01-01T00:00:20,1000000000090\n"
      "2024-01-01T00:00:30,50\n2024-01-01T00:00:40,60\n",
      options);
  EXPECT_THAT(data.series[0].values, ElementsAre(3, 6, 5, 1));
  EXPECT_THAT(data.warnings, ElementsAre(HasSubstr("counters fell 1 times")));
}

TEST(Regular, WhatCannotBeIsRefused) {
  const std::string rows = "ds,y\n" + row(0, 1) + row(60'000, 2) + row(120'000, 3);
  EXPECT_EQ(error_code(rows, asked("often")), "invalid_frequency");
  EXPECT_EQ(error_code(rows, asked("", "1min:median")), "invalid_resample");
  EXPECT_EQ(error_code(rows, asked("1min", "1min")), "conflicting_flags");
  EXPECT_EQ(error_code(rows, asked("1h")), "frequency_mismatch");
  EXPECT_EQ(error_code("ds,y\n1,1\n2,2\n", asked("1h")), "frequency_mismatch");
  EXPECT_EQ(error_code("ds,y\n1990-01-01,1\n2020-01-01,2\n", asked("1s")), "frequency_mismatch");
}

}  // namespace
}  // namespace toto::data
