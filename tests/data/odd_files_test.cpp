// SPDX-License-Identifier: Apache-2.0
// What exports of statistics offices, weather services and shops have that would be forecast in
// silence: codes for missing, codes of places, flags behind numbers.
#include <gmock/gmock.h>

#include <cmath>

#include "read.h"

namespace toto::data {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string daily(const std::vector<std::string>& values) {
  std::string text = "date,t\n";
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += "2024-01-" + std::string(i < 9 ? "0" : "") + std::to_string(i + 1);
    text += ',' + values[i] + '\n';
  }
  return text;
}

std::vector<std::string> ids_of(const Dataset& data) {
  std::vector<std::string> ids;
  for (const TimeSeries& series : data.series) ids.push_back(series.id);
  return ids;
}

TEST(Tickers, AreUtf8) {
  std::string text = "Price,Close,Close\nTicker,AAPL,MSFT\x96\nDate,,\n";
  for (int day = 1; day < 9; ++day) text += "2024-01-0" + std::to_string(day) + ",1.5,2.5\n";
  try {
    (void)read(text);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "encoding");
  }
}

TEST(MissingCodes, FarBelowTheRestAreMissing) {
  for (const char* code : {"-9999", "-9999.0", "-9999.9", "-99999"}) {
    const Dataset data = read(daily({"5", "7.5", code, "-3", "4"}));
    EXPECT_THAT(data.series.at(0).mask, ElementsAre(1, 1, 0, 1, 1)) << code;
    EXPECT_THAT(data.warnings, Contains(HasSubstr("is taken for missing"))) << code;
  }
  EXPECT_THAT(read(daily({"5", "-999", "-999", "-3", "4"})).series.at(0).mask,
              ElementsAre(1, 0, 0, 1, 1));
}

TEST(MissingCodes, AmongTheRestTheyAreNumbers) {
  for (const std::vector<std::string>& values : std::vector<std::vector<std::string>>{
           {"5", "-999", "7", "-3", "4"},            // once
           {"-9000", "-9999", "-8000", "100", "5"},  // others come near
           {"-9999", "-9999", "-9999", "-9999"},     // nothing else
           {"-9998", "5", "6", "7"}}) {
    const Dataset data = read(daily(values));
    EXPECT_THAT(data.series.at(0).mask, Each(1)) << values[1];
    EXPECT_THAT(data.warnings, IsEmpty()) << values[1];
  }
}

TEST(MissingCodes, FarAboveTheRestAreNamed) {
  const Dataset data = read(daily({"5", "999.9", "999.9", "3", "4"}));
  EXPECT_THAT(data.series.at(0).mask, Each(1));
  EXPECT_THAT(data.warnings, ElementsAre(HasSubstr("999.9 of column \"t\" lies far above")));
  EXPECT_THAT(read(daily({"500", "999.9", "999.9", "3", "4"})).warnings, IsEmpty());
}

TEST(OddFiles, WhatStaysWithTheIdIsNoSeries) {
  std::string text = "date,county,fips,cases\n";
  for (int day = 1; day <= 9; ++day) {
    const std::string date = "2024-01-0" + std::to_string(day);
    text += date + ",Cook,17031," + std::to_string(day * day) + "\n";
    text += date + ",Orange,6059," + std::to_string(day * 3 % 7) + "\n";
  }
  const Dataset data = read(text);
  EXPECT_THAT(ids_of(data), ElementsAre("Cook", "Orange"));
  EXPECT_THAT(data.warnings, Contains(HasSubstr("\"fips\" is the same in all rows of a series")));
  CsvOptions asked;
  asked.values = {"fips"};
  EXPECT_EQ(read(text, asked).series.at(0).values.front(), 17031.0F);
}

TEST(OddFiles, SdmxNamesItsTimesAndValues) {
  std::string text = "KEY,FREQ,CURRENCY,TIME_PERIOD,OBS_VALUE,OBS_STATUS,DECIMALS,SOURCE_AGENCY\n";
  for (int day = 1; day <= 9; ++day) {
    for (const char* code : {"USD", "JPY"}) {
      text += std::string("EXR.D.") + code + ",D," + code + ",2024-01-0" + std::to_string(day) +
              ",1.0" + std::to_string(day) + ",A,4,4F0\n";
    }
  }
  const Dataset data = read(text);
  EXPECT_THAT(ids_of(data), ElementsAre("EXR.D.USD/USD", "EXR.D.JPY/JPY"));
  EXPECT_EQ(data.series.at(0).values.front(), 1.01F);
}

TEST(OddFiles, FlagsOfEurostat) {
  const Dataset data = read(
      "freq,unit,geo\\TIME_PERIOD\t2000 \t2001 \t2002 \t2003 \n"
      "A,PC,AT\t: \t5.1 \t5.2 b\t5.3 p\nA,PC,BE\t: c\t6.1 bu\t6.2 \t: \n");
  EXPECT_THAT(ids_of(data), ElementsAre("A,PC,AT", "A,PC,BE"));
  EXPECT_THAT(data.series[0].mask, ElementsAre(0, 1, 1, 1));
  EXPECT_EQ(data.series[0].values[3], 5.3F);
  EXPECT_THAT(data.series[1].mask, ElementsAre(0, 1, 1, 0));
}

TEST(OddFiles, TickersAboveTheFields) {
  std::string text = "Ticker,AAPL,AAPL,MSFT,MSFT\nPrice,Open,Close,Open,Close\nDate,,,,\n";
  for (int day = 1; day <= 9; ++day) {
    text += "2024-01-0" + std::to_string(day) + ",1,2,3,4\n";
  }
  const Dataset data = read(text);
  EXPECT_THAT(ids_of(data), ElementsAre("AAPL", "MSFT"));
  EXPECT_EQ(data.series.at(1).values.front(), 4.0F);
}

TEST(OddFiles, MonthsBesideAYearAreSaid) {
  const std::string head = "Year,Jan,Feb,Mar,Apr,May,Jun,Jul,Aug,Sep,Oct,Nov,Dec\n";
  const Dataset data = read(head + "2022,1,2,3,4,5,6,7,8,9,10,11,12\n" +
                            "2023,1,2,3,4,5,6,7,8,9,10,***,***\n2024,1,2,3,4,5,6,7,8,9,8,7,6\n");
  EXPECT_EQ(data.series.size(), 12U);
  EXPECT_THAT(data.warnings, Contains(HasSubstr("called as months")));
}

TEST(OddFiles, ArticlesOnPromotionAreKnownAhead) {
  std::string text = "date,store_nbr,sales,onpromotion\n";
  for (int day = 1; day <= 9; ++day) {
    for (int store = 1; store <= 2; ++store) {
      text += "2024-01-0" + std::to_string(day) + "," + std::to_string(store) + "," +
              std::to_string(day * 7 % 5 + store) + "," + std::to_string(day % 4) + "\n";
    }
  }
  const Dataset data = read(text);
  EXPECT_THAT(ids_of(data), ElementsAre("1", "2"));
  EXPECT_THAT(data.warnings, Contains(HasSubstr("\"onpromotion\" is known ahead")));
}

}  // namespace
}  // namespace toto::data
