// SPDX-License-Identifier: Apache-2.0
// Malformed tables (robustness 22-30): each gives its code and the place, file:line:column.
#include "support/program.h"

namespace toto::test {
namespace {

struct Case {
  std::string name;
  std::string code;
  std::string table;
  std::string place;  // what follows "[code] "; empty: not looked at
  std::string names = {};
};

void PrintTo(const Case& one, std::ostream* to) { *to << one.name; }

class Csv : public Program, public testing::WithParamInterface<Case> {
 protected:
  Result forecast(const std::string& table, std::vector<std::string> more = {}) {
    write("in.csv", table);
    std::vector<std::string> arguments = {"forecast",  "in.csv", "--model",  tiny_model(),
                                          "--horizon", "4",      "--output", "out.csv"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
};

TEST_P(Csv, IsRefusedWithItsCode) {
  const Result result = forecast(GetParam().table);
  expect_failure(result, 65, GetParam().code);
  EXPECT_THAT(result.err, testing::HasSubstr("] " + GetParam().place));
  EXPECT_THAT(result.err, testing::HasSubstr(GetParam().names));
  EXPECT_EQ(listing(), std::vector<std::string>{"in.csv"});
}

// 64 good rows, then these.
std::string then(const std::string& rows) { return two_columns() + rows; }

INSTANTIATE_TEST_SUITE_P(
    Malformed, Csv,
    testing::Values(
        Case{"Empty", "no_rows", "", "in.csv"},
        Case{"HeaderOnly", "no_rows", "date,web\n", "in.csv"},
        Case{"RaggedRow", "ragged_row", then("2024-03-05,1,2,3\n"), "in.csv:66", "expected 3"},
        Case{"ShortRow", "ragged_row", then("2024-03-05,1\n"), "in.csv:66", "expected 3"},
        Case{"DecimalComma", "not_a_number", then("2024-03-05,\"1,5\",2\n"), "in.csv:66:12"},
        Case{"HexadecimalFloat", "not_a_number", then("2024-03-05,0x1p3,2\n"), "in.csv:66:12"},
        Case{"Infinity", "not_finite", then("2024-03-05,1,inf\n"), "in.csv:66:14"},
        Case{"BeyondDouble", "not_finite", then("2024-03-05,1e999,2\n"), "in.csv:66:12"},
        Case{"UnclosedQuote", "unclosed_quote", then("2024-03-05,\"1,2\n"), "in.csv:66"},
        Case{"UnclosedQuoteInALargeFile", "unclosed_quote",
             then("2024-03-05,\"" + std::string(2 << 20, 'x')), "in.csv:66:12"},
        Case{"FieldAboveTheLimit", "field_too_large",
             then("2024-03-05," + std::string(2 << 20, 'x')), "in.csv:66"},
        Case{"Utf16", "encoding",
             std::string("\xFF\xFE"
                         "d\0,\0",
                         6),
             "in.csv"},
        Case{"NulByte", "encoding", then(std::string("2024-03-05,1\0,2\n", 16)), "in.csv:66"},
        Case{"DuplicateTimestamp", "duplicate_timestamp",
             "date,y\n2024-01-01,1\n2024-01-02,2\n2024-01-02,3\n", "in.csv:4"},
        Case{"DayOrMonth", "ambiguous_timestamp", "date,y\n01/02/2024,1\n01/03/2024,2\n",
             "in.csv:2:1", "--date-format"},
        Case{"DecimalUnclear", "ambiguous_number", "date;y\n2024-01-01;1,500\n2024-01-02;1,600\n",
             "in.csv:2:12", "--decimal"},
        Case{"Parquet", "unsupported_format", "PAR1\x15\x04", "in.csv", "Parquet"},
        Case{"CutOffGzip", "damaged_archive", "\x1F\x8B\x08", "in.csv", "gzip"},
        Case{"BrokenJson", "invalid_json", "[{\"t\": 1,", "in.csv", "byte"}),
    [](const auto& it) { return it.param.name; });

TEST_F(Csv, MissingValuesAreMissing) {
  const Result result =
      forecast(then("2024-03-05,,2\n2024-03-06,NaN,2\n2024-03-07,null,2\n2024-03-08,3,2\n"));
  EXPECT_EQ(result.status, 0) << result.err;
}

TEST_F(Csv, FurtherWordsForMissingAreToldInAnyCommand) {
  const std::string text = then("2024-03-05,na2,2\n2024-03-06,-9999.0,2\n2024-03-07,3,2\n");
  const Result told = forecast(text, {"--missing-values", "-9999,NA2"});
  EXPECT_EQ(told.status, 0) << told.err;
  const Result untold = forecast(text);
  EXPECT_EQ(untold.status, 65);
  EXPECT_THAT(untold.err, testing::HasSubstr("--missing-values"));
  EXPECT_EQ(forecast(text, {"--missing-values=,"}).status, 2);
}

TEST_F(Csv, ByteOrderMarkAndCarriageReturns) {
  std::string table = "\xEF\xBB\xBF";
  for (const char c : two_columns()) table += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(forecast(table).status, 0);
  const std::string out = read_file(path("out.csv"));
  EXPECT_EQ(forecast(two_columns()).status, 0);
  EXPECT_EQ(out, read_file(path("out.csv")));
}

TEST_F(Csv, NumbersDoNotDependOnTheLocale) {
  write("in.csv", then("2024-03-05,\"1,5\",2\n"));
  const Result result = run(Invocation{{"forecast", "in.csv", "--model", tiny_model()},
                                       "",
                                       {{"LC_ALL", "de_DE.UTF-8"}, {"LANG", "de_DE.UTF-8"}},
                                       ""});
  expect_failure(result, 65, "not_a_number");
}

TEST_F(Csv, AbsentColumnListsTheOthers) {
  const Result result = forecast(two_columns(), {"--values", "load"});
  expect_failure(result, 65, "missing_column");
  EXPECT_THAT(result.err, testing::AllOf(testing::HasSubstr("load"), testing::HasSubstr("web"),
                                         testing::HasSubstr("api")));
}

TEST_F(Csv, FileIsNowhere) {
  expect_failure(run({"forecast", "nowhere.csv", "--model", tiny_model()}), 66, "file_not_found");
}

TEST_F(Csv, TooFewObservationsFailThatSeriesOnly) {
  std::string table = "unique_id,ds,y\n";
  for (int day = 1; day <= 20; ++day) {
    const std::string date = "2024-01-" + std::string(day < 10 ? "0" : "") + std::to_string(day);
    table += "good," + date + "," + std::to_string(day % 7) + "\n";
    if (day <= 2) table += "short," + date + ",1\n";
    table += "never," + date + ",\n";
  }
  const Result result = forecast(table);
  EXPECT_EQ(result.status, 65);
  EXPECT_THAT(result.err, testing::HasSubstr("toto: [too_short] "));
  EXPECT_THAT(result.err, testing::HasSubstr("toto: [no_observations] "));
  const std::string out = read_file(path("out.csv"));
  EXPECT_THAT(out, testing::HasSubstr("\ngood,2024-01-21,"));
  EXPECT_THAT(out, testing::Not(testing::HasSubstr("short")));
}

TEST_F(Csv, NothingToForecast) {
  expect_failure(forecast("date,y\n2024-01-01,1\n2024-01-02,2\n"), 65, "too_short");
  expect_failure(forecast("unique_id,ds,y\na,2024-01-01,\na,2024-01-02,\n"), 65, "no_observations");
  EXPECT_EQ(listing(), std::vector<std::string>{"in.csv"});
}

}  // namespace
}  // namespace toto::test
