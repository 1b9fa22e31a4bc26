// SPDX-License-Identifier: Apache-2.0
// Tables with a series in each row: when they are taken for that, and what becomes of them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "read.h"

namespace toto::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

CsvOptions as_rows() {
  CsvOptions options;
  options.layout = Layout::rows;
  return options;
}

std::vector<std::string> ids_of(const Dataset& data) {
  std::vector<std::string> ids;
  for (const TimeSeries& series : data.series) ids.push_back(series.id);
  return ids;
}

std::string first_time(const TimeSeries& series) {
  return format_time(series.times.front(), series.style);
}

TEST(RowSeries, FormOfM4EndsWhereEachSeriesDoes) {
  const Dataset data = read(
      "\"V1\",\"V2\",\"V3\",\"V4\",\"V5\",\"V6\"\n\"Y1\",\"5172.1\",\"5133.5\",\"5186.9\",\"5084."
      "6\",\"5182\"\n"
      "\"Y2\",2070,2104,2394,,\n\"Y3\",2760,2980,3200,3450,\n");
  EXPECT_EQ(data.layout, Layout::rows);
  EXPECT_THAT(ids_of(data), ElementsAre("Y1", "Y2", "Y3"));
  EXPECT_THAT(data.series[0].values, ElementsAre(5172.1F, 5133.5F, 5186.9F, 5084.6F, 5182.0F));
  EXPECT_THAT(data.series[1].values, ElementsAre(2070.0F, 2104.0F, 2394.0F));
  EXPECT_THAT(future_texts(data.series[1], 2), ElementsAre("3", "4"));
  EXPECT_EQ(data.series[2].steps, 4U);
  EXPECT_THAT(data.warnings,
              ElementsAre(HasSubstr("\"V2\" to \"V6\""), HasSubstr("2 of 3 series")));
}

TEST(RowSeries, RowsMayBeShorterThanTheHeader) {
  const Dataset data = read("V1,V2,V3,V4,V5,V6\nH1,1,2,3,4,5\nH2,1,2\nH3,6,,8,9\n");
  EXPECT_THAT(ids_of(data), ElementsAre("H1", "H2", "H3"));
  EXPECT_EQ(data.series[1].steps, 2U);
  EXPECT_THAT(data.series[2].mask, ElementsAre(1, 0, 1, 1));
}

TEST(RowSeries, ColumnsMayBeCalledByTimes) {
  const Dataset data = read(
      "Page,2015-07-01,2015-07-02,2015-07-03,2015-07-04\n2NE1_zh,18.0,11.0,5.0,13.0\n"
      "\"AKB48, all\",,,3,\n");
  EXPECT_THAT(ids_of(data), ElementsAre("2NE1_zh", "AKB48, all"));
  EXPECT_EQ(first_time(data.series[0]), "2015-07-01");
  EXPECT_THAT(future_texts(data.series[0], 1), ElementsAre("2015-07-05"));
  // A day without a number is missing, also the last one.
  EXPECT_THAT(data.series[1].mask, ElementsAre(0, 0, 1, 0));
  EXPECT_EQ(data.reading.time_format, "YYYY-MM-DD");
}

TEST(RowSeries, NumberedStepsKeepTheirNumbers) {
  const Dataset data = read("id,store_id,d_1,d_2,d_3\nFOODS_1,CA,0,2,1\nFOODS_2,CA,4,4,4\n");
  EXPECT_THAT(ids_of(data), ElementsAre("FOODS_1", "FOODS_2"));
  EXPECT_THAT(data.series[0].times, ElementsAre(1, 2, 3));
}

TEST(RowSeries, YearsBesideNamesOfCountries) {
  const std::string head = "Data Source,Indicators,\n\nLast Updated,2023-12-18,\n\n";
  const Dataset data =
      read(head +
           "Country Name,Country Code,1960,1961,1962,\nAruba,ABW,54922,55578,56320,\n"
           "Africa,AFE,130072080,133534923,,\n");
  EXPECT_THAT(ids_of(data), ElementsAre("Aruba", "Africa"));
  EXPECT_THAT(future_texts(data.series[1], 1), ElementsAre("1963"));
  EXPECT_THAT(read("Country,X1960,X1961,X1962\nAruba,1,2,3\n").series[0].times,
              ElementsAre(-315'619'200'000, -283'996'800'000, -252'460'800'000));
  EXPECT_EQ(only("Country,1960 [YR1960],1961 [YR1961],1962 [YR1962]\nAruba,1,2,3\n").id, "Aruba");
}

TEST(RowSeries, MonthsFirstAndNewestFirst) {
  const TimeSeries series = only("State,Lat,1/24/20,1/23/20,1/22/20\nHubei,30.9,549,444,440\n");
  EXPECT_EQ(series.id, "Hubei");
  EXPECT_EQ(first_time(series), "1/22/20");
  EXPECT_THAT(series.values, ElementsAre(440.0F, 444.0F, 549.0F));
  EXPECT_THAT(error_of("State,1/2/20,1/3/20,1/4/20\nHubei,1,2,3\n"),
              StartsWith("ambiguous_timestamp"));
}

TEST(RowSeries, SeveralColumnsTellTheRowsApart) {
  const std::string days = ",2017-01-01,2017-01-02,2017-01-03\n";
  const Dataset data =
      read("Province,Country" + days + ",Peru,1,2,3\nHubei,China,4,5,6\nAnhui,China,7,8,9\n");
  EXPECT_THAT(ids_of(data), ElementsAre("Peru", "Hubei/China", "Anhui/China"));
  const Dataset stores = read("store_nbr,item_nbr" + days + "1,10,1,2,3\n1,11,4,5,6\n2,10,7,8,9\n");
  EXPECT_THAT(ids_of(stores), ElementsAre("1/10", "1/11", "2/10"));
  CsvOptions options;
  options.id = {"item_nbr"};
  EXPECT_THAT(error_of("store_nbr,item_nbr" + days + "1,10,1,2,3\n2,10,7,8,9\n", options),
              HasSubstr("ambiguous_id dir/table.csv:3:1"));
}

TEST(RowSeries, WithoutIds) {
  const Dataset data = read("t1,t2,t3,t4,t5\n1,2,3,4,5\n6,7,8,9,10\n");
  EXPECT_THAT(ids_of(data), ElementsAre("row1", "row2"));
  const Dataset dated = read("2024-01-01,2024-01-02,2024-01-03\n1,2,3\n6,7,8\n");
  EXPECT_THAT(ids_of(dated), ElementsAre("row1", "row2"));
}

TEST(RowSeries, WhatIsNotClearIsAnErrorThatNamesTheFlag) {
  // As many features as rows, all of one length.
  const std::string features = "V1,V2,V3,V4\na,1,2,3\nb,4,5,6\nc,7,8,9\n";
  EXPECT_THAT(error_of(features), StartsWith("ambiguous_layout"));
  EXPECT_THAT(ids_of(read(features, as_rows())), ElementsAre("a", "b", "c"));
  CsvOptions wide;
  wide.layout = Layout::wide;
  EXPECT_THAT(ids_of(read(features, wide)), ElementsAre("V2", "V3", "V4"));
  // Numbers beside dates: hours of the day, or a shop?
  EXPECT_THAT(error_of("he,2024-01-01,2024-01-02,2024-01-03\n1,1,2,3\n2,4,5,6\n"),
              StartsWith("ambiguous_layout"));
}

TEST(RowSeries, OrdinaryTablesStayWhatTheyAre) {
  const auto layout = [](const std::string& text) { return read(text).layout; };
  EXPECT_EQ(layout("date,v1,v2,v3\n2024-01-01,1,2,3\n2024-01-02,1,2,3\n"), Layout::wide);
  EXPECT_EQ(layout("month,1949,1950,1951\nJan,1,2,3\nFeb,4,5,6\n"), Layout::wide);
  EXPECT_EQ(layout("hour,2024-01-01,2024-01-02,2024-01-03\n0,1,2,3\n1,4,5,6\n"), Layout::wide);
  EXPECT_EQ(layout("V1,V2,V3\n1,2,3\n4,5,6\n7,8,9\n"), Layout::wide);
  EXPECT_EQ(layout("a,2024-01-01,2024-01-02,2024-01-03\nx,2024-01-05,1,2\n"), Layout::wide);
  EXPECT_EQ(layout("when,x1,x2,x3\na,1,2,3\nb,1,2,3\n"), Layout::wide);
}

TEST(RowSeries, ToldWithoutNamesThatSayAnything) {
  const Dataset bare = read("a,1.5,2,3\nb,4,5,6,7\n", as_rows());
  EXPECT_THAT(ids_of(bare), ElementsAre("a", "b"));
  EXPECT_THAT(bare.series[1].values, ElementsAre(4.0F, 5.0F, 6.0F, 7.0F));
  EXPECT_FALSE(bare.reading.has_header);
  const Dataset named = read("shop,jan,feb,mar\na,1,2,3\nb,4,5,6\n", as_rows());
  EXPECT_THAT(ids_of(named), ElementsAre("a", "b"));
  EXPECT_THAT(named.series[0].times, ElementsAre(0, 1, 2));
  CsvOptions conflict = as_rows();
  conflict.values = {"jan"};
  EXPECT_THROW(read("shop,jan,feb,mar\na,1,2,3\n", conflict), Error);
}

TEST(RowSeries, ErrorsNameTheirPlace) {
  const std::string head = "id,d_1,d_2,d_3\n";
  EXPECT_THAT(error_of(head + "a,1,2,3\nb,1,2,3,4\n"), HasSubstr("ragged_row dir/table.csv:3:9"));
  EXPECT_THAT(error_of(head + "a,1,2,3\na,1,2,3\n", as_rows()), HasSubstr("ambiguous_id"));
  EXPECT_THAT(error_of(head + "a,1,2,3\n,1,2,3\n", as_rows()),
              HasSubstr("missing_id dir/table.csv:3"));
  EXPECT_THAT(error_of(head + "a,1,2,3\nb,1,x,3\n", as_rows()),
              HasSubstr("not_a_number dir/table.csv:3:5: \"x\" in column \"d_2\""));
  EXPECT_THAT(error_of(head + "a,1,2,inf\n", as_rows()), HasSubstr("not_finite"));
  EXPECT_THAT(error_of("id,2024-01-01,2024-01-02,2024-01-01\na,1,2,3\n"),
              HasSubstr("duplicate_timestamp"));
}

TEST(RowSeries, RegularTimeWorksOnRows) {
  CsvOptions options;
  options.resample = "W:sum";
  std::string head = "id", one = "a";
  for (int day = 1; day <= 28; ++day) {
    head += fmt::format(",2024-01-{:02}", day);
    one += fmt::format(",{}", day);
  }
  const TimeSeries series = only(head + "\n" + one + "\n", options);
  EXPECT_THAT(series.values, ElementsAre(28.0F, 77.0F, 126.0F, 175.0F));
}

TEST(RowSeries, SemicolonsDecimalCommasAndUnits) {
  const Dataset data = read("id;t1;t2;t3\na;1,5;2,5;3,5\nb;1.234,5;7;8\n");
  EXPECT_THAT(data.series[1].values, ElementsAre(1234.5F, 7.0F, 8.0F));
}

}  // namespace
}  // namespace toto::data
