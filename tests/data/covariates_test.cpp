// SPDX-License-Identifier: Apache-2.0
// Covariates known ahead: matched to the series and shifted by a patch.
#include <gmock/gmock.h>

#include "read.h"

namespace toto::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Mask = std::vector<std::uint8_t>;

CovariateTable table(const std::string& text, const CsvOptions& options = {}) {
  std::istringstream in(text);
  return read_covariates(in, "future.csv", options);
}

Dataset joined(const std::string& main, const std::string& future, std::size_t horizon,
               std::size_t patch, Missing missing = Missing::ffill) {
  const CovariateTable covariates = table(future);
  CsvOptions options;
  options.missing = missing;
  options.covariates = covariates.columns;
  Dataset data = read(main, options);
  add_future(data, covariates, horizon, patch, missing);
  return data;
}

// The worked example of the covariate convention: patch 2, context 4, u = 10 ... 17.
TEST(Covariates, AreFedOnePatchEarly) {
  const std::vector<float> u = {10, 11, 12, 13, 14, 15, 16, 17};
  const ShiftedCovariates shifted = shift_covariates(u, Mask(8, 1), 1, 4, 4, 2);
  EXPECT_THAT(shifted.context, ElementsAre(12, 13, 14, 15));
  EXPECT_EQ(shifted.mask, (Mask{1, 1, 0, 0}));
  EXPECT_THAT(shifted.future, ElementsAre(16, 17, 0, 0));
}

TEST(Covariates, ShiftAtItsLimits) {
  const std::vector<float> u = {1, 2, 3, 4, 5, 10, 20, 30, 40, 50};
  Mask observed(10, 1);
  observed[3] = 0;
  // Two covariates, context 4, horizon 1, a patch as long as what is known ahead and more.
  const ShiftedCovariates one = shift_covariates(u, observed, 2, 4, 1, 1);
  EXPECT_THAT(one.context, ElementsAre(2, 3, 4, 5, 20, 30, 40, 50));
  EXPECT_EQ(one.mask, (Mask{1, 1, 0, 0, 1, 1, 1, 0}));  // u[3] was not observed
  EXPECT_THAT(one.future, ElementsAre(0, 0));
  const ShiftedCovariates far = shift_covariates(u, observed, 2, 4, 1, 3);
  EXPECT_THAT(far.context, ElementsAre(4, 5, 0, 0, 40, 50, 0, 0));
  EXPECT_EQ(far.mask, (Mask{0, 0, 0, 0, 1, 0, 0, 0}));
  const ShiftedCovariates beyond = shift_covariates(u, observed, 2, 4, 1, 64);
  EXPECT_THAT(beyond.context, ElementsAre(0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(beyond.mask, Mask(8, 0));
}

TEST(Covariates, PastInTheMainTable) {
  const Dataset data = joined("ds,y,u\n1,5,10\n2,6,11\n3,7,12\n4,8,13\n",
                              "ds,u\n5,14\n6,15\n7,16\n8,17\n9,18\n", 4, 2);
  ASSERT_EQ(data.series.size(), 1U);
  const TimeSeries& series = data.series[0];
  EXPECT_THAT(series.variates, ElementsAre("y", "u"));
  EXPECT_EQ(series.covariates, 1U);
  EXPECT_EQ(series.targets(), 1U);
  EXPECT_THAT(series.values, ElementsAre(5, 6, 7, 8, 12, 13, 14, 15));
  EXPECT_EQ(series.mask, (Mask{1, 1, 1, 1, 1, 1, 0, 0}));
  EXPECT_THAT(series.future_covariates, ElementsAre(16, 17, 0, 0));
  const Series view = series.view();
  EXPECT_EQ(view.variates, 2U);
  EXPECT_EQ(view.exogenous, 1U);
  EXPECT_THAT(view.future_exogenous, ElementsAre(16, 17, 0, 0));
}

TEST(Covariates, PastAndFutureInOneTable) {
  const Dataset data = joined("ds,y\n2020-01-01,5\n2020-01-02,6\n2020-01-04,8\n2020-01-05,9\n",
                              "ds,u\n2019-12-31,9\n2020-01-01,10\n2020-01-02,11\n2020-01-03,12\n"
                              "2020-01-04,13\n2020-01-05,14\n2020-01-06,15\n2020-01-07,16\n",
                              2, 1);
  const TimeSeries& series = data.series.at(0);
  EXPECT_THAT(series.values, ElementsAre(5, 6, 6, 8, 9, 11, 12, 13, 14, 15));
  EXPECT_EQ(series.mask, (Mask{1, 1, 0, 1, 1, 1, 1, 1, 1, 0}));
  EXPECT_THAT(series.future_covariates, ElementsAre(16, 0));
}

TEST(Covariates, TheMainTableGoesFirst) {
  const Dataset data =
      joined("ds,y,u\n1,5,10\n2,6,\n3,7,12\n", "ds,u\n1,-1\n2,-2\n3,-3\n4,13\n", 1, 1);
  EXPECT_THAT(data.series.at(0).values, ElementsAre(5, 6, 7, -2, 12, 13));
}

TEST(Covariates, EachSeriesHasItsOwn) {
  const std::string main =
      "unique_id,ds,y,u\na,1,1,1\na,2,1,2\nb,1,1,3\nb,2,1,4\nc,1,1,5\nc,2,1,6\n";
  const Dataset data = joined(main, "unique_id,ds,u\nb,3,30\na,3,20\n", 1, 1);
  ASSERT_EQ(data.series.size(), 2U);
  EXPECT_THAT(data.series[0].values, ElementsAre(1, 1, 2, 20));
  EXPECT_THAT(data.series[1].values, ElementsAre(1, 1, 4, 30));
  ASSERT_EQ(data.errors.size(), 1U);
  EXPECT_EQ(data.errors[0].id, "c");
  EXPECT_EQ(data.errors[0].error.code(), "missing_covariate");
  // Without ids they are for all.
  EXPECT_EQ(joined(main, "ds,u\n3,7\n", 1, 1).series.size(), 3U);
}

TEST(Covariates, WideSeriesShareThem) {
  const Dataset data = joined("ds,a,u,b\n1,1,10,3\n2,2,11,4\n", "ds,u\n3,12\n", 1, 1);
  ASSERT_EQ(data.series.size(), 2U);
  EXPECT_EQ(data.series[1].id, "b");
  EXPECT_THAT(data.series[1].values, ElementsAre(3, 4, 11, 12));
}

TEST(Covariates, AreOfAnyNameAndNumber) {
  // Bars and y are values like any other here; what is no number is left out.
  const CovariateTable covariates =
      table("unique_id,ds,y,open,high,low,close,note\nx,1,1,2,3,4,5,text\n");
  EXPECT_THAT(covariates.columns, ElementsAre("y", "open", "high", "low", "close"));
  EXPECT_THAT(covariates.warnings, ElementsAre(HasSubstr("note")));
  CsvOptions options;
  options.values = {"low", "no such column"};
  EXPECT_THAT(table("ds,open,high,low,close\n1,2,3,4,5\n", options).columns,
              ElementsAre("open", "high", "close"));
}

TEST(Covariates, OneFileMayHoldEverything) {
  const std::string text = "ds,y,u\n1,5,10\n2,6,11\n3,7,12\n4,,13\n5,,14\n";
  CsvOptions options;
  options.values = {"y"};
  const CovariateTable covariates = table(text, options);
  EXPECT_THAT(covariates.columns, ElementsAre("u"));
  options.covariates = covariates.columns;
  Dataset data = read("ds,y,u\n1,5,10\n2,6,11\n3,7,12\n", options);
  add_future(data, covariates, 2, 1);
  EXPECT_THAT(data.series.at(0).values, ElementsAre(5, 6, 7, 11, 12, 13));
  options = {};
  options.covariates = {"y", "u"};
  EXPECT_THAT(error_of(text, options), HasSubstr("no column left for values"));
}

TEST(Covariates, MissingValuesAreFilled) {
  const std::string main = "ds,y,u\n1,1,2\n2,1,\n3,1,6\n";
  const std::string future = "ds,u\n4,\n5,10\n";
  EXPECT_THAT(joined(main, future, 2, 1).series.at(0).values, ElementsAre(1, 1, 1, 2, 6, 6));
  EXPECT_EQ(joined(main, future, 2, 1).series.at(0).mask, (Mask{1, 1, 1, 0, 1, 0}));
  EXPECT_THAT(joined(main, future, 2, 1, Missing::linear).series.at(0).values,
              ElementsAre(1, 1, 1, 4, 6, 8));
  EXPECT_THAT(joined(main, future, 2, 1, Missing::zero).series.at(0).values,
              ElementsAre(1, 1, 1, 0, 6, 0));
  const Dataset refused = joined(main, future, 2, 1, Missing::error);
  ASSERT_EQ(refused.errors.size(), 1U);
  EXPECT_EQ(refused.errors[0].error.code(), "missing_value");
  EXPECT_THAT(refused.errors[0].error.what(), HasSubstr("no value of \"u\" at 2"));
}

TEST(Covariates, EveryStepAheadIsNeeded) {
  const std::string main = "ds,y,u\n2020-01-30,1,2\n2020-01-31,1,3\n";
  const Dataset data = joined(main, "ds,u\n2020-02-01,1\n2020-02-03,1\n", 3, 1);
  ASSERT_EQ(data.errors.size(), 1U);
  EXPECT_EQ(data.errors[0].error.code(), "missing_covariate");
  EXPECT_THAT(data.errors[0].error.what(),
              HasSubstr("no row for 2020-02-02, step 2 of the horizon"));
  EXPECT_THAT(data.series, IsEmpty());
}

TEST(Covariates, ThePastIsNeeded) {
  const Dataset data = joined("ds,y\n1,1\n2,1\n", "ds,u\n3,1\n", 1, 1);
  ASSERT_EQ(data.errors.size(), 1U);
  EXPECT_EQ(data.errors[0].error.code(), "missing_covariate");
  EXPECT_THAT(data.errors[0].error.what(), HasSubstr("no value of \"u\" at any step"));
}

TEST(Covariates, ZonesAndUnitsAreMatched) {
  const Dataset data = joined("ds,y\n2020-01-01T00:00Z,1\n2020-01-01T01:00Z,1\n",
                              "ds,u\n1577836800000,7\n1577840400000,8\n1577844000000,9\n", 1, 1);
  EXPECT_THAT(data.series.at(0).values, ElementsAre(1, 1, 8, 9));
}

// Offsets change with the season; the days of both tables begin at midnight all the same.
TEST(Covariates, DaysAreMatchedByTheClockOnTheWall) {
  const std::string main =
      "ds,y\n2024-03-30T00:00+01:00,1\n2024-03-31T00:00+01:00,2\n2024-04-01T00:00+02:00,3\n";
  const std::string future =
      "ds,u\n2024-03-30T00:00+01:00,5\n2024-03-31T00:00+01:00,6\n2024-04-01T00:00+02:00,7\n"
      "2024-04-02T00:00+02:00,8\n";
  EXPECT_EQ(joined(main, future, 1, 1).series.at(0).mask, (Mask{1, 1, 1, 1, 1, 0}));
  EXPECT_THAT(joined(main, future, 1, 1).series.at(0).values, ElementsAre(1, 2, 3, 6, 7, 8));
}

TEST(Covariates, AFewYearsMayBeAnIndex) {
  // 1 to 2010 is an index; 2011 alone looks like a year.
  std::string main = "ds,y\n";
  for (int i = 1; i <= 2010; ++i) main += std::to_string(i) + ",1\n";
  const Dataset index = joined(main, "ds,u\n2009,5\n2010,6\n2011,7\n", 1, 1);
  ASSERT_EQ(index.series.size(), 1U);
  EXPECT_EQ(index.series[0].values.back(), 7.0F);
  // 2199 and 2200 are years; 2199 to 2201 look like an index.
  const Dataset years = joined("ds,y\n2199,1\n2200,1\n", "ds,u\n2199,5\n2200,6\n2201,7\n", 1, 1);
  ASSERT_EQ(years.series.size(), 1U);
  EXPECT_THAT(years.series[0].values, ElementsAre(1, 1, 6, 7));
}

// The table of values is moved to whole minutes, and so is this one.
TEST(Covariates, AreMovedToTheGridOfTheSteps) {
  CsvOptions options;
  options.freq = "5min";
  std::string main = "ds,y\n";
  std::string future = "ds,u\n";
  for (int i = 0; i < 12; ++i) {
    const std::string time = "2024-01-01 00:" + std::string(i < 2 ? "0" : "") +
                             std::to_string(5 * i) + ":0" + std::to_string(i % 3) + ",";
    if (i < 10) main += time + "1\n";
    future += time + std::to_string(i) + "\n";
  }
  const CovariateTable covariates = table(future, options);
  options.covariates = covariates.columns;
  Dataset data = read(main, options);
  add_future(data, covariates, 2, 0);
  ASSERT_EQ(data.series.size(), 1U);
  EXPECT_THAT(data.series[0].future_covariates, ElementsAre(10, 11));
}

TEST(Covariates, RefuseWhatCannotBeMeant) {
  const CovariateTable covariates = table("ds,y\n3,1\n");
  Dataset data = read("ds,y\n1,1\n2,1\n");
  const auto code_of = [&](std::size_t horizon) -> std::string {
    try {
      add_future(data, covariates, horizon, 1);
      return "";
    } catch (const Error& error) {
      return error.code();
    }
  };
  EXPECT_EQ(code_of(0), "invalid_horizon");
  EXPECT_EQ(code_of(100'001), "invalid_horizon");
  EXPECT_EQ(code_of(1), "duplicate_column");
}

}  // namespace
}  // namespace toto::data
