// SPDX-License-Identifier: Apache-2.0
// Signals that end a program as a question that the work asks, with a limit on how long it may take
// to ask.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace toto::cli {

/// While it lives, SIGINT, SIGTERM and SIGHUP set `requested()`. Work that has not ended 0.8 s
/// later is ended: with exit status 130 after SIGINT, by the signal itself after the others.
/// Results are written under a temporary name, which is removed, so that none is ever left
/// half-written. A signal that the parent made this process ignore (nohup, `&` of a script) stays
/// ignored. Make it before any other thread, so that they all leave the signals to it.
class Interrupt {
 public:
  /// Throws Error no_threads (70).
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  [[nodiscard]] bool requested() const { return requested_; }

 private:
  void watch();

  std::atomic<bool> requested_ = false;
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  bool ended_ = false;
  int signals_ = -1;  // a signalfd
  int wake_ = -1;     // an eventfd, written to when the watcher is to stop
  std::thread watcher_;
};

/// After the work has been stopped by SIGTERM or SIGHUP: ends the process by that signal, so that
/// its parent sees what it asked for. Does nothing otherwise.
void end_by_signal() noexcept;

}  // namespace toto::cli
