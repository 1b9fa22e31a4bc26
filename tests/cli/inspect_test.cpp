// SPDX-License-Identifier: Apache-2.0
// toto inspect: what is told of files, as text and as JSON.
#include <nlohmann/json.hpp>

#include "support/program.h"

namespace toto::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Inspect : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    std::string table = "Date;store;weekday;sales\n";
    for (int day = 31; day >= 1; --day) {
      table += std::to_string(day) + ".1.2024;7;" + std::to_string(day % 7) + ";" +
               std::to_string(100 + day) + ",5 €\n";
    }
    write("sales.csv", table);
  }
};

TEST_F(Inspect, TellsWhatWasUnderstood) {
  const Result result = run({"inspect", "sales.csv"});
  EXPECT_EQ(result.status, 0) << result.err;
  for (const char* part :
       {"semicolons, decimal comma, header in line 1", "Date, %-d.%-m.%Y", "sales (in €)",
        "store (is an id that never changes)", "weekday (is a part of the date)",
        "31 rows, newest first", "31 steps from 1.1.2024 to 31.1.2024, 1 day, 101.5 to 131.5"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST_F(Inspect, WritesOneDocument) {
  write("bad.csv", "date,y\n2024-01-01,4\n2024-01-02,5\n2024-01-03,x1\n");
  const Result result = run({"inspect", "sales.csv", "bad.csv", "--json", "--context", "10"});
  EXPECT_EQ(result.status, 65);
  const nlohmann::json files = nlohmann::json::parse(result.out)["files"];
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0]["decimal"], ",");
  EXPECT_EQ(files[0]["order"], "newest first");
  EXPECT_EQ(files[0]["columns"][1]["role"], "left out");
  EXPECT_EQ(files[0]["series"][0]["steps"], 10);
  EXPECT_EQ(files[0]["series"][0]["steps_before_context"], 21);
  EXPECT_EQ(files[0]["series"][0]["next"], "1.2.2024");
  EXPECT_EQ(files[0]["series"][0]["highest"], 131.5);
  EXPECT_EQ(files[1]["error"]["code"], "not_a_number");
}

TEST_F(Inspect, ShowsSeriesInRows) {
  write("rows.csv", "Page,2015-07-01,2015-07-02,2015-07-03\nfirst,18,11,5\nsecond,1,,3\n");
  const Result result = run({"inspect", "rows.csv"});
  EXPECT_EQ(result.status, 0) << result.err;
  for (const char* part :
       {"layout     rows\n", "names of columns, YYYY-MM-DD", "3 columns, 2015-07-01 to 2015-07-03",
        "id         Page",
        "second: 3 steps from 2015-07-01 to 2015-07-03, 1 day, 1 to 3, 1 missing"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
  write("unclear.csv", "V1,V2,V3,V4\na,1,2,3\nb,4,5,6\nc,7,8,9\n");
  const Result unclear = run({"inspect", "unclear.csv"});
  EXPECT_EQ(unclear.status, 65);
  EXPECT_THAT(unclear.err, HasSubstr("[ambiguous_layout]"));
  EXPECT_THAT(unclear.err, HasSubstr("--layout rows"));
  EXPECT_THAT(run({"inspect", "unclear.csv", "--layout", "rows"}).out, HasSubstr("3 series"));
}

TEST_F(Inspect, ReadsFolders) {
  write("data/a.csv", "date,y\n2024-01-01,1\n2024-01-02,2\n");
  write("data/b.jsonl", "{\"ts\":\"2024-01-01\",\"v\":1}\n{\"ts\":\"2024-01-02\",\"v\":2}\n");
  write("data/notes.txt", "no table\n");
  const Result folder = run({"inspect", "data"});
  EXPECT_EQ(folder.status, 0) << folder.err;
  EXPECT_THAT(folder.out, HasSubstr("JSON lines"));
  EXPECT_THAT(folder.out, Not(HasSubstr("notes.txt")));
}

}  // namespace
}  // namespace toto::test
