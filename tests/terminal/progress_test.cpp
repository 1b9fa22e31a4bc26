// SPDX-License-Identifier: Apache-2.0
// The progress bar: what it says, how often, and that it leaves no trace.
#include "cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

namespace toto::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr auto kItems = ProgressUnit::items;
constexpr auto kBytes = ProgressUnit::bytes;

TEST(ProgressLine, SaysHowMuchHowFastAndHowLong) {
  EXPECT_EQ(progress_line("work", 250, 1000, 10, 30 + 40, kItems),
            "work [======>                    ] 250 of 1,000, 25 %, 25/s, 0:30 left");
  EXPECT_EQ(progress_line("work", 1000, 1000, 10, 60, kItems),
            "work [=============] 1,000 of 1,000, 100 %, 100/s, 0:00 left");
  EXPECT_THAT(progress_line("w", 1, 7201, 1, 80, kItems), HasSubstr(", 2:00:00 left"));
  EXPECT_THAT(progress_line("w", 1, 10, 4, 80, kItems), HasSubstr(", 0.2/s, 0:36 left"));
}

TEST(ProgressLine, WritesBytesInTheUnitOfTheTotal) {
  EXPECT_THAT(progress_line("w", 301'000'000, 605'224'320, 1.4, 90, kBytes),
              HasSubstr("301 of 605 MB, 49 %, 215 MB/s, 0:02 left"));
  EXPECT_THAT(progress_line("w", 512, 4096, 1, 90, kBytes), HasSubstr("512 of 4,096 B, 12 %"));
}

TEST(ProgressLine, NeverExceedsItsWidth) {
  for (std::size_t width = 1; width < 130; ++width) {
    EXPECT_LE(progress_line("forecasting", 123'456, 9'876'543, 77, width, kItems).size(), width);
  }
  EXPECT_THAT(progress_line("forecasting", 1, 2, 1, 45, kItems), Not(HasSubstr("[")));
}

TEST(ProgressLine, EstimatesNothingFromNothing) {
  for (const std::string& line :
       {progress_line("w", 0, 100, 5, 80, kItems), progress_line("w", 0, 0, 5, 80, kItems),
        progress_line("w", 1, ~std::uint64_t{0}, 5, 80, kItems)}) {
    EXPECT_THAT(line, Not(HasSubstr("left")));
  }
  EXPECT_THAT(progress_line("w", 200, 100, 5, 80, kItems), HasSubstr("100 of 100, 100 %"));
}

// A terminal and a clock of the test's own.
struct Recorder {
  std::vector<std::string> writes;
  double now = 100.0;

  ProgressBar::Screen screen() {
    return {[this](std::string_view text) { writes.emplace_back(text); }, [this] { return now; },
            [] { return std::size_t{60}; }};
  }
};

TEST(ProgressBar, QuickWorkLeavesNoTrace) {
  Recorder recorder;
  {
    ProgressBar bar("work", recorder.screen());
    for (std::uint64_t i = 0; i <= 100; ++i) {
      recorder.now += 0.004;
      bar.update(i, 100);
    }
  }
  EXPECT_TRUE(recorder.writes.empty());
}

TEST(ProgressBar, DrawsAtMostTenTimesASecondAndCleansUp) {
  Recorder recorder;
  {
    ProgressBar bar("work", recorder.screen());
    for (std::uint64_t i = 0; i < 5000; ++i) {  // five seconds
      recorder.now += 0.001;
      bar.update(i, 5000);
    }
  }
  EXPECT_GT(recorder.writes.size(), 30U);
  EXPECT_LE(recorder.writes.size(), 51U);
  for (const std::string& text : recorder.writes) {
    EXPECT_THAT(text, StartsWith("\r\x1b[K"));
    EXPECT_THAT(text, Not(HasSubstr("\n")));
    EXPECT_LT(text.size(), 60U + 4U);
  }
  EXPECT_EQ(recorder.writes.back(), "\r\x1b[K");
}

TEST(ProgressBar, SaysNothingAfterItsEnd) {
  Recorder recorder;
  ProgressBar bar("work", recorder.screen());
  recorder.now += 1;
  bar.update(1, 2);
  bar.finish();
  const std::size_t before = recorder.writes.size();
  recorder.now += 1;
  bar.update(2, 2);
  bar.finish();
  EXPECT_EQ(before, 2U);
  EXPECT_EQ(recorder.writes.size(), before);
}

TEST(ProgressBar, IsSilentWhereStderrIsNoTerminal) {
  if (isatty(STDERR_FILENO) != 0) GTEST_SKIP() << "stderr is a terminal";
  testing::internal::CaptureStderr();
  {
    ProgressBar bar("work", false);
    bar.update(1, 2);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace toto::cli
