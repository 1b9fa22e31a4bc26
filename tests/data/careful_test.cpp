// SPDX-License-Identifier: Apache-2.0
// What a careful reader takes for what it is: codes for missing, months of years, limits, printed
// tables, rows of labels, lists in JSON, large numbers beside times.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "read.h"

namespace toto::data {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

CsvOptions with_missing(std::vector<std::string> words) {
  CsvOptions options;
  options.missing_values = std::move(words);
  return options;
}

TEST(MissingValues, WordsAndNumbersHoweverTheyAreWritten) {
  const std::string text =
      "ds,y\n2024-01-01,5\n2024-01-02,-9999.00\n2024-01-03,na2\n2024-01-04,-9998\n"
      "2024-01-05,-9.999e3\n2024-01-06,7\n";
  const TimeSeries series = only(text, with_missing({"-9999", "NA2"}));
  EXPECT_THAT(series.mask, ElementsAre(1, 0, 0, 1, 0, 1));
  EXPECT_EQ(series.values[3], -9998.0F);
  EXPECT_THAT(error_of(text), HasSubstr("\"na2\""));
}

TEST(MissingValues, InRowsAndInOtherDialects) {
  const Dataset rows =
      read("id,t1,t2,t3,t4\na,1,NA2,3,4\nb,1,2,-1,4\nc,5,6,7,8\n", with_missing({"NA2", "-1"}));
  ASSERT_EQ(rows.series.size(), 3U);
  EXPECT_THAT(rows.series[0].mask, ElementsAre(1, 0, 1, 1));
  EXPECT_THAT(rows.series[1].mask, ElementsAre(1, 1, 0, 1));
  const TimeSeries comma =
      only("ds;y\n2024-01-01;1,5\n2024-01-02;-9,9\n2024-01-03;2,5\n", with_missing({"-9.9"}));
  EXPECT_THAT(comma.mask, ElementsAre(1, 0, 1));
}

TEST(MissingValues, NoneTakesNoNumberThatIsNotNamed) {
  const std::string text = "ds,y\n2024-01-01,5\n2024-01-02,-9999\n2024-01-03,6\n";
  EXPECT_THAT(only(text).mask, ElementsAre(1, 0, 1));
  EXPECT_THAT(only(text, with_missing({"none"})).mask, ElementsAre(1, 1, 1));
  EXPECT_THAT(only(text, with_missing({"None", "6"})).mask, ElementsAre(1, 1, 0));
  const Dataset guessed = read(text);
  EXPECT_THAT(guessed.warnings, Contains(HasSubstr("(1 times)")));
}

TEST(MissingValues, AnEmptyWordIsAnError) {
  try {
    (void)read("ds,y\n1,2\n2,3\n", with_missing({"NA2", " "}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "invalid_missing_value");
    EXPECT_EQ(error.status(), ExitStatus::usage);
  }
}

TEST(Limits, AreRefusedWithTheWayOut) {
  const std::string text = "ds,y\n2024-01-01,<1\n2024-01-02,<1\n2024-01-03,> 5\n2024-01-04,2\n";
  EXPECT_THAT(error_of(text), StartsWith("not_a_number"));
  EXPECT_THAT(error_of(text), HasSubstr("a limit, not a value"));
  EXPECT_THAT(only(text, with_missing({"<1", "> 5"})).mask, ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(error_of("id,t1,t2,t3\na,1,2,<3\nb,1,2,3\n"), HasSubstr("a limit, not a value"));
}

TEST(ShortMonths, AreMonthsWhereTheyGoOnAsMonths) {
  EXPECT_EQ(describe(only(table_of({"Jan-18", "Feb-18", "Mar-18", "Apr-18"})).interval), "1 month");
  EXPECT_EQ(describe(only(table_of({"Oct-18", "Nov-18", "Dec-18", "Jan-19"})).interval), "1 month");
  EXPECT_EQ(describe(only(table_of({"Jan '18", "Feb '18", "Mar '18"})).interval), "1 month");
  EXPECT_EQ(future_texts(only(table_of({"Mar-19", "Feb-19", "Jan-19"})), 1)[0], "Apr-19");
  const TimeSeries quarters = only(table_of({"March-18", "June-18", "September-18"}));
  EXPECT_EQ(describe(quarters.interval), "3 months");
}

TEST(ShortMonths, MayBeDaysWhereTheyDoNot) {
  for (const auto& times : std::vector<std::vector<std::string>>{
           {"Jan-18", "Jan-19", "Jan-20"},     // or years
           {"Jan-30", "Jan-31", "Feb-01"},     // days over the end of a month
           {"Jan-07", "Jan-14", "Jan-21"},     // weeks
           {"Jan-31", "Feb-28", "Mar-31"},     // ends of months
           {"Nov-15", "Dec-15", "Jan-15"}}) {  // the fifteenths
    EXPECT_THAT(error_of(table_of(times)), StartsWith("ambiguous_timestamp")) << times[0];
    CsvOptions told;
    told.date_format = "%b-%y";
    if (times[0] == "Jan-18") {
      EXPECT_EQ(describe(only(table_of(times), told).interval), "1 year");
    }
  }
}

TEST(ShortMonths, AsColumns) {
  const Dataset data = read("id,Jan-18,Feb-18,Mar-18,Apr-18\na,1,2,3,4\nb,5,6,7,8\n");
  ASSERT_EQ(data.series.size(), 2U);
  EXPECT_EQ(describe(data.series[0].interval), "1 month");
  EXPECT_THAT(error_of("id,Jan-18,Jan-19,Jan-20,Jan-21\na,1,2,3,4\nb,5,6,7,8\n"),
              StartsWith("ambiguous_timestamp"));
}

TEST(PrintedTables, RulesAndOuterBarsAreNoData) {
  const std::string rows = "| 2024-01-01 | 1 |\n| 2024-01-02 |   |\n| 2024-01-03 | 3 |\n";
  for (const std::string& text : {"| ds | y |\n|----|--:|\n" + rows, "|ds|y|\n|:---|---:|\n" + rows,
                                  "+----+---+\n| ds | y |\n+----+---+\n" + rows + "+----+---+\n"}) {
    const TimeSeries series = only(text);
    EXPECT_EQ(series.id, "y");
    EXPECT_THAT(series.mask, ElementsAre(1, 0, 1)) << text;
  }
  const TimeSeries psql =
      only(" ds | y\n----+---\n 2024-01-01 | 1\n 2024-01-02 |\n 2024-01-03 | 3\n(3 rows)\n");
  EXPECT_THAT(psql.mask, ElementsAre(1, 0, 1));
  // Without a rule a bar at the end is what it was.
  EXPECT_THAT(only("ds|y|\n2024-01-01|1|\n2024-01-02|-|\n").mask, ElementsAre(1, 0));
}

TEST(LabelledRows, NameTheColumnsByWhatTellsThemApart) {
  const Dataset data = read(
      "Full label,a cpu,b cpu\nLabel,cpu,cpu\nPeriod,60,60\n"
      "2024/01/02 00:00:00,1,2\n2024/01/02 00:01:00,3,4\n");
  ASSERT_EQ(data.series.size(), 2U);
  EXPECT_EQ(data.series[0].id, "a cpu");
  const Dataset one =
      read("Label,cpu\nUnit,Percent\n2024/01/02 00:00:00,1\n2024/01/02 00:01:00,3\n");
  EXPECT_EQ(one.series.at(0).id, "cpu");
  // A column of labels is none of these.
  EXPECT_EQ(read("label,ds,y\na,2024-01-01,1\na,2024-01-02,2\nb,2024-01-01,3\nb,2024-01-02,4\n")
                .series.size(),
            2U);
}

TEST(JsonLists, TimesAndValuesOfOneLength) {
  const Dataset data = read(R"({"r":[{"Label":"a","Values":[1,null,3],)"
                            R"("Timestamps":["2024-01-01","2024-01-02","2024-01-03"]}]})");
  ASSERT_EQ(data.series.size(), 1U);
  EXPECT_EQ(data.series[0].id, "a");
  EXPECT_THAT(data.series[0].mask, ElementsAre(1, 0, 1));
  EXPECT_THAT(error_of(R"({"Values":[1,2],"Timestamps":["2024-01-01"]})"), StartsWith("no_rows"));
}

/// A column beside a second one, and the role that it is given.
std::string role_of(const std::string& name, const std::vector<std::int64_t>& values,
                    bool beside = true) {
  std::string text = name + (beside ? ",load\n" : "\n");
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += fmt::format("{}{}\n", values[i], beside ? fmt::format(",{}", i % 7) : "");
  }
  return read(text).reading.columns.at(0).role;
}

std::vector<std::int64_t> rising(std::int64_t from, const std::vector<std::int64_t>& steps) {
  std::vector<std::int64_t> out = {from};
  for (const std::int64_t step : steps) out.push_back(out.back() + step);
  return out;
}

TEST(LargeNumbers, AreTimesWhereTheyGoOnByEvenSteps) {
  const std::vector<std::int64_t> minutes(20, 60), days(20, 86'400);
  EXPECT_EQ(role_of("when", rising(1'700'000'000, minutes)), "time");
  EXPECT_EQ(role_of("when", rising(1'700'000'000, days)), "time");
  // In ms, some late, one missing; weekdays; months.
  EXPECT_EQ(role_of("when", rising(1'700'000'000'000, {15'000, 15'040, 14'960, 15'000, 30'010,
                                                       14'990, 15'000, 15'000, 15'020, 14'980})),
            "time");
  EXPECT_EQ(role_of("when", rising(1'704'067'200, {86'400, 86'400, 86'400, 86'400, 259'200, 86'400,
                                                   86'400, 86'400, 86'400, 259'200})),
            "time");
  std::vector<std::int64_t> months;
  for (const int length : {31, 29, 31, 30, 31, 30, 31, 31, 30}) months.push_back(length * 86'400);
  EXPECT_EQ(role_of("when", rising(1'704'067'200, months)), "time");
}

TEST(LargeNumbers, AreValuesWhereTheyRiseByWhatTheyLike) {
  std::vector<std::int64_t> bytes, orders(20, 1);
  for (std::int64_t i = 0; i < 40; ++i) bytes.push_back(1'000'000 + i * i * 7919 % 99'991);
  EXPECT_EQ(role_of("sent", rising(1'000'000'000'000, bytes)), "value");
  EXPECT_EQ(role_of("sent", rising(1'500'000'000, bytes)), "value");
  EXPECT_NE(role_of("order", rising(1'000'000'000'000, orders)), "time");
  EXPECT_EQ(role_of("y", rising(1'700'000'000, std::vector<std::int64_t>(20, 60))), "value");
  // The only numbers of a table are no times.
  EXPECT_EQ(role_of("sent", rising(1'000'000'000'000, bytes), false), "value");
}

TEST(LargeNumbers, ThatMayBeEitherAreNotForecastSilently) {
  std::string text = "event,load\n";
  std::int64_t at = 1'700'000'000;
  for (int i = 0; i < 20; ++i) text += fmt::format("{},{}\n", at += 1 + i * i * 31 % 97, i % 5);
  EXPECT_THAT(read(text).warnings, Contains(HasSubstr("\"event\" may hold times")));
  CsvOptions told;
  told.timestamp = "event";
  EXPECT_THAT(read(text, told).warnings, Not(Contains(HasSubstr("may hold times"))));
  EXPECT_EQ(read(text, told).series.size(), 1U);
}

/// A table of series in rows at their levels, one decimal each.
std::string rows_at(const std::vector<std::int64_t>& levels, std::size_t steps) {
  std::string text = "id";
  for (std::size_t t = 1; t <= steps; ++t) text += fmt::format(",d_{}", t);
  for (std::size_t r = 0; r < levels.size(); ++r) {
    text += fmt::format("\nrow{}", r);
    for (std::size_t t = 0; t < steps; ++t) {
      text += fmt::format(",{}.{}", levels[r] + static_cast<std::int64_t>(t * 7 % 5), t % 10);
    }
  }
  return text + "\n";
}

TEST(RowOffsets, EachRowKeepsItsDigits) {
  const std::vector<std::int64_t> levels = {5, 10'000'000, 1'000'000'000'000};
  const Dataset data = read(rows_at(levels, 40));
  ASSERT_EQ(data.series.size(), 3U);
  EXPECT_THAT(data.series[0].value_offsets, IsEmpty());
  for (std::size_t r = 1; r < 3; ++r) {
    const TimeSeries& series = data.series[r];
    ASSERT_EQ(series.value_offsets.size(), 1U) << r;
    for (std::size_t t = 0; t < 40; ++t) {
      const double exact =
          static_cast<double>(levels[r]) + static_cast<double>(t * 7 % 5) + double(t % 10) / 10;
      EXPECT_NEAR(series.value_offsets[0] + double{series.values[t]}, exact,
                  1e-5 + std::ldexp(exact, -52))
          << r << " " << t;
    }
  }
  EXPECT_THAT(data.warnings, Contains(HasSubstr("kept as differences from")));
}

TEST(RowOffsets, SwitchedOffTheRemedyIsTheFlag) {
  CsvOptions options;
  options.value_offset = false;
  const Dataset data = read(rows_at({1'000'000'000, 3}, 40), options);
  EXPECT_THAT(data.series[0].value_offsets, IsEmpty());
  EXPECT_THAT(data.warnings, Contains(HasSubstr("leave out --value-offset none")));
}

TEST(RowOffsets, ACodeForMissingTakesNoDigits) {
  std::string text = rows_at({10'000'000, 20'000'000}, 40);
  text.replace(text.find(",10000002.1") + 1, 10, "-9999");
  const Dataset data = read(text);
  ASSERT_EQ(data.series[0].value_offsets.size(), 1U);
  EXPECT_EQ(data.series[0].mask[1], 0);
  EXPECT_NEAR(data.series[0].value_offsets[0] + double{data.series[0].values[39]}, 10'000'003.9,
              1e-5);
}

}  // namespace
}  // namespace toto::data
