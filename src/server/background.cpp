// SPDX-License-Identifier: Apache-2.0
#include "server/background.h"

#include <fmt/format.h>

namespace toto::server {

void Background::stop() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Background::add(ModelPointer model, std::shared_ptr<std::atomic<bool>> gone, Work work) {
  const std::scoped_lock lock(mutex_);
  if (ends_) throw Error(ExitStatus::usage, "draining", "the server ends");
  if (waiting_.size() >= max_waiting_) {
    throw Error(ExitStatus::usage, "queue_full",
                fmt::format("{} searches for anomalies wait", waiting_.size()), {},
                "try again in 5 s");
  }
  waiting_.push_back({std::move(model), std::move(gone), std::move(work)});
  changed_.notify_all();
}

void Background::run() {
  std::weak_ptr<ServedModel> last;  // whose forecaster it is: one that was replaced may go
  std::optional<Forecaster> forecaster;
  for (;;) {
    Item item;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      item = std::move(waiting_.front());
      waiting_.pop_front();
    }
    const auto make = [&]() -> Forecaster& {
      if (!forecaster || last.lock() != item.model) {
        forecaster.reset();
        forecaster.emplace(item.model->model.value(), item.model->forecaster);
        last = item.model;
      }
      return *forecaster;
    };
    item.work(make, [this, &item] { return ends_ || *item.gone; });
  }
}

}  // namespace toto::server
