// SPDX-License-Identifier: Apache-2.0
#include "service.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "batch.h"
#include "call.h"
#include "errors.h"
#include "load.h"
#include "model.h"
#include "options.h"
#include "result.h"
#include "toto/service.hpp"

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT(google-build-using-namespace): "name"_a

namespace toto::python {
namespace {

/// What stands between an answer and whoever asked: touched with the GIL held.
struct Waiting {
  nb::object done;  ///< called with (result, None) or (None, exception)
  std::string id;
  std::vector<std::size_t> targets;
  std::size_t rank = 1;
  Effects effects;
  Guards guards;
};

/// Delivers answers on a thread of its own.
class Delivery {
 public:
  Delivery() : thread_([this] { run(); }) {}
  ~Delivery() { stop(); }
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  void add(Future future, std::shared_ptr<Waiting> waiting) {
    {
      const std::scoped_lock lock(mutex_);
      ready_.emplace_back(std::move(future), std::move(waiting));
    }
    changed_.notify_one();
  }
  /// Delivers what is there, then ends. Without the GIL.
  void stop() {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

 private:
  using Item = std::pair<Future, std::shared_ptr<Waiting>>;

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stop_ || !ready_.empty(); });
      if (ready_.empty()) return;
      std::deque<Item> items = std::exchange(ready_, {});
      lock.unlock();
      {
        const nb::gil_scoped_acquire gil;
        for (Item& item : items) deliver(item.first, *item.second);
        items.clear();
      }
      lock.lock();
    }
  }

  static void deliver(Future& future, Waiting& waiting) {
    const nb::object done = std::move(waiting.done);
    try {
      if (const Error* error = future.error()) {
        done(nb::none(), exception_of(*error));
        return;
      }
      std::vector<Forecast> one;
      one.push_back(future.get());
      waiting.effects.put_back(one, waiting.guards);
      done(Result(std::move(one), {waiting.id}, std::move(waiting.targets), waiting.rank,
                  waiting.rank == 1),
           nb::none());
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("toto_cpp: a callback of a future");
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> ready_;
  bool stop_ = false;
  std::thread thread_;
};

std::vector<Model> replicas_of(ModelHandle& handle, const std::vector<std::string>& devices) {
  const auto loaded = handle.loaded();
  if (devices.empty()) return {loaded->model};
  const Recipe& recipe = handle.recipe();
  const nb::gil_scoped_release free;
  return load_replicas(query_of(recipe, loaded->settings), load_options_of(loaded->settings),
                       devices);
}

class ServiceHandle {
 public:
  ServiceHandle(ModelHandle& model, const std::vector<std::string>& devices, std::size_t max_queue,
                double max_batch_cost, std::size_t max_batch_requests, double max_request_cost,
                std::uint64_t memory_limit)
      : info_(model.loaded()->model.info()), generation_(fork_generation()) {
    ServiceOptions options;
    options.max_queue = max_queue;
    options.max_batch_cost = max_batch_cost;
    options.max_batch_requests = max_batch_requests;
    options.max_request_cost = max_request_cost;
    options.memory_limit = memory_limit;
    options.forecaster = forecaster_options_of(model.loaded()->settings);
    const std::vector<Model> replicas = replicas_of(model, devices);
    delivery_ = std::make_unique<Delivery>();
    service_ = std::make_unique<Service>(replicas, options);
  }
  ~ServiceHandle() { close(); }
  ServiceHandle(const ServiceHandle&) = delete;
  ServiceHandle& operator=(const ServiceHandle&) = delete;

  Future submit(nb::handle inputs, const Options& options, nb::object id, nb::object mask,
                nb::object groups, nb::object covariates, int priority,
                std::optional<double> timeout, nb::object done) {
    Service& service = alive();
    Batch batch(inputs,
                extras_of(options, std::move(id), std::move(mask), std::move(groups),
                          std::move(covariates), 0, nb::none(), nb::none()),
                info_, options.forecast.horizon);
    if (batch.rank() > 2) {
      refuse("invalid_input", "expected one series, found a batch", "inputs",
             "submit its series one by one");
    }
    {
      const nb::gil_scoped_release free;
      batch.take_out_effects();
    }
    Request request{.series = batch.series().front(),
                    .options = batch.effects().options_of_rest(options.forecast)};
    request.priority = priority;
    if (timeout) {
      request.deadline = std::chrono::steady_clock::now() +
                         std::chrono::duration_cast<std::chrono::nanoseconds>(
                             std::chrono::duration<double>(std::clamp(*timeout, 0.0, 1e9)));
    }
    auto waiting = std::make_shared<Waiting>();
    waiting->done = std::move(done);
    waiting->id = std::string(request.series.id);
    waiting->targets = batch.targets();
    waiting->rank = batch.rank();
    waiting->guards = options.forecast.guards;
    waiting->effects = std::move(batch.effects());
    const nb::gil_scoped_release free;
    return service.submit(request, [delivery = delivery_.get(), waiting = std::move(waiting)](
                                       Future f) { delivery->add(std::move(f), waiting); });
  }

  std::string counters() {
    Service& service = alive();
    const nb::gil_scoped_release free;
    return to_json(service.counters());
  }
  bool drain(double timeout) {
    Service& service = alive();
    const nb::gil_scoped_release free;
    return service.drain(std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(std::clamp(timeout, 0.0, 1e9))));
  }
  void close() {
    if (!service_) return;
    if (generation_ != fork_generation()) {  // its threads are in the other process
      (void)service_.release();
      (void)delivery_.release();
      return;
    }
    const nb::gil_scoped_release free;
    service_->close();
    delivery_->stop();
    service_.reset();
    delivery_.reset();
  }

 private:
  Service& alive() {
    if (!service_) refuse("closed", "this service was closed", "Service", "make another one");
    if (generation_ != fork_generation()) {
      refuse("forked", "this service is of the process that was forked", "Service",
             "make one in each process");
    }
    return *service_;
  }

  ModelInfo info_;
  unsigned generation_;
  std::unique_ptr<Delivery> delivery_;
  std::unique_ptr<Service> service_;
};

}  // namespace

void bind_service(nb::module_& module) {
  nb::class_<Future>(module, "NativeFuture", "A request of a service.")
      .def("cancel", &Future::cancel, nb::call_guard<nb::gil_scoped_release>())
      .def("ready", &Future::ready)
      .def("queue_seconds", &Future::queue_seconds)
      .def("compute_seconds", &Future::compute_seconds);
  nb::class_<ServiceHandle>(module, "ServiceHandle", "A service and the delivery of its answers.")
      .def(nb::init<ModelHandle&, const std::vector<std::string>&, std::size_t, double, std::size_t,
                    double, std::uint64_t>(),
           "model"_a, "devices"_a, "max_queue"_a, "max_batch_cost"_a, "max_batch_requests"_a,
           "max_request_cost"_a, "memory_limit"_a)
      .def("submit", &ServiceHandle::submit, "inputs"_a, "options"_a, "id"_a.none(),
           "mask"_a.none(), "groups"_a.none(), "covariates"_a.none(), "priority"_a,
           "timeout"_a.none(), "done"_a)
      .def("counters", &ServiceHandle::counters)
      .def("drain", &ServiceHandle::drain, "timeout"_a)
      .def("close", &ServiceHandle::close);
}

}  // namespace toto::python
