// SPDX-License-Identifier: Apache-2.0
// Work that takes a while and needs a forecaster of its own: off the threads of the transport.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "server/models.h"

namespace toto::server {

/// One thread, which does one thing after another. Safe to use from many threads.
class Background {
 public:
  /// `forecaster` gives one of the model, or throws what making it throws; `stop` says that nobody
  /// needs the result any more.
  using Work = std::function<void(const std::function<Forecaster&()>& forecaster,
                                  const std::function<bool()>& stop)>;

  explicit Background(std::size_t max_waiting) : max_waiting_(max_waiting) {
    thread_ = std::thread([this] { run(); });
  }
  ~Background() { stop(); }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// What waits and what runs is told to stop, and from now on nothing is taken. Returns when all
  /// of it has ended.
  void stop();
  /// `gone` becomes true when the client goes. Throws Error queue_full,
  /// draining. `work` is called in any case, also when nobody needs it: it answers. It must not
  /// throw.
  void add(ModelPointer model, std::shared_ptr<std::atomic<bool>> gone, Work work);

 private:
  struct Item {
    ModelPointer model;
    std::shared_ptr<std::atomic<bool>> gone;
    Work work;
  };
  void run();

  const std::size_t max_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> waiting_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace toto::server
