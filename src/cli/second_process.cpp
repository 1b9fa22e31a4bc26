// SPDX-License-Identifier: Apache-2.0
#include "cli/second_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "toto/error.hpp"

extern char** environ;  // NOLINT: of POSIX, which declares it nowhere

namespace toto::cli {
namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ExitStatus::internal, "second_process", message, "toto verify");
}

/// What comes out of a pipe until the other end is closed.
std::string drain(int fd) {
  std::string text;
  std::array<char, 1 << 16> piece;
  for (;;) {
    const ssize_t count = ::read(fd, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

std::string run_second_process(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"toto"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(all.size() + 1);
  for (std::string& one : all) argv.push_back(one.data());
  argv.push_back(nullptr);

  int ends[2] = {};
  // What it says on standard error has been said here already; it is wanted where it fails.
  const int errors = ::memfd_create("standard error of the other process", MFD_CLOEXEC);
  if (errors < 0 || ::pipe2(ends, O_CLOEXEC) != 0) fail(std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  posix_spawnattr_t attributes;  // SIGINT is blocked here (cli/interrupt.h), but not there
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t process = 0;
  const int error =
      ::posix_spawn(&process, "/proc/self/exe", &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    ::close(errors);
    fail(std::strerror(error));
  }
  std::string text = drain(ends[0]);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  ::lseek(errors, 0, SEEK_SET);
  const std::string said = drain(errors);
  ::close(errors);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail("the other process failed: " + said);
  return text;
}

void end_with_parent() { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }

}  // namespace toto::cli
