// SPDX-License-Identifier: Apache-2.0
#include "watched.h"

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

namespace nb = nanobind;

namespace toto::python {
namespace {

struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::exception_ptr thrown;
  std::function<void()> work;
};

std::mutex running_mutex;
std::condition_variable running_changed;
std::atomic<int> running = 0;

void run(const std::shared_ptr<Shared>& shared) {
  try {
    shared->work();
  } catch (...) {
    shared->thrown = std::current_exception();
  }
  {
    const nb::gil_scoped_acquire gil;
    shared->work = {};
  }
  {
    const std::scoped_lock lock(shared->mutex);
    shared->done = true;
  }
  shared->changed.notify_all();
  const std::scoped_lock lock(running_mutex);
  --running;
  running_changed.notify_all();
}

bool wait_a_while(Shared& shared) {
  const nb::gil_scoped_release free;
  std::unique_lock lock(shared.mutex);
  return shared.changed.wait_for(lock, std::chrono::milliseconds(20), [&] { return shared.done; });
}

}  // namespace

void run_watched(std::function<void()> work, const std::function<void()>& stop) {
  const auto shared = std::make_shared<Shared>();
  shared->work = std::move(work);
  {
    const std::scoped_lock lock(running_mutex);
    ++running;
  }
  std::thread([shared] { run(shared); }).detach();
  while (!wait_a_while(*shared)) {
    if (PyErr_CheckSignals() == 0) continue;
    stop();
    nb::raise_python_error();
  }
  if (shared->thrown) std::rethrow_exception(shared->thrown);
}

void forget_watched() noexcept { running = 0; }

void wait_for_watched() {
  const nb::gil_scoped_release free;
  std::unique_lock lock(running_mutex);
  running_changed.wait(lock, [] { return running == 0; });
}

}  // namespace toto::python
