// SPDX-License-Identifier: Apache-2.0
// SIGINT as a question that the work asks, with a limit on how long it may take to ask.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace toto::cli {

/// While it lives, SIGINT sets `requested()`. Work that has not ended 0.8 s later is ended with
/// exit status 130: results are written under a temporary name, so none is ever left half-written.
/// Make it before any other thread, so that they all leave the signal to it.
class Interrupt {
 public:
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
  std::thread watcher_;
};

}  // namespace toto::cli
