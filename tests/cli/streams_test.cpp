// SPDX-License-Identifier: Apache-2.0
// What the parent of a process may do to its standard streams and signals: results are whole, or an
// error says that they are not.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/program.h"

namespace toto::test {
namespace {

using namespace std::chrono_literals;

class Streams : public Program {
 protected:
  static std::string forecast(const std::string& more) {
    return std::string(program_path()) + " forecast --model '" + tiny_model() + "' --seed 3 " +
           more;
  }
  std::string expected() {
    write("in.csv", two_columns());
    EXPECT_EQ(shell(forecast("in.csv --output expected.csv")).status, 0);
    const std::string text = read_file(path("expected.csv"));
    std::filesystem::remove(path("expected.csv"));
    EXPECT_FALSE(text.empty());
    return text;
  }
  std::vector<std::string> temporaries() const {
    std::vector<std::string> all;
    for (const std::string& name : listing()) {
      if (name.starts_with(".toto-")) all.push_back(name);
    }
    return all;
  }
};

TEST_F(Streams, NonBlockingInputIsReadToItsEnd) {
  const std::string table = two_columns(2000);
  write("in.csv", table);
  ASSERT_EQ(shell(forecast("in.csv --context 4096 --output whole.csv")).status, 0);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(::fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
  std::thread writer([&] {
    for (std::size_t at = 0; at < table.size(); at += 9000) {
      const std::string piece = table.substr(at, 9000);
      EXPECT_EQ(::write(ends[1], piece.data(), piece.size()), static_cast<ssize_t>(piece.size()));
      std::this_thread::sleep_for(20ms);
    }
    ::close(ends[1]);
  });
  // Handed down as it is: opening it by name would make another description.
  ASSERT_EQ(::fcntl(ends[0], F_SETFD, 0), 0);
  const Result result =
      shell(forecast("- --context 4096 --output piped.csv") + " <&" + std::to_string(ends[0]));
  writer.join();
  ::close(ends[0]);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(read_file(path("piped.csv")), read_file(path("whole.csv")));
}

TEST_F(Streams, NonBlockingOutputIsWrittenToItsEnd) {
  write("in.csv", two_columns());
  const std::string flags = "in.csv --horizon 500 --samples 64 --output-samples ";
  ASSERT_EQ(shell(forecast(flags + "whole.csv")).status, 0);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(::fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
  ASSERT_EQ(::fcntl(ends[1], F_SETFD, 0), 0);
  std::string got;
  std::thread reader([&] {
    char piece[8192];
    for (ssize_t n = 0; (n = ::read(ends[0], piece, sizeof piece)) > 0;) {
      got.append(piece, static_cast<std::size_t>(n));
      if (got.size() < 200'000) std::this_thread::sleep_for(1ms);
    }
  });
  const Result result = shell(forecast(flags + "-") + " >&" + std::to_string(ends[1]));
  ::close(ends[1]);
  reader.join();
  ::close(ends[0]);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(got, read_file(path("whole.csv")));
}

TEST_F(Streams, InputThatCannotBeReadIsAnError) {
  expect_failure(shell(forecast("- < .")), 74, "read_failed");
  expect_failure(shell(forecast("- <&-")), 74, "read_failed");
  expect_failure(shell(forecast(".")), 66, "no_input");  // a folder without tables
}

TEST_F(Streams, AClosedStreamTakesNoFilesPlace) {
  const std::string whole = expected();
  Result result = shell(forecast("in.csv --output y.csv >&-"));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(read_file(path("y.csv")), whole);
  // A warning goes nowhere rather than into the result.
  result = shell("TOTO_NONSENSE=1 " + forecast("in.csv --output z.csv 2>&-"));
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(read_file(path("z.csv")), whole);
  result = shell(forecast("in.csv --output w.csv 0<&- >&- 2>&-"));
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(read_file(path("w.csv")), whole);
}

TEST_F(Streams, AResultForAClosedStreamIsAnError) {
  write("in.csv", two_columns());
  expect_failure(shell(forecast("in.csv --output - >&-")), 74, "write_failed");
  expect_failure(shell(forecast("in.csv --json >&-")), 74, "write_failed");
  expect_failure(shell(std::string(program_path()) + " config >&-"), 74, "write_failed");
}

TEST_F(Streams, AFullStandardErrorChangesNoStatus) {
  const std::string whole = expected();
  EXPECT_EQ(shell(forecast("absent.csv 2>/dev/full")).status, 66);
  const Result result = shell("TOTO_NONSENSE=1 " + forecast("in.csv --output y.csv 2>/dev/full"));
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(read_file(path("y.csv")), whole);
}

TEST_F(Streams, FilesStayWhereTheReaderOfTheTableGoesAway) {
  const std::string whole = expected();
  const Result result = shell("{ " + forecast("in.csv --output y.csv") +
                              "; echo $? > status; } | { exec <&-; sleep 0.1; }");
  EXPECT_EQ(read_file(path("status")), "74\n") << result.err;
  EXPECT_EQ(read_file(path("y.csv")), whole);
  EXPECT_TRUE(temporaries().empty());
}

TEST_F(Streams, JsonForStandardOutputLeavesTheFileWritten) {
  const std::string whole = expected();
  write("y.csv", "stale");
  Result result = shell(forecast("in.csv --output y.csv --json"));
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(read_file(path("y.csv")), whole);
  EXPECT_EQ(nlohmann::json::parse(result.out)["series"].size(), 2U);
  result = shell(forecast("in.csv --output y.json --json"));
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(read_file(path("y.json")), result.out);
}

TEST_F(Streams, TwoResultsNeedTwoFiles) {
  write("in.csv", two_columns());
  std::filesystem::create_directory(path("folder"));
  std::filesystem::create_symlink("same.csv", path("link.csv"));
  for (const char* flags :
       {"--output same.csv --output-samples same.csv",
        "--output same.csv --output-samples ./same.csv",
        "--output folder/../same.csv --output-samples same.csv",
        "--output link.csv --output-samples same.csv", "--output - --output-samples /dev/stdout",
        "--output /dev/stdout --json", "--output - --json"}) {
    expect_failure(shell(forecast(std::string("in.csv ") + flags)), 2, "conflicting_flags");
    EXPECT_FALSE(std::filesystem::exists(path("same.csv")));
  }
  // One of them is thrown away in any case.
  EXPECT_EQ(shell(forecast("in.csv --output /dev/null --output-samples /dev/null")).status, 0);
  const std::string verify =
      std::string(program_path()) + " verify --model '" + tiny_model() + "' ";
  expect_failure(shell(verify + "--record r.json --report r.json"), 2, "conflicting_flags");
  write("old.json", "{}");
  expect_failure(shell(verify + "--against old.json --report old.json"), 2, "conflicting_flags");
  expect_failure(shell(verify + "--report r.md --report r.md"), 2, "conflicting_flags");
}

TEST_F(Streams, AResultDoesNotOverwriteWhatIsRead) {
  write("in.csv", two_columns());
  const std::string before = read_file(path("in.csv"));
  const Result result = shell(forecast("in.csv -o ./in.csv"));
  expect_failure(result, 2, "conflicting_flags");
  EXPECT_THAT(result.err, testing::HasSubstr("--output would overwrite what is read"));
  std::filesystem::create_symlink("in.csv", path("link.csv"));
  expect_failure(shell(forecast("in.csv --output-samples link.csv")), 2, "conflicting_flags");
  EXPECT_EQ(read_file(path("in.csv")), before);
  // One file of a folder is read, too; and so it is in other commands.
  write("data/a.csv", before);
  const std::string with = " --model '" + tiny_model() + "' ";
  for (const char* line :
       {"forecast data -o data/a.csv", "forecast data -o data/../data/a.csv",
        "detect data --output data/a.csv", "tune data -o data/a.csv", "tune in.csv -o link.csv",
        "verify --data data --record data/a.csv", "verify --data in.csv --record in.csv"}) {
    expect_failure(shell(std::string(program_path()) + " " + line + with), 2, "conflicting_flags");
  }
  EXPECT_EQ(read_file(path("in.csv")), before);
  EXPECT_EQ(read_file(path("data/a.csv")), before);
}

TEST_F(Streams, NothingAppearsWhereOneResultCannotBeWritten) {
  write("in.csv", two_columns());
  write("y.csv", "old");
  std::filesystem::create_symlink("/dev/full", path("full.html"));
  expect_failure(shell(forecast("in.csv --output y.csv --plot full.html")), 74, "write_failed");
  EXPECT_EQ(read_file(path("y.csv")), "old");
  EXPECT_TRUE(temporaries().empty());
}

TEST_F(Streams, ALimitOnTheSizeOfFilesIsAnErrorOfWriting) {
  write("in.csv", two_columns());
  write("y.csv", "old");
  expect_failure(
      shell("ulimit -f 8; " + forecast("in.csv --horizon 500 --samples 8 --output-samples y.csv")),
      74, "write_failed");
  EXPECT_EQ(read_file(path("y.csv")), "old");
  EXPECT_TRUE(temporaries().empty());
}

TEST_F(Streams, ATerminatedProcessLeavesNothing) {
  write("in.csv", two_columns());
  for (const int number : {SIGTERM, SIGHUP}) {
    const pid_t process = start({{"forecast", "in.csv", "--model", tiny_model(), "--horizon",
                                  "4000", "--samples", "4096", "--output", "y.csv"},
                                 "",
                                 {},
                                 ""});
    std::this_thread::sleep_for(500ms);
    ASSERT_EQ(::kill(process, number), 0);
    EXPECT_EQ(wait(process).status, 128 + number);  // by the signal, as its sender expects
    EXPECT_TRUE(temporaries().empty());
    EXPECT_FALSE(std::filesystem::exists(path("y.csv")));
  }
}

TEST_F(Streams, AnIgnoredInterruptStaysIgnored) {
  write("in.csv", two_columns());
  const std::string work = "in.csv --horizon 1000 --samples 256 --output y.csv";
  const Result result =
      shell("trap '' INT; " + forecast(work) + " & pid=$!; sleep 0.5; kill -INT $pid; wait $pid");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(std::filesystem::exists(path("y.csv")));
}

TEST_F(Streams, MessagesCarryNoControlCharacters) {
  write("in.csv", "date,\"we\x1b[31mb\nx\"\n2024-01-01,1\n2024-01-02,2\n");
  const Result result = shell(forecast("in.csv"));
  expect_failure(result, 65, "too_short");
  EXPECT_EQ(result.err.find('\x1b'), std::string::npos);
  // Names of files reach messages as they are.
  const Result absent = shell(forecast("$'a\\e[31m\\nb.csv'"));
  expect_failure(absent, 66, "file_not_found");
  EXPECT_EQ(absent.err.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace toto::test
