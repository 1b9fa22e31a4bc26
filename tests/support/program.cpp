// SPDX-License-Identifier: Apache-2.0
#include "support/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "support/paths.h"

namespace toto::test {
namespace {

constexpr const char* kOut = ".stdout";
constexpr const char* kErr = ".stderr";
constexpr const char* kIn = ".stdin";

bool is_inherited(std::string_view variable) {
  for (const std::string_view prefix : {"TOTO_", "HF_", "HUGGINGFACE_", "XDG_", "HOME="}) {
    if (variable.starts_with(prefix)) return false;
  }
  return true;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

void Program::SetUp() {
  std::string name = (std::filesystem::temp_directory_path() / "toto-cli-XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  folder_ = name;
}

void Program::TearDown() {
  std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
  std::filesystem::remove_all(folder_);
  std::filesystem::remove_all(folder_.string() + "-home");
}

pid_t Program::start(const Invocation& invocation) {
  write(kIn, invocation.input);
  std::vector<std::string> arguments = {TOTO_PROGRAM};
  arguments.insert(arguments.end(), invocation.arguments.begin(), invocation.arguments.end());
  std::vector<std::string> environment = {"HOME=" + folder_.string() + "-home"};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (is_inherited(*entry)) environment.emplace_back(*entry);
  }
  for (const auto& [name, value] : invocation.environment)
    environment.push_back(name + "=" + value);

  const std::string out = invocation.stdout_path.empty() ? path(kOut) : invocation.stdout_path;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, path(kIn).c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, path(kErr).c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_addchdir_np(&actions, folder_.c_str());
  pid_t process = -1;
  const int error = posix_spawn(&process, TOTO_PROGRAM, &actions, nullptr,
                                pointers(arguments).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  // Without a process there is no number to go on with: -1 would signal every process there is.
  if (error != 0) throw std::runtime_error("cannot start " TOTO_PROGRAM);
  return process;
}

Result Program::shell(const std::string& line) {
  const std::string out = path(kOut), err = path(kErr);
  write(kIn, "exec >'" + out + "' 2>'" + err + "'; cd '" + folder_.string() + "' && export HOME='" +
                 folder_.string() + "-home' && " + line);
  const int status = std::system(("bash '" + path(kIn) + "'").c_str());
  Result result;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read_file(out);
  result.err = read_file(err);
  for (const char* name : {kIn, kOut, kErr}) std::filesystem::remove(folder_ / name);
  return result;
}

Result Program::wait(pid_t process) {
  int status = 0;
  EXPECT_EQ(waitpid(process, &status, 0), process);
  Result result;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read_file(path(kOut));
  result.err = read_file(path(kErr));
  for (const char* name : {kIn, kOut, kErr}) std::filesystem::remove(folder_ / name);
  return result;
}

std::string Program::write(const std::string& name, std::string_view content) const {
  const std::filesystem::path file = folder_ / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
  return file.string();
}

std::vector<std::string> Program::listing() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

const char* program_path() { return TOTO_PROGRAM; }

std::string tiny_model() { return data_path("golden/toto1-tiny-a"); }

std::string two_columns(int days) {
  std::string text = "date,web,api\n";
  for (int day = 0; day < days; ++day) {
    using namespace std::chrono;
    const year_month_day date = sys_days(2024y / January / 1) + std::chrono::days(day);
    char line[96];
    std::snprintf(line, sizeof line, "%04d-%02u-%02u,%.4f,%.4f\n", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  100 + 0.3 * day + 10 * std::sin(day * 0.9),
                  40 - 0.1 * day + 5 * std::cos(day * 0.4));
    text += line;
  }
  return text;
}

void expect_failure(const Result& result, int status, std::string_view code) {
  EXPECT_EQ(result.status, status) << result.err;
  const std::string start = "toto: [" + std::string(code) + "] ";
  EXPECT_TRUE(result.err.starts_with(start)) << "expected " << start << "found " << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

}  // namespace toto::test
