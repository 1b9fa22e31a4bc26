// SPDX-License-Identifier: Apache-2.0
// A thread that waits for SIGINT, which is blocked everywhere else.
#include "cli/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string_view>

#include "core/atomic_file.h"
#include "toto/error.hpp"

namespace toto::cli {
namespace {

sigset_t interrupt_set() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

Interrupt::Interrupt() {
  const sigset_t set = interrupt_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  watcher_ = std::thread([this] { watch(); });
}

Interrupt::~Interrupt() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ended_changed_.notify_one();
  pthread_kill(watcher_.native_handle(), SIGINT);  // out of sigwait
  watcher_.join();
}

void Interrupt::watch() {
  const sigset_t set = interrupt_set();
  int signal = 0;
  sigwait(&set, &signal);
  std::unique_lock lock(mutex_);
  if (ended_) return;
  requested_ = true;
  if (ended_changed_.wait_for(lock, std::chrono::milliseconds(800), [this] { return ended_; })) {
    return;
  }
  remove_unfinished_files();
  constexpr std::string_view line = "toto: [interrupted] stopped\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
  _exit(static_cast<int>(ExitStatus::interrupted));
}

}  // namespace toto::cli
