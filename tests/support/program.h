// SPDX-License-Identifier: Apache-2.0
// Running the built program, and a folder of its own for each test.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace toto::test {

struct Result {
  int status = -1;  // of exit; 128 + n where signal n ended it
  std::string out;
  std::string err;
};

struct Invocation {
  std::vector<std::string> arguments;
  std::string input;                                             // standard input
  std::vector<std::pair<std::string, std::string>> environment;  // added to a clean one
  std::string stdout_path;  // standard output goes there instead of into the result
};

class Program : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// Starts the program in the test's folder, with HOME there and no TOTO_*, HF_* or XDG_*
  /// variable.
  pid_t start(const Invocation& invocation);
  Result wait(pid_t process);
  Result run(const Invocation& invocation) { return wait(start(invocation)); }
  Result run(std::vector<std::string> arguments) {
    return run(Invocation{std::move(arguments), {}, {}, {}});
  }

  /// Runs a line of bash in the test's folder, with HOME there; its streams are taken like those of
  /// run(), and the line may redirect them.
  Result shell(const std::string& line);

  /// Writes a file into the test's folder and returns its path.
  std::string write(const std::string& name, std::string_view content) const;
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  /// The names in the test's folder, sorted.
  [[nodiscard]] std::vector<std::string> listing() const;

  std::filesystem::path folder_;
};

std::string read_file(const std::string& path);

/// The built program, for tests that start it by way of a shell.
const char* program_path();

/// A small real checkpoint (patch 8) and a CSV file of two columns over 64 days.
std::string tiny_model();
std::string two_columns(int days = 64);

/// That a run failed with this exit status and one line on stderr that starts with the code.
void expect_failure(const Result& result, int status, std::string_view code);

}  // namespace toto::test
