// SPDX-License-Identifier: Apache-2.0
// Records: delimiters, quotes, line ends, limits.
#include "data/csv_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <streambuf>

#include "data/text.h"

namespace toto::data {
namespace {

using ::testing::ElementsAre;
using Records = std::vector<std::vector<std::string>>;

Records records_of(const std::string& text) {
  std::istringstream in(text);
  const Text read = read_text(in, "t.csv");
  CsvReader csv(read.view(), "t.csv");
  Records records;
  while (csv.next()) {
    records.emplace_back();
    for (std::size_t i = 0; i < csv.size(); ++i) records.back().emplace_back(csv[i]);
  }
  return records;
}

std::string error_of(const std::string& text) {
  try {
    records_of(text);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::bad_data);
    return error.code() + " " + error.where();
  }
}

TEST(CsvReader, TakesTheDelimiterFromTheHeader) {
  const Records expected = {{"a", "b"}, {"1", "2"}};
  EXPECT_EQ(records_of("a,b\n1,2\n"), expected);
  EXPECT_EQ(records_of("a;b\n1;2\n"), expected);
  EXPECT_EQ(records_of("a\tb\n1\t2\n"), expected);
  EXPECT_EQ(records_of("\"x,y,z\";b;c\n1;2;3\n"), (Records{{"x,y,z", "b", "c"}, {"1", "2", "3"}}));
  EXPECT_EQ(records_of("a;b\n1,5;2\n"), (Records{{"a", "b"}, {"1,5", "2"}}));
  EXPECT_EQ(records_of("single\n1\n"), (Records{{"single"}, {"1"}}));
}

TEST(CsvReader, TakesEveryLineEnd) {
  const Records expected = {{"a", "b"}, {"1", "2"}, {"3", "4"}};
  EXPECT_EQ(records_of("a,b\r\n1,2\r\n3,4\r\n"), expected);
  EXPECT_EQ(records_of("a,b\r1,2\r3,4"), expected);
  EXPECT_EQ(records_of("\xEF\xBB\xBF\n\na,b\n\n1,2\r\n\r\n3,4\n\n\n"), expected);
}

TEST(CsvReader, TakesQuotes) {
  EXPECT_EQ(records_of("a,b\n\"1,5\",\"say \"\"x\"\"\"\n"),
            (Records{{"a", "b"}, {"1,5", "say \"x\""}}));
  EXPECT_EQ(records_of("a,b\n\"line\nbreak\r\n\",\"\"\n"),
            (Records{{"a", "b"}, {"line\nbreak\r\n", ""}}));
  EXPECT_EQ(records_of("a,b\n5\" pipe,x\"y\n"), (Records{{"a", "b"}, {"5\" pipe", "x\"y"}}));
  EXPECT_EQ(records_of("a\n\"\"\n"), (Records{{"a"}, {""}}));
  EXPECT_EQ(records_of("a,b\n,\n"), (Records{{"a", "b"}, {"", ""}}));
}

TEST(CsvReader, KnowsWhereItIs) {
  const std::string text = "a,b\n\"x\ny\",22,z\n3,4";
  CsvReader csv(text, "t.csv");
  csv.next();
  csv.next();
  EXPECT_EQ(csv.place(0).line, 2U);
  EXPECT_EQ(csv.place(0).column, 1U);
  EXPECT_EQ(csv.place(1).line, 3U);
  EXPECT_EQ(csv.place(1).column, 4U);
  EXPECT_EQ(csv.place(2).column, 7U);
  EXPECT_EQ(csv.end().column, 8U);
  csv.next();
  EXPECT_EQ(csv.place(1).line, 4U);
  EXPECT_EQ(csv.place(1).column, 3U);
}

TEST(CsvReader, RefusesWhatIsNotText) {
  EXPECT_EQ(error_of(std::string("\xFF\xFE"
                                 "d\0s\0",
                                 6)),
            "encoding t.csv:1:1");
  EXPECT_EQ(error_of(std::string("\xFE\xFF\0d\0s", 6)), "encoding t.csv:1:1");
  EXPECT_EQ(error_of(std::string("d\0s\0", 4)), "encoding t.csv:1:2");
  EXPECT_EQ(error_of(std::string("a,b\n1,\"2\0\"\n", 11)), "encoding t.csv:2:5");
}

TEST(CsvReader, RefusesBrokenQuotes) {
  EXPECT_EQ(error_of("a,b\n1,\"2\n3,4\n"), "unclosed_quote t.csv:2:3");
  EXPECT_EQ(error_of("a,b\n1,\""), "unclosed_quote t.csv:2:3");
  EXPECT_EQ(error_of("a,b\n1,\"2\"3\n"), "invalid_quote t.csv:2:6");
}

TEST(CsvReader, LimitsFieldsAndRecords) {
  const std::string mebibyte(CsvReader::kMaxField, 'x');
  EXPECT_EQ(records_of("a,b\n1," + mebibyte + "\n").at(1).at(1), mebibyte);
  EXPECT_EQ(records_of("a,b\n1,\"" + mebibyte + "\"\n").at(1).at(1), mebibyte);
  EXPECT_EQ(error_of("a,b\n1," + mebibyte + "x\n"), "field_too_large t.csv:2:3");
  EXPECT_EQ(error_of("a,b\n1,\"" + mebibyte + mebibyte), "unclosed_quote t.csv:2:3");
  const std::string commas(CsvReader::kMaxColumns - 1, ',');
  EXPECT_EQ(records_of("a" + commas + "\n").at(0).size(), CsvReader::kMaxColumns);
  EXPECT_EQ(error_of("a," + commas + "\n"), "too_many_columns t.csv:1:65538");
}

// A stream without an end, of which only so much may be asked.
class Endless : public std::streambuf {
 public:
  std::size_t given = 0;

 protected:
  std::streamsize xsgetn(char* out, std::streamsize count) override {
    std::fill_n(out, count, 'x');
    if (given == 0) out[0] = '"';
    given += static_cast<std::size_t>(count);
    return count;
  }
  int_type underflow() override { return traits_type::eof(); }
};

TEST(CsvReader, StopsReadingAtTheLimit) {
  Endless endless;
  std::istream in(&endless);
  const Text text = read_text(in, "t.csv");
  CsvReader csv(text.view(), "t.csv");
  EXPECT_THROW(csv.next(), Error);
  EXPECT_LE(endless.given, 4 * CsvReader::kMaxField);
}

// Every place where a piece of the file can end.
TEST(CsvReader, DoesNotFeelWhereItsBufferEnds) {
  const std::string tail = "\r\n\"q\"\"\nr\",2\r\n3,\"\"\r\n";
  const Records expected_tail = {{"q\"\nr", "2"}, {"3", ""}};
  const std::size_t buffer = 65536;
  for (std::size_t shift = 0; shift <= tail.size() + 1; ++shift) {
    std::string head = "a,b\n";
    while (head.size() + 104 < buffer - shift) head += std::string(97, 'x') + ",1\n";
    head += "0," + std::string(buffer - shift - head.size() - 2, 'y');
    ASSERT_EQ(head.size(), buffer - shift);
    const Records records = records_of(head + tail);
    ASSERT_GE(records.size(), 3U);
    EXPECT_EQ(Records(records.end() - 2, records.end()), expected_tail) << shift;
  }
}

class Broken : public std::streambuf {
 protected:
  int_type underflow() override { throw std::runtime_error("disk on fire"); }
};

TEST(CsvReader, ReportsWhatCannotBeRead) {
  Broken broken;
  std::istream in(&broken);
  try {
    (void)read_text(in, "t.csv");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "read_failed");
    EXPECT_EQ(error.status(), ExitStatus::io);
  }
}

}  // namespace
}  // namespace toto::data
