// SPDX-License-Identifier: Apache-2.0
#include "engine/service/forecaster_runner.h"

#include <fmt/format.h>

#include "engine/forecast_jobs.h"
#include "engine/prepare.h"
#include "models/model_impl.h"
#include "settings/complete.h"

namespace toto {

void check_replicas(std::span<const Model> replicas) {
  const auto refuse = [](std::string_view message, std::string_view remedy) {
    throw Error(ExitStatus::usage, "invalid_replicas", message, {}, remedy);
  };
  if (replicas.empty()) refuse("expected at least one model, found none", "load one");
  const Model::Impl& first = replicas.front().impl();
  for (std::size_t i = 1; i < replicas.size(); ++i) {
    const Model::Impl& other = replicas[i].impl();
    for (std::size_t j = 0; j < i; ++j) {
      if (&other == &replicas[j].impl()) {
        refuse(fmt::format("models {} and {} are one and share a device", j, i),
               "load one replica for each device (load_replicas)");
      }
    }
    if (other.content_hash != first.content_hash || other.precision != first.precision ||
        other.mode != first.mode || other.info.defaults != first.info.defaults ||
        other.net->backend().name() != first.net->backend().name() ||
        other.net->backend().isa() != first.net->backend().isa()) {
      refuse(
          fmt::format(
              "models 0 and {} differ in weights, precision, mode, defaults or kind of device, so "
              "that bits would depend on which one computes",
              i),
          "use replicas of one model, and a service for each kind of device");
    }
  }
}

namespace {

/// One is made ready and one is computed, while the results of a third are given out.
constexpr std::size_t kDeviceLanes = 3;

std::size_t lanes_of(const Model& model) {
  return model.impl().net->backend().capture() != nullptr ? kDeviceLanes : 1;
}

/// When the last call that uses it has ended, it goes.
std::shared_ptr<Forecaster::Impl> shared(std::unique_ptr<Forecaster::Impl> impl) {
  return {impl.release(),
          [](Forecaster::Impl* p) { retire(std::unique_ptr<Forecaster::Impl>(p)); }};
}

}  // namespace

ForecasterRunner::ForecasterRunner(const Model& model, const ForecasterOptions& options)
    : model_(model),
      device_(model.impl().net->backend().device()),
      cost_(*model.impl().net, model.info().defaults),
      jobs_(lanes_of(model)),
      forecaster_(
          shared(std::make_unique<Forecaster::Impl>(model, complete(options), lanes_of(model)))) {
  forecaster_->start();
}

void ForecasterRunner::check(const Request& request) const {
  check_options(request.options);
  check_series(request.series, model_.impl().net->patch(), request.options.align,
               request.options.horizon);
  const std::size_t size = array_size(request.series.variates, request.options);
  if (!request.out.empty() && request.out.size() != size) {
    throw Error(ExitStatus::usage, "invalid_output",
                fmt::format("expected an array of {} numbers, found {}", size, request.out.size()));
  }
}

Estimate ForecasterRunner::estimate(const Request& request, bool bytes) const {
  return cost_.of(request, bytes);
}

bool ForecasterRunner::compatible(const Request& a, const Request& b) const {
  return ForecastWriter::alike(a.options, b.options, model_.info().defaults);
}

ForecasterRunner::Shared ForecasterRunner::current() {
  const std::scoped_lock lock(mutex_);
  return forecaster_;
}

/// The first lane that lacks memory goes to the CPU, and all others with it.
ForecasterRunner::Shared ForecasterRunner::on_cpu(const Shared& lacking, const std::string& lack) {
  const std::scoped_lock lock(mutex_);
  if (forecaster_ == lacking) forecaster_ = shared(lacking->on_cpu(lack));
  return forecaster_;
}

void ForecasterRunner::run(std::span<const Request* const> requests, std::span<Outcome> outcomes,
                           const RunnerCall& call) {
  std::vector<ForecastJob>& jobs = jobs_[call.lane];
  jobs.clear();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    jobs.push_back(
        {&requests[i]->series, &requests[i]->options, &outcomes[i].forecast, requests[i]->out});
  }
  const Progress progress = [&call](std::size_t, std::size_t) { return !call.stop(); };
  const Forecaster::Impl::Call asked{call.lane, jobs, &progress, &call.handed_over};
  const Shared forecaster = current();
  const std::string lack = forecaster->try_forecast(asked);
  if (!lack.empty()) on_cpu(forecaster, lack)->forecast(asked);
}

}  // namespace toto
