// SPDX-License-Identifier: Apache-2.0
// Stores that are damaged: what is said of them is one line, whatever stands in the file.
#include "server/live_database.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "toto/error.hpp"

namespace toto::server {
namespace {

namespace fs = std::filesystem;

class DamagedStore : public testing::Test {
 protected:
  void SetUp() override { forget(); }
  void TearDown() override { forget(); }
  void forget() const {
    for (const char* end : {"", "-wal", "-shm"}) fs::remove(path_ + end);
  }
  void store(const std::string& id) const {
    LiveDatabase database(path_);
    LiveSeries series;
    series.id = id;
    series.append({1, 2, 3}, 16);
    database.put(series);
  }
  /// Every `from` in the file becomes `to`, which is as long.
  void replace_bytes(const std::string& from, const std::string& to) const {
    std::ifstream in(path_, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    for (std::size_t at = bytes.find(from); at != bytes.npos; at = bytes.find(from, at + 1)) {
      bytes.replace(at, from.size(), to);
    }
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  [[nodiscard]] Error error_of_loading() const {
    try {
      LiveDatabase database(path_);
      (void)database.load(16);
    } catch (const Error& error) {
      return error;
    }
    return {ExitStatus::ok, "none", "it was loaded"};
  }

  const std::string path_ =
      (fs::temp_directory_path() / ("live_database_test." + std::to_string(::getpid()))).string();
};

TEST_F(DamagedStore, TablesAreNamedInOneLine) {
  store("a");
  replace_bytes("points", "po\nnts");
  const Error error = error_of_loading();
  EXPECT_EQ(error.code(), "store_format");
  EXPECT_NE(error.message().find("po nts"), std::string::npos) << error.what();
  EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
}

TEST_F(DamagedStore, SeriesAreNamedInOneLine) {
  store("first\nsecond");
  {
    LiveDatabase database(path_);
    LiveSeries later;
    later.id = "first\nsecond";
    later.append({1, 2, 3, 4}, 16);
    later.count = 9;  // the store has three steps: where are the others?
    database.append(later, {4}, 16);
  }
  const Error error = error_of_loading();
  EXPECT_EQ(error.code(), "store_damaged");
  EXPECT_NE(error.message().find(R"("first\nsecond")"), std::string::npos) << error.what();
  EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
}

}  // namespace
}  // namespace toto::server
