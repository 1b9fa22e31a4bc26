// SPDX-License-Identifier: Apache-2.0
#include "engine/service/forecaster_runner.h"

#include <fmt/format.h>

#include "engine/forecast_jobs.h"
#include "engine/prepare.h"
#include "models/model_impl.h"

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
        other.mode != first.mode || other.net->backend().name() != first.net->backend().name() ||
        other.net->backend().isa() != first.net->backend().isa()) {
      refuse(fmt::format("models 0 and {} differ in weights, precision, mode or kind of device, so "
                         "that bits would depend on which one computes",
                         i),
             "use replicas of one model, and a service for each kind of device");
    }
  }
}

ForecasterRunner::ForecasterRunner(const Model& model, const ForecasterOptions& options)
    : model_(model),
      device_(model.impl().net->backend().device()),
      cost_(*model.impl().net),
      forecaster_(model, options) {}

bool ForecasterRunner::on_device() const {
  return model_.impl().net->backend().capture() != nullptr;
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
  return ForecastWriter::alike(a.options, b.options);
}

void ForecasterRunner::run(std::span<const Request* const> requests, std::span<Outcome> outcomes,
                           const StopCheck& stop) {
  jobs_.clear();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    jobs_.push_back(
        {&requests[i]->series, &requests[i]->options, &outcomes[i].forecast, requests[i]->out});
  }
  forecast_jobs(forecaster_, jobs_, [&stop](std::size_t, std::size_t) { return !stop(); });
}

}  // namespace toto
