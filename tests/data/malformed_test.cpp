// SPDX-License-Identifier: Apache-2.0
// Tables that must be refused, each with its code and place.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "read.h"
#include "support/paths.h"

namespace toto::data {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kFolder = test::data_path("csv/malformed/");

TEST(Malformed, EveryFileIsRefusedWithItsCode) {
  std::ifstream expected(kFolder + "expected.txt");
  std::size_t cases = 0;
  for (std::string name, code, place; expected >> name >> code >> place; ++cases) {
    const std::string path = kFolder + name + ".csv";
    try {
      (void)read_csv(path);
      ADD_FAILURE() << name << " was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << name << ": " << error.what();
      EXPECT_EQ(error.where(), path + ":" + place) << name;
      EXPECT_EQ(error.status(), ExitStatus::bad_data) << name;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << name;
    }
  }
  const auto is_table = [](const auto& entry) { return entry.path().extension() == ".csv"; };
  const std::filesystem::directory_iterator files(kFolder);
  EXPECT_EQ(cases, static_cast<std::size_t>(std::count_if(begin(files), end(files), is_table)));
  EXPECT_GE(cases, 45U);
}

// A table that is cut off anywhere is read or refused; nothing else happens.
TEST(Malformed, EveryTruncationIsReadOrRefused) {
  const std::string text =
      "\xEF\xBB\xBF"
      "unique_id,ds,y\r\n\"a \"\"b\"\"\",2020-01-01T00:00Z,1e3\r\n"
      "c,2020-01-01T00:00Z,\"-2.5\"\r\n\"a \"\"b\"\"\",2020-01-01T01:00Z,NaN\r\n";
  std::size_t read_whole = 0;
  for (std::size_t size = 0; size <= text.size(); ++size) {
    if (error_of(text.substr(0, size)).empty()) ++read_whole;
  }
  EXPECT_GT(read_whole, 0U);
  EXPECT_LT(read_whole, text.size());
}

TEST(Malformed, MessagesSayWhatWasExpectedAndFound) {
  EXPECT_THAT(error_of("a,b,c\n1,2\n"), HasSubstr("expected 3 fields as in the header, found 2"));
  EXPECT_THAT(error_of("ds,y\n2020-01-01,1\n2020-01-02,x\n"), HasSubstr("\"x\" in column \"y\""));
  EXPECT_THAT(error_of("ds,y\n2020-01-02,1\n2020-01-02,2\n"),
              HasSubstr("\"2020-01-02\" has been in line 2 already, with other values"));
}

// Case 29: the columns that there are.
TEST(Malformed, AMissingColumnListsTheOthers) {
  const std::string text = "ds,y,\"odd \"\"name\"\n2020-01-01,1,2\n";
  CsvOptions options;
  options.values = {"price"};
  EXPECT_EQ(error_of(text, options),
            "missing_column dir/table.csv:1:1: there is no column \"price\"; the columns are "
            "\"ds\", \"y\", \"odd \\\"name\"");
  options = {};
  options.timestamp = "when";
  EXPECT_THAT(error_of(text, options), StartsWith("missing_column dir/table.csv:1:1"));
  options = {};
  options.id = {"sensor"};
  EXPECT_THAT(error_of(text, options), StartsWith("missing_column"));
  options = {};
  options.layout = Layout::long_format;
  EXPECT_THAT(error_of(text, options), HasSubstr("there is no id column"));
  options.layout = Layout::bars;
  EXPECT_THAT(error_of(text, options), HasSubstr("there is no column \"close\""));

  std::string header = "ds", row = "2020-01-01";
  for (int i = 0; i < 100; ++i) {
    header += ",c" + std::to_string(i);
    row += ",1";
  }
  options = {};
  options.values = {"c100"};
  EXPECT_THAT(error_of(header + "\n" + row + "\n", options), HasSubstr("\"c18\" and 81 more"));
}

TEST(Malformed, NanosecondsThatAreOneMillisecondAreDuplicates) {
  EXPECT_EQ(
      error_of("id,ds,y\na,1577836800000000001,1\na,1577836800000000002,2\n"),
      "duplicate_timestamp dir/table.csv: two rows of series \"a\" are in the same millisecond "
      "1577836800000000000");
}

TEST(Malformed, ATimestampIsExpectedAsInTheFirstRow) {
  EXPECT_THAT(error_of("ds,y\nnow,1\n"), HasSubstr("expected YYYY-MM-DD, "));
  EXPECT_THAT(error_of("ds,y\n1,1\nx,2\n"), HasSubstr("expected a whole number"));
  EXPECT_THAT(error_of("ds,y\n1577836800.5,1\nx,2\n"), HasSubstr("expected epoch seconds"));
  EXPECT_THAT(error_of("ds,y\n2020-01,1\nx,2\n"), HasSubstr("expected a month"));
  EXPECT_THAT(error_of("ds,y\n2020-01-01,1\nx,2\n"), HasSubstr("expected a date written"));
  EXPECT_THAT(error_of("ds,y\n2020-01-01 00:00,1\nx,2\n"), HasSubstr("expected a date and time"));
}

TEST(Malformed, ATableIsNamedByItsPath) {
  try {
    (void)read_csv(kFolder + "no_such_file.csv");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "file_not_found");
    EXPECT_EQ(error.status(), ExitStatus::missing_input);
    EXPECT_EQ(error.where(), kFolder + "no_such_file.csv");
  }
  try {
    (void)read_csv(kFolder);  // a folder
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "read_failed");
    EXPECT_EQ(error.status(), ExitStatus::io);
  }
  CsvOptions options;
  options.context = 0;
  EXPECT_THROW(read("ds,y\n1,1\n", options), Error);
}

}  // namespace
}  // namespace toto::data
