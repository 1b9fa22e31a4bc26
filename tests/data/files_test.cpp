// SPDX-License-Identifier: Apache-2.0
// Files as vendors and programs write them (tests/data/files), each with its expected reading in
// expected.json: options, series with their first and last times and values, or the error.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "support/paths.h"
#include "toto/tools/data.hpp"

namespace toto::data {
namespace {

using nlohmann::json;

const std::string kFolder = test::data_path("files/");

json expectations() {
  std::ifstream in(kFolder + "expected.json");
  return json::parse(in);
}

CsvOptions options_of(const json& expected) {
  CsvOptions options;
  const json told = expected.value("options", json::object());
  options.date_format = told.value("date_format", "");
  options.timezone = told.value("timezone", "");
  options.decimal = told.value("decimal", std::string(1, '\0')).front();
  options.missing_values = told.value("missing_values", std::vector<std::string>());
  if (told.value("layout", "") == "rows") options.layout = Layout::rows;
  const std::string duplicates = told.value("duplicates", "error");
  if (duplicates == "last") options.duplicates = Duplicates::last;
  if (duplicates == "mean") options.duplicates = Duplicates::mean;
  return options;
}

std::string first_file(const std::string& name) { return name.substr(0, name.find('?')); }

void check_series(const TimeSeries& series, const json& expected, const std::string& name) {
  EXPECT_EQ(series.id, expected.at("id")) << name;
  EXPECT_EQ(series.steps, expected.at("steps")) << name;
  EXPECT_EQ(format_time(series.times.front(), series.style), expected.at("first")) << name;
  EXPECT_EQ(format_time(series.times.back(), series.style), expected.at("last")) << name;
  EXPECT_EQ(format_time(future_times(series, 1).front(), series.style), expected.at("next"))
      << name;
  EXPECT_EQ(describe(series.interval), expected.at("interval")) << name;
  const double offset = series.offset_of(0);
  const auto expect_value = [&](float found, const char* key) {
    const auto value = expected.at(key).get<float>();
    if (offset == 0) {
      EXPECT_EQ(found, value) << name;
    } else {
      EXPECT_FLOAT_EQ(static_cast<float>(offset + double{found}), value) << name;
    }
  };
  expect_value(series.values.front(), "first_value");
  expect_value(series.values[series.steps - 1], "last_value");
  EXPECT_EQ(std::ranges::count(series.mask, 0), expected.at("missing")) << name;
}

TEST(Files, EveryFileIsReadAsExpected) {
  const json all = expectations();
  for (const auto& [name, expected] : all.items()) {
    SCOPED_TRACE(name);
    Dataset data;
    try {
      data = read_csv(kFolder + first_file(name), options_of(expected));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), expected.value("error", "none")) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      continue;
    }
    ASSERT_FALSE(expected.contains("error"));
    EXPECT_TRUE(data.errors.empty());
    EXPECT_EQ(data.reading.time_format, expected.at("time_format"));
    EXPECT_EQ(data.reading.order, expected.at("order"));
    EXPECT_EQ(data.warnings.size(), expected.at("notes"));
    const json& series = expected.at("series");
    ASSERT_EQ(data.series.size(), series.size());
    for (std::size_t i = 0; i < data.series.size(); ++i) {
      check_series(data.series[i], series[i], name);
    }
  }
}

TEST(Files, EveryFileHasAnExpectation) {
  const json all = expectations();
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename().string();
    if (name == "expected.json" || name == "README.md") continue;
    EXPECT_TRUE(all.contains(name)) << name;
    ++files;
  }
  EXPECT_GE(files, 60U);
}

// A file that is cut off anywhere is read or refused; nothing else happens.
TEST(Files, EveryTruncationIsReadOrRefused) {
  for (const char* name :
       {"stooq_bulk.txt", "german_excel.csv", "grafana_units.csv", "prometheus_query_range.json",
        "json_lines.jsonl", "m4_monthly.csv", "cases_by_day.csv", "binance_klines.zip",
        "zip_stored.csv.zip", "compressed.csv.gz", "compressed.csv.zst", "us_twelve_hours.csv",
        "yfinance_three_rows.csv", "cloudwatch_console.csv", "cloudwatch_data.json",
        "victoriametrics.jsonl", "mysql_table.txt", "psql_table.txt", "excel_months.csv"}) {
    std::ifstream in(kFolder + name, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    for (std::size_t size = 0; size < text.size(); size += 1 + size / 64) {
      std::istringstream part(text.substr(0, size));
      try {
        const Dataset data = read_csv(part, name);
        EXPECT_FALSE(data.series.empty() && data.errors.empty());
      } catch (const Error& error) {
        EXPECT_EQ(error.status(), ExitStatus::bad_data) << name << " " << size;
      }
    }
  }
}

}  // namespace
}  // namespace toto::data
