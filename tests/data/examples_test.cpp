// SPDX-License-Identifier: Apache-2.0
// The example series are read as what they are.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "read.h"
#include "support/paths.h"

namespace toto::data {
namespace {

using ::testing::ElementsAre;

const std::string kFolder = test::source_path("examples/data/");

TEST(Examples, Sunspots) {
  const Dataset data = read_csv(kFolder + "sunspots.csv");
  ASSERT_EQ(data.series.size(), 1U);
  const TimeSeries& series = data.series[0];
  EXPECT_EQ(series.id, "sunspots");
  EXPECT_EQ(series.steps, 3120U);
  EXPECT_EQ(describe(series.interval), "1 month");
  EXPECT_EQ(future_texts(series, 2), (std::vector<std::string>{"2009-01", "2009-02"}));
}

TEST(Examples, CarbonDioxide) {
  const Dataset data = read_csv(kFolder + "co2.csv");
  ASSERT_EQ(data.series.size(), 1U);
  const TimeSeries& series = data.series[0];
  EXPECT_EQ(series.id, "co2");
  EXPECT_EQ(series.steps, 2284U);
  EXPECT_EQ(std::ranges::count(series.mask, 0), 59);
  EXPECT_EQ(describe(series.interval), "1 week");
  EXPECT_EQ(future_texts(series, 1).at(0), "2002-01-05");
}

TEST(Examples, SeaSurface) {
  const TimeSeries series = read_csv(kFolder + "elnino.csv").series.at(0);
  EXPECT_EQ(series.steps, 732U);
  EXPECT_EQ(describe(series.interval), "1 month");
  EXPECT_EQ(future_texts(series, 1).at(0), "2011-01-01");
}

TEST(Examples, Weather) {
  const Dataset data = read_csv(kFolder + "seattle_weather.csv");
  ASSERT_EQ(data.series.size(), 4U);
  EXPECT_THAT(data.warnings, ElementsAre("column \"weather\" holds no numbers and is left out"));
  EXPECT_EQ(data.series[1].id, "temp_max");
  EXPECT_EQ(describe(data.series[1].interval), "1 day");
  CsvOptions options;
  options.joint = true;
  options.context = 365;
  const TimeSeries joint = read_csv(kFolder + "seattle_weather.csv", options).series.at(0);
  EXPECT_EQ(joint.id, "seattle_weather");
  EXPECT_EQ(joint.values.size(), 4U * 365U);
}

TEST(Examples, StandardInput) {
  constexpr std::string_view kText = "ds,a,b\n1,1,2\n2,3,4\n";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], kText.data(), kText.size()), static_cast<ssize_t>(kText.size()));
  close(ends[1]);
  const int before = dup(STDIN_FILENO);
  dup2(ends[0], STDIN_FILENO);
  CsvOptions options;
  options.joint = true;
  const Dataset data = read_csv("-", options);
  dup2(before, STDIN_FILENO);
  close(before);
  close(ends[0]);
  EXPECT_EQ(data.series.at(0).id, "stdin");
}

// The weather's own columns as what is known ahead: the last days of the table are the future.
TEST(Examples, CovariatesFromAFile) {
  CsvOptions targets;
  targets.values = {"temp_max", "temp_min"};
  const CovariateTable table = read_covariates(kFolder + "seattle_weather.csv", targets);
  std::istringstream in("date,temp_max\n2015-12-23,1\n2015-12-24,2\n2015-12-25,3\n");
  Dataset data = read_csv(in, "past.csv");
  add_future(data, table, 6, 2);
  const TimeSeries& series = data.series.at(0);
  EXPECT_THAT(series.variates, ElementsAre("temp_max", "precipitation", "wind"));
  EXPECT_EQ(series.future_covariates.size(), 12U);
  EXPECT_EQ(data.errors.size(), 0U);
  add_future(data, table, 7, 2);  // a day more than there is
  EXPECT_EQ(data.errors.at(0).error.code(), "missing_covariate");
}

}  // namespace
}  // namespace toto::data
