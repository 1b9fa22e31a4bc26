// SPDX-License-Identifier: Apache-2.0
// From rows to series: gaps, missing values, the cut of the context, series that fail alone.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "read.h"

namespace toto::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Mask = std::vector<std::uint8_t>;

CsvOptions with(Missing missing, std::size_t context = 4096) {
  CsvOptions options;
  options.missing = missing;
  options.context = context;
  return options;
}

TEST(Series, MissingValuesAreFilled) {
  const std::string text = "ds,y\n1,\n2,1\n3,NaN\n4,null\n5,4\n6,-\n";
  const TimeSeries ffill = only(text);
  EXPECT_THAT(ffill.values, ElementsAre(1, 1, 1, 1, 4, 4));
  EXPECT_EQ(ffill.mask, (Mask{0, 1, 0, 0, 1, 0}));
  EXPECT_THAT(only(text, with(Missing::linear)).values, ElementsAre(1, 1, 2, 3, 4, 4));
  EXPECT_THAT(only(text, with(Missing::zero)).values, ElementsAre(0, 1, 0, 0, 4, 0));
  EXPECT_EQ(only(text, with(Missing::zero)).mask, ffill.mask);
}

TEST(Series, RowsThatAreMissingBecomeSteps) {
  const TimeSeries days = only("ds,y\n2020-02-28,1\n2020-02-29,2\n2020-03-03,5\n2020-03-04,6\n");
  EXPECT_EQ(texts_of(days.times, days.style),
            (std::vector<std::string>{"2020-02-28", "2020-02-29", "2020-03-01", "2020-03-02",
                                      "2020-03-03", "2020-03-04"}));
  EXPECT_THAT(days.values, ElementsAre(1, 2, 2, 2, 5, 6));
  EXPECT_EQ(days.mask, (Mask{1, 1, 0, 0, 1, 1}));

  const TimeSeries months =
      only("ds,y\n2019-12-31,1\n2020-01-31,2\n2020-03-31,4\n", with(Missing::linear));
  EXPECT_EQ(texts_of(months.times, months.style),
            (std::vector<std::string>{"2019-12-31", "2020-01-31", "2020-02-29", "2020-03-31"}));
  EXPECT_THAT(months.values, ElementsAre(1, 2, 3, 4));
}

TEST(Series, HolidaysAreNotSteps) {
  const Dataset data =
      read(table_of({"2019-12-30", "2019-12-31", "2020-01-02", "2020-01-03", "2020-01-06"}));
  EXPECT_EQ(data.series[0].steps, 5U);
  EXPECT_THAT(data.warnings, IsEmpty());
}

TEST(Series, MarketHoursAreConsecutive) {
  std::vector<std::string> times;
  for (const char* day : {"2020-01-06", "2020-01-07"}) {
    for (const char* clock : {" 15:00", " 15:15", " 15:30", " 15:45"}) {
      times.push_back(std::string(day) + clock);
    }
  }
  const Dataset data = read(table_of(times));
  EXPECT_EQ(data.series[0].steps, 8U);
  EXPECT_EQ(future_texts(data.series[0], 1).at(0), "2020-01-07 16:00");
  EXPECT_THAT(data.warnings, ElementsAre("dir/table.csv (15 minutes): more than half of the steps "
                                         "are missing; rows are taken as consecutive steps"));
}

TEST(Series, UnevenRowsAreConsecutive) {
  const Dataset data = read("id,ds,y\na,1,1\na,3,2\na,6,3\nb,1,1\nb,3,1\nb,6,1\nc,1,1\nc,2,1\n");
  EXPECT_EQ(data.series[0].steps, 3U);
  EXPECT_FALSE(data.series[0].interval.regular);
  EXPECT_TRUE(data.series[2].interval.regular);
  EXPECT_THAT(data.warnings,
              ElementsAre("series \"a\" (irregular (median 2 steps)): not evenly spaced; rows are "
                          "taken as consecutive steps (and 1 series more)"));
}

// A wild timestamp must not size anything.
TEST(Series, AGapOfMillenniaCostsNothing) {
  const TimeSeries series = only(
      "ds,y\n0001-01-01T00:00:00.000,1\n0001-01-01T00:00:00.001,2\n9999-01-01T00:00:00.000,3\n",
      with(Missing::ffill, 1'000'000'000));
  EXPECT_EQ(series.steps, 3U);
}

TEST(Series, TheContextIsCut) {
  const std::string text = "ds,y\n1,1\n2,2\n3,\n4,\n5,5\n6,6\n";
  const TimeSeries last = only(text, with(Missing::ffill, 2));
  EXPECT_THAT(last.times, ElementsAre(5, 6));
  EXPECT_THAT(last.values, ElementsAre(5, 6));
  // What was observed before the cut still fills what comes after it.
  EXPECT_THAT(only(text, with(Missing::ffill, 4)).values, ElementsAre(2, 2, 5, 6));
  EXPECT_THAT(only(text, with(Missing::ffill, 3)).values, ElementsAre(2, 5, 6));
  EXPECT_THAT(only(text, with(Missing::linear, 4)).values, ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(only(text, with(Missing::linear, 3)).values, ElementsAre(4, 5, 6));
  EXPECT_THAT(only(text, with(Missing::zero, 3)).values, ElementsAre(0, 5, 6));
  EXPECT_EQ(only(text, with(Missing::linear, 3)).mask, (Mask{0, 1, 1}));
  // The same where rows, not values, are missing.
  const std::string gap = "ds,y\n1,1\n2,2\n5,5\n6,6\n";
  EXPECT_THAT(only(gap, with(Missing::ffill, 3)).values, ElementsAre(2, 5, 6));
  EXPECT_THAT(only(gap, with(Missing::ffill, 3)).times, ElementsAre(4, 5, 6));
  EXPECT_THAT(only(gap, with(Missing::linear, 3)).values, ElementsAre(4, 5, 6));
  EXPECT_THAT(only(gap, with(Missing::linear, 4)).values, ElementsAre(3, 4, 5, 6));
}

// Every cut of a series is the end of the whole.
TEST(Series, ACutIsTheEndOfTheWhole) {
  const std::string text =
      "ds,a,b\n1,1,\n2,,7\n3,3,8\n6,,\n7,7,2\n8,,1\n9,2,\n11,4,4\n12,,\n13,1,\n";
  for (const Missing missing : {Missing::ffill, Missing::linear, Missing::zero}) {
    CsvOptions options = with(missing);
    options.joint = true;
    const TimeSeries whole = only(text, options);
    ASSERT_EQ(whole.steps, 13U);
    for (std::size_t context = 3; context <= 13; ++context) {
      options.context = context;
      const TimeSeries cut = only(text, options);
      ASSERT_EQ(cut.steps, context);
      for (std::size_t v = 0; v < 2; ++v) {
        for (std::size_t t = 0; t < context; ++t) {
          const std::size_t at = v * 13 + 13 - context + t;
          EXPECT_EQ(cut.values[v * context + t], whole.values[at])
              << context << " " << v << " " << t;
          EXPECT_EQ(cut.mask[v * context + t], whole.mask[at]);
        }
      }
    }
  }
}

// Case 30: a series that cannot be forecast fails alone.
TEST(Series, OthersGoOnWhenOneFails) {
  CsvOptions options;
  options.min_observations = 3;
  const Dataset data = read(
      "unique_id,ds,y\nok,1,1\nok,2,2\nok,3,3\nnone,1,\nnone,2,NaN\nfew,1,1\nfew,2,\nfew,3,3\n"
      "one,1,5\nalso,1,1\nalso,2,\nalso,3,3\nalso,4,4\n",
      options);
  ASSERT_EQ(data.series.size(), 2U);
  EXPECT_EQ(data.series[0].id, "ok");
  EXPECT_EQ(data.series[1].id, "also");
  ASSERT_EQ(data.errors.size(), 3U);
  EXPECT_EQ(data.errors[0].id, "none");
  EXPECT_EQ(data.errors[0].error.code(), "no_observations");
  EXPECT_EQ(data.errors[1].id, "few");
  EXPECT_EQ(data.errors[1].error.code(), "too_short");
  EXPECT_THAT(data.errors[1].error.what(), HasSubstr("2 observed values in the last 3 steps"));
  EXPECT_THAT(data.errors[1].error.where(), "dir/table.csv: series \"few\"");
  EXPECT_EQ(data.errors[2].id, "one");
  EXPECT_EQ(data.errors[2].error.code(), "too_short");
  EXPECT_EQ(data.errors[2].error.status(), ExitStatus::bad_data);
}

TEST(Series, OneRowHasNoStep) {
  const Dataset data = read("id,ds,y\na,1,1\nb,1,\n");
  ASSERT_EQ(data.errors.size(), 2U);
  EXPECT_EQ(data.errors[0].error.code(), "too_short");
  EXPECT_EQ(data.errors[1].error.code(), "no_observations");
  EXPECT_THAT(data.series, IsEmpty());
}

TEST(Series, TheContextEndsWithAnObservation) {
  const Dataset data = read("ds,a,b\n1,1,4\n2,2,5\n3,3,6\n4,,7\n5,,\n", with(Missing::ffill, 2));
  ASSERT_EQ(data.series.size(), 2U);
  EXPECT_THAT(data.series[0].values, ElementsAre(2, 3, 3, 3));
  EXPECT_THAT(data.series[0].mask, ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(data.series[0].times, ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(data.series[0].cut, 1U);
  EXPECT_THAT(data.series[1].values, ElementsAre(6, 7, 7));
  EXPECT_EQ(data.series[1].cut, 2U);
  EXPECT_THAT(future_times(data.series[0], 1), ElementsAre(6));
}

TEST(Series, AJointSeriesNeedsEveryVariate) {
  CsvOptions options;
  options.joint = true;
  const Dataset data = read("ds,a,b\n1,1,\n2,2,\n", options);
  ASSERT_EQ(data.errors.size(), 1U);
  EXPECT_EQ(data.errors[0].error.code(), "no_observations");
  EXPECT_THAT(data.errors[0].error.what(), HasSubstr("of \"b\""));
}

TEST(Series, MissingCanBeAnError) {
  const Dataset data = read(
      "id,ds,y\na,2020-01-01,1\na,2020-01-02,\nb,2020-01-01,1\nb,2020-01-02,2\n"
      "b,2020-01-04,2\n",
      with(Missing::error));
  ASSERT_EQ(data.errors.size(), 2U);
  EXPECT_EQ(data.errors[0].error.code(), "missing_value");
  EXPECT_THAT(data.errors[0].error.what(), HasSubstr("no value at 2020-01-02"));
  EXPECT_THAT(data.errors[1].error.what(), HasSubstr("no value at 2020-01-03"));  // a row
  EXPECT_EQ(only("ds,y\n1,\n2,2\n3,3\n", with(Missing::error, 2)).steps, 2U);     // cut away
}

TEST(Series, TheEngineSeesTheSeries) {
  CsvOptions options;
  options.joint = true;
  const TimeSeries series = only("ds,a,b\n1,1,2\n2,,4\n3,5,6\n", options);
  const Series view = series.view();
  EXPECT_EQ(view.id, "table");
  EXPECT_EQ(view.variates, 2U);
  EXPECT_EQ(view.steps, 3U);
  EXPECT_THAT(view.values, ElementsAre(1, 1, 5, 2, 4, 6));
  EXPECT_THAT(view.mask, ElementsAre(1, 0, 1, 1, 1, 1));
  EXPECT_EQ(view.exogenous, 0U);
  EXPECT_TRUE(view.groups.empty());
  EXPECT_TRUE(view.future_exogenous.empty());
}

TEST(Series, WhatFloat32CannotTellApartIsSaid) {
  std::string high = "ds,y\n", low = high, same = high;
  for (int i = 0; i < 40; ++i) {
    const double wave = 0.25 * (i % 5);
    high += fmt::format("{},{}\n", i, 10'000'000 + wave);
    low += fmt::format("{},{}\n", i, 1'000 + wave + 0.1);
    same += fmt::format("{},{}\n", i, 10'000'000.1);
  }
  EXPECT_THAT(read(high).warnings,
              testing::ElementsAre(testing::HasSubstr(
                  "\"y\" varies by 1 around 10000000.5, where float32 tells steps of 1 apart")));
  EXPECT_THAT(read(low).warnings, testing::IsEmpty());
  EXPECT_THAT(read(same).warnings, testing::IsEmpty());
}

}  // namespace
}  // namespace toto::data
