// SPDX-License-Identifier: Apache-2.0
// A thread that waits for signals, which are blocked everywhere else.
#include "cli/interrupt.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "cli/process.h"
#include "core/atomic_file.h"
#include "toto/error.hpp"

namespace toto::cli {
namespace {

std::atomic<int> received = 0;  // the signal that asked for the end

/// The signals to wait for: a blocked one is kept for its reader even if it is ignored.
sigset_t heeded() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

Interrupt::Interrupt() {
  const sigset_t set = heeded();
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &set, &before);
  try {
    if (signals_ < 0 || wake_ < 0) throw std::system_error(errno, std::system_category());
    watcher_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::close(signals_);
    ::close(wake_);
    throw Error(ExitStatus::internal, "no_threads", "the system has no more threads or files",
                "toto", "raise the limit (ulimit -u, ulimit -n), or end other programs");
  }
}

Interrupt::~Interrupt() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ended_changed_.notify_one();
  [[maybe_unused]] const int woken = eventfd_write(wake_, 1);
  watcher_.join();
  ::close(signals_);
  ::close(wake_);
}

void Interrupt::watch() {
  std::array<pollfd, 2> both = {pollfd{signals_, POLLIN, 0}, pollfd{wake_, POLLIN, 0}};
  while (::poll(both.data(), both.size(), -1) < 0 && errno == EINTR) {
  }
  signalfd_siginfo signal = {};
  if ((both[0].revents & POLLIN) == 0) return;
  if (::read(signals_, &signal, sizeof(signal)) != sizeof(signal)) return;
  received = static_cast<int>(signal.ssi_signo);
  std::unique_lock lock(mutex_);
  requested_ = true;
  if (ended_changed_.wait_for(lock, std::chrono::milliseconds(800), [this] { return ended_; })) {
    return;
  }
  remove_unfinished_files();
  end_by_signal();
  write_to_stderr("toto: [interrupted] stopped\n");
  ::_exit(static_cast<int>(ExitStatus::interrupted));
}

void end_by_signal() noexcept {
  const int signal = received;
  if (signal != SIGTERM && signal != SIGHUP) return;
  ::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(signal);
}

}  // namespace toto::cli
