// SPDX-License-Identifier: Apache-2.0
// Folders that stand for their tables, and the last steps of a series.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "toto/tools/data.hpp"

namespace toto::data {
namespace {

TEST(CsvFiles, AFolderStandsForItsTablesByName) {
  std::string folder = testing::TempDir() + "toto-csv-files-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  for (const char* name : {"/b.csv", "/a.csv", "/notes.txt"}) std::ofstream(folder + name) << "x\n";
  EXPECT_EQ(csv_files({"z.csv", folder}),
            (std::vector<std::string>{"z.csv", folder + "/a.csv", folder + "/b.csv"}));
  std::filesystem::remove(folder + "/a.csv");
  std::filesystem::remove(folder + "/b.csv");
  try {
    (void)csv_files({folder});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "no_input");
    EXPECT_EQ(error.status(), ExitStatus::missing_input);
  }
  std::filesystem::remove_all(folder);
}

TEST(CsvFiles, APipeInAFolderIsRefused) {
  std::string folder = testing::TempDir() + "toto-csv-files-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/a.csv") << "x\n";
  std::filesystem::create_symlink("a.csv", folder + "/link.csv");
  EXPECT_EQ(csv_files({folder}).size(), 2U);
  ASSERT_EQ(::mkfifo((folder + "/b.csv").c_str(), 0600), 0);
  try {
    (void)csv_files({folder});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "read_failed");
    EXPECT_EQ(error.where(), folder + "/b.csv");
  }
  // One that is named is the user's wish.
  EXPECT_EQ(csv_files({folder + "/b.csv"}).size(), 1U);
  std::filesystem::remove_all(folder);
}

TEST(LastSteps, OfEveryVariate) {
  TimeSeries series;
  series.variates = {"a", "b"};
  series.steps = 3;
  series.values = {1, 2, 3, 4, 5, 6};
  series.mask = {1, 0, 1, 1, 1, 0};
  series.times = {7, 8, 9};
  const TimeSeries last = last_steps(series, 2);
  EXPECT_EQ(last.steps, 2U);
  EXPECT_EQ(last.values, (std::vector<float>{2, 3, 5, 6}));
  EXPECT_EQ(last.mask, (std::vector<std::uint8_t>{0, 1, 1, 0}));
  EXPECT_EQ(last.times, (std::vector<std::int64_t>{8, 9}));
  EXPECT_EQ(last_steps(series, 9).values, series.values);
}

}  // namespace
}  // namespace toto::data
