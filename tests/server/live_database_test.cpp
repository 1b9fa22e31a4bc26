// SPDX-License-Identifier: Apache-2.0
// Stores that are damaged: what is said of them is one line, whatever stands in the file.
#include "server/live_database.h"

#include <gtest/gtest.h>

#include <string>

#include "support/test_files.h"
#include "toto/error.hpp"

namespace toto::server {
namespace {

class DamagedStore : public testing::Test {
 protected:
  void store(const std::string& id) const {
    LiveDatabase database(path_);
    LiveSeries series;
    series.id = id;
    series.append({1, 2, 3}, 16);
    database.put(series);
  }
  /// Every `from` in the file becomes `to`, which is as long.
  void replace_bytes(const std::string& from, const std::string& to) const {
    std::string bytes = test::read_file(path_);
    for (std::size_t at = bytes.find(from); at != bytes.npos; at = bytes.find(from, at + 1)) {
      bytes.replace(at, from.size(), to);
    }
    folder_.write(kName, bytes);
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

  static constexpr const char* kName = "series.db";
  test::TempFolder folder_;
  const std::string path_ = folder_.path(kName);
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
