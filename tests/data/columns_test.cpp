// SPDX-License-Identifier: Apache-2.0
// Layouts and columns: found by name, by look, or as told; and the ids that follow from them.
#include <gmock/gmock.h>

#include "read.h"

namespace toto::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> ids_of(const Dataset& data) {
  std::vector<std::string> ids;
  for (const TimeSeries& series : data.series) ids.push_back(series.id);
  return ids;
}

/// Two rows under a header; the values count up from 1.
Dataset read_rows(const std::string& header, const std::string& first, const std::string& second,
                  const CsvOptions& options = {}) {
  return read(header + "\n" + first + "\n" + second + "\n", options);
}

TEST(Columns, WideTakesEveryColumnOfNumbers) {
  const Dataset data =
      read_rows("date,load,weather,temp,", "2020-01-01,1,rain,2,", "2020-01-02,3,sun,4,");
  EXPECT_EQ(data.layout, Layout::wide);
  EXPECT_THAT(ids_of(data), ElementsAre("load", "temp"));
  EXPECT_THAT(data.series[1].values, ElementsAre(2.0F, 4.0F));
  EXPECT_THAT(data.warnings, ElementsAre(HasSubstr("\"weather\"")));
  EXPECT_TRUE(data.series[0].group.empty());
}

TEST(Columns, RatesOfExchangeAreNoMonths) {
  // January of 4976 and December of 2012, if these were dates.
  const Dataset data =
      read_rows("ds,eurusd,usdsek", "2020-01-01,1.4976,12.2012", "2020-01-02,1.5925,11.2012");
  EXPECT_THAT(ids_of(data), ElementsAre("eurusd", "usdsek"));
  EXPECT_THAT(data.series[0].values, ElementsAre(1.4976F, 1.5925F));
  // Written as months are, they are months.
  const Dataset months = read("begins,y\n09.2019,1\n10.2019,2\n11.2019,3\n12.2019,4\n");
  EXPECT_THAT(ids_of(months), ElementsAre("y"));
  EXPECT_THAT(months.series[0].style.pattern, "%m.%Y");
}

TEST(Columns, WideKeepsIdsWhateverElseIsInTheTable) {
  EXPECT_THAT(ids_of(read_rows("ds,y", "1,1", "2,2")), ElementsAre("y"));
  EXPECT_THAT(ids_of(read_rows("ds,y,z", "1,1,1", "2,2,2")), ElementsAre("y", "z"));
}

TEST(Columns, TimestampsAreFoundByName) {
  for (const char* name : {"ds",   "DS",        "date",       "Datetime", "time",  "timestamp",
                           "TS",   "open_time", "Open Time",  "openTime", "month", "week",
                           "year", "index",     "period",     "quarter",  "day",   "hour",
                           "step", "unix",      "Unnamed: 0", " ds "}) {
    const Dataset data = read_rows("v," + std::string(name), "5,1", "6,2");
    ASSERT_THAT(ids_of(data), ElementsAre("v")) << name;
    EXPECT_THAT(data.series[0].times, ElementsAre(1, 2)) << name;
    EXPECT_THAT(data.warnings, IsEmpty());
  }
}

TEST(Columns, AFirstColumnWithoutNameIsAnIndex) {
  const Dataset data = read_rows(",v", "2020-01,5", "2020-02,6");
  EXPECT_THAT(ids_of(data), ElementsAre("v"));
  EXPECT_EQ(describe(data.series[0].interval), "1 month");
}

TEST(Columns, TheBestNameWins) {
  const Dataset data = read_rows("year,month,date,v", "2020,1,2020-01-01,1", "2020,1,2020-01-02,2");
  ASSERT_THAT(ids_of(data), ElementsAre("v"));  // parts of the date are no series
  EXPECT_EQ(format_time(data.series[0].times[1], data.series[0].style), "2020-01-02");
  EXPECT_EQ(data.warnings.size(), 2U);
}

TEST(Columns, TimestampsAreFoundByLook) {
  const Dataset data = read_rows("v,observed_at", "1,2020-01-01 00:00", "2,2020-01-01 01:00");
  EXPECT_THAT(ids_of(data), ElementsAre("v"));
  EXPECT_EQ(describe(data.series[0].interval), "1 hour");
}

TEST(Columns, WithoutTimestampsRowsAreNumbered) {
  const Dataset data = read("v\n5\n6\n\n7\n");
  EXPECT_THAT(data.series[0].times, ElementsAre(0, 1, 2));
  EXPECT_THAT(future_times(data.series[0], 2), ElementsAre(3, 4));
  EXPECT_THAT(data.warnings, ElementsAre(HasSubstr("numbered")));
}

TEST(Columns, LongHasOneSeriesAnId) {
  for (const char* name :
       {"unique_id", "id", "item_id", "symbol", "Ticker", "series", "series_id"}) {
    const Dataset data =
        read(std::string(name) + ",ds,y,price\na,1,1,9\nb,1,2,9\na,2,3,9\nb,2,4,9\n");
    EXPECT_EQ(data.layout, Layout::long_format);
    ASSERT_THAT(ids_of(data), ElementsAre("a", "b")) << name;
    EXPECT_THAT(data.series[0].values, ElementsAre(1, 3));
    EXPECT_THAT(data.series[1].values, ElementsAre(2, 4));
    EXPECT_EQ(data.series[1].group, "b");
  }
}

TEST(Columns, LongWithSeveralValues) {
  const std::string text = "id,ds,temp,load,place\na,1,1,2,x\na,2,3,4,x\n";
  EXPECT_THAT(ids_of(read(text)), ElementsAre("a/temp", "a/load"));
  CsvOptions options;
  options.joint = true;
  const Dataset joint = read(text, options);
  ASSERT_THAT(ids_of(joint), ElementsAre("a"));
  EXPECT_THAT(joint.series[0].variates, ElementsAre("temp", "load"));
  EXPECT_THAT(joint.series[0].values, ElementsAre(1, 3, 2, 4));
  options = {};
  options.values = {"load"};
  EXPECT_THAT(ids_of(read(text, options)), ElementsAre("a"));
}

TEST(Columns, BarsInAnyCaseAndOrder) {
  const Dataset data = read_rows("Volume,CLOSE,Low,High,Open,Date", "9,1.5,1,2,1,2020-01-02",
                                 "9,1.6,1,2,1,2020-01-03");
  EXPECT_EQ(data.layout, Layout::bars);
  EXPECT_THAT(ids_of(data), ElementsAre("table"));
  EXPECT_THAT(data.series[0].variates, ElementsAre("CLOSE"));
  EXPECT_THAT(data.series[0].values, ElementsAre(1.5F, 1.6F));
}

TEST(Columns, BarsOfSeveralColumnsAndSymbols) {
  const std::string text =
      "timestamp,open,high,low,close,volume,symbol\n"
      "1577836800,1,2,3,4,5,IBM\n1577836800,1,2,3,14,15,MSFT\n"
      "1577923200,1,2,3,6,7,IBM\n1577923200,1,2,3,16,17,MSFT\n";
  const Dataset data = read(text);
  EXPECT_EQ(data.layout, Layout::bars);
  EXPECT_THAT(ids_of(data), ElementsAre("IBM", "MSFT"));
  EXPECT_THAT(data.series[1].values, ElementsAre(14, 16));
  CsvOptions options;
  options.values = {"close", "Volume"};
  EXPECT_THAT(ids_of(read(text, options)),
              ElementsAre("IBM/close", "IBM/volume", "MSFT/close", "MSFT/volume"));
  options.joint = true;
  EXPECT_THAT(ids_of(read(text, options)), ElementsAre("IBM", "MSFT"));

  const std::string one = "timestamp,open,high,low,close,volume\n1,1,2,3,4,5\n2,1,2,3,4,5\n";
  EXPECT_THAT(ids_of(read(one, options)), ElementsAre("table"));
  options.joint = false;
  EXPECT_THAT(ids_of(read(one, options)), ElementsAre("table/close", "table/volume"));
  options = {};
  options.layout = Layout::wide;
  EXPECT_THAT(ids_of(read(one, options)), ElementsAre("open", "high", "low", "close", "volume"));
}

TEST(Columns, FlagsGoBeforeNames) {
  const std::string text =
      "ds,moment,who,y,z\nx,2020-01,a,1,5\nx,2020-01,b,2,6\n"
      "x,2020-02,a,3,7\nx,2020-02,b,4,8\n";
  CsvOptions options;
  options.timestamp = "Moment";
  options.id = {"who"};
  options.values = {"z"};
  const Dataset data = read(text, options);
  EXPECT_EQ(data.layout, Layout::long_format);
  ASSERT_THAT(ids_of(data), ElementsAre("a", "b"));
  EXPECT_THAT(data.series[0].values, ElementsAre(5, 7));
  options.layout = Layout::wide;  // the id column still says which rows belong together
  EXPECT_THAT(ids_of(read(text, options)), ElementsAre("a", "b"));
}

TEST(Columns, WhatIsAskedForIsNotTakenForSomethingElse) {
  CsvOptions options;
  options.values = {"month"};
  const Dataset data = read_rows("month,v", "5,1", "6,2", options);
  EXPECT_THAT(data.series.at(0).variates, ElementsAre("month"));
  options.values = {"id"};
  EXPECT_THAT(ids_of(read_rows("month,id", "1,5", "2,6", options)), ElementsAre("id"));
  options.values = {"close"};
  const std::string bars = "ds,open,high,low,close,symbol";
  EXPECT_EQ(read_rows(bars, "1,1,1,1,1,A", "2,1,1,1,1,A", options).layout, Layout::bars);
  options = {};
  options.covariates = {"month"};
  const Dataset featured = read_rows("day,month,v", "1,5,1", "2,6,2", options);
  EXPECT_THAT(featured.series.at(0).variates, ElementsAre("v", "month"));
  EXPECT_EQ(featured.series[0].covariates, 1U);
}

TEST(Columns, WideIgnoresIdsIfTold) {
  CsvOptions options;
  options.layout = Layout::wide;
  EXPECT_THAT(ids_of(read_rows("id,ds,y", "7,1,1", "8,2,2", options)), ElementsAre("id", "y"));
}

TEST(Columns, ColumnsThatAreNotUsedMayHoldAnything) {
  CsvOptions options;
  options.values = {"y"};
  EXPECT_EQ(only("ds,y,note,n\n1,1,\"1,5\",inf\n2,2,\xE9,1e999\n", options).steps, 2U);
}

TEST(Columns, EmptyColumnsBesideIdsAreNoSeries) {
  const std::string text = "date,store,sales,note\n2024-01-01,a,1,\n2024-01-02,a,2,NA\n";
  const Dataset data = read(text + "2024-01-01,b,3,\n2024-01-02,b,4,\n");
  EXPECT_THAT(ids_of(data), ElementsAre("a", "b"));
  EXPECT_THAT(data.errors, IsEmpty());
  EXPECT_THAT(data.warnings,
              testing::Contains("column \"note\" has no value in any row and is left out"));
  CsvOptions options;
  options.values = {"sales", "note"};
  EXPECT_EQ(read(text, options).errors.size(), 1U);  // what is asked for is told
}

TEST(Columns, AColumnThatIsEmptyAtFirstIsASeries) {
  std::string text = "date,store,sales,tax\n";
  for (int i = 0; i < 1200; ++i) {
    text += std::to_string(i) + ",a," + std::to_string(i % 7) + (i < 1100 ? ",\n" : ",2\n");
  }
  CsvOptions options;
  options.id = {"store"};
  EXPECT_THAT(ids_of(read(text, options)), ElementsAre("a/sales", "a/tax"));
}

TEST(Columns, FilesOfOneNameAreToldApartByTheirFolders) {
  const auto series = [](const std::string& id) {
    TimeSeries one;
    one.id = id;
    return one;
  };
  std::vector<TimeSeries> all = {series("y"), series("y"), series("y"), series("z")};
  tell_apart(all, {"jan/shop.csv", "feb/shop.csv", "mar/other.csv", "feb/shop.csv"});
  std::vector<std::string> ids;
  for (const TimeSeries& one : all) ids.push_back(one.id);
  EXPECT_THAT(ids, ElementsAre("jan/shop/y", "feb/shop/y", "other/y", "z"));
  std::vector<TimeSeries> bars = {series("shop"), series("shop")};
  tell_apart(bars, {"./shop.csv", "/data/feb/shop.csv.gz"});
  EXPECT_EQ(bars[0].id, "shop");
  EXPECT_EQ(bars[1].id, "feb/shop");
}

TEST(Columns, AJointSeriesIsCalledAsTheFile) {
  CsvOptions options;
  options.joint = true;
  const std::string text = "ds,a,b\n1,1,2\n2,3,4\n";
  const auto id_in = [&](const std::string& name) {
    std::istringstream in(text);
    return read_csv(in, name, options).series.at(0).id;
  };
  EXPECT_EQ(id_in("table.csv"), "table");
  EXPECT_EQ(id_in("/some/where/table.v2.csv"), "table.v2");
  EXPECT_EQ(id_in("folder.d/table"), "table");
  EXPECT_EQ(id_in("<stdin>"), "stdin");
  EXPECT_EQ(id_in(".csv"), "series");
  EXPECT_EQ(id_in("caf\xE9.csv"), "series");
}

TEST(Columns, NamesMustTellColumnsApart) {
  CsvOptions options;
  options.values = {"a"};
  EXPECT_THAT(error_of("ds,a,a\n1,1,1\n", options), HasSubstr("duplicate_column"));
  options.values = {"b", "b"};
  EXPECT_THAT(error_of("ds,b\n1,1\n", options), HasSubstr("duplicate_column"));
  options.values = {"b"};
  EXPECT_EQ(error_of("ds,a,a,b\n1,1,1,1\n", options), "");
}

}  // namespace
}  // namespace toto::data
