// SPDX-License-Identifier: Apache-2.0
#include "engine/service/forecaster_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/prepare.h"
#include "engine/service/request_cost.h"
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
    : model_(model), device_(model.impl().net->backend().device()), forecaster_(model, options) {}

void ForecasterRunner::check(const Request& request) const {
  check_series(request.series, model_.info().patch_size, request.options.align,
               request.options.horizon);
}

Estimate ForecasterRunner::estimate(const Request& request) const {
  const Model::Impl& model = model_.impl();
  const bool eager = model.mode == Mode::eager;
  const std::size_t element = model.net->backend().element_size();
  return {tokens_of(request, model_.info(), eager),
          least_bytes(request, model_.info(), element, eager), 0};
}

bool ForecasterRunner::compatible(const Request& a, const Request& b) const {
  const ForecastOptions& x = a.options;
  const ForecastOptions& y = b.options;
  return x.horizon == y.horizon && x.mean_only == y.mean_only && x.num_samples == y.num_samples &&
         x.seed == y.seed && x.decode == y.decode && x.quantiles_from == y.quantiles_from &&
         x.align == y.align && x.decoding == y.decoding && x.keep_samples == y.keep_samples &&
         x.keep_parameters == y.keep_parameters && x.time_device == y.time_device &&
         x.levels == y.levels;
}

/// For each request, how many before it have its id: a forecaster takes each id once.
void ForecasterRunner::count_earlier_ids(std::span<const Request* const> requests) {
  order_.resize(requests.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
    const int by_id = requests[a]->series.id.compare(requests[b]->series.id);
    return by_id != 0 ? by_id < 0 : a < b;
  });
  earlier_.assign(requests.size(), 0);
  for (std::size_t i = 1; i < order_.size(); ++i) {
    if (requests[order_[i]]->series.id == requests[order_[i - 1]]->series.id) {
      earlier_[order_[i]] = earlier_[order_[i - 1]] + 1;
    }
  }
}

void ForecasterRunner::run(std::span<const Request* const> requests, std::span<Outcome> outcomes,
                           const StopCheck& stop) {
  count_earlier_ids(requests);
  options_ = requests.front()->options;
  options_.progress = [&stop](std::size_t, std::size_t) { return !stop(); };
  for (std::size_t round = 0, done = 0; done < requests.size(); ++round) {
    members_.clear();
    series_.clear();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (earlier_[i] != round) continue;
      members_.push_back(i);
      series_.push_back(requests[i]->series);
    }
    out_.resize(members_.size());
    forecaster_.forecast(series_, options_, out_);
    for (std::size_t k = 0; k < members_.size(); ++k) {
      outcomes[members_[k]].forecast = std::exchange(out_[k], {});
    }
    done += members_.size();
  }
}

}  // namespace toto
