// SPDX-License-Identifier: Apache-2.0
// Counters of a service for programs.
#include <nlohmann/json.hpp>

#include "toto/service.hpp"

namespace toto {
namespace {

nlohmann::ordered_json json_of(const Quantiles& q) {
  return {{"p50", q.p50}, {"p95", q.p95}, {"p99", q.p99}};
}

}  // namespace

std::string to_json(const ServiceCounters& c) {
  nlohmann::ordered_json json = {{"submitted", c.submitted},
                                 {"completed", c.completed},
                                 {"failed", c.failed},
                                 {"cancelled", c.cancelled},
                                 {"expired", c.expired},
                                 {"refused_queue_full", c.refused_queue_full},
                                 {"refused_too_large", c.refused_too_large},
                                 {"refused_draining", c.refused_draining},
                                 {"queued", c.queued},
                                 {"running", c.running},
                                 {"batches", c.batches},
                                 {"callback_errors", c.callback_errors},
                                 {"batch_costs", c.batch_costs},
                                 {"queue", json_of(c.queue)},
                                 {"compute", json_of(c.compute)},
                                 {"devices", nlohmann::ordered_json::array()}};
  for (const ServiceCounters::Device& d : c.devices) {
    json["devices"].push_back({{"name", d.name},
                               {"batches", d.batches},
                               {"requests", d.requests},
                               {"cost", d.cost},
                               {"busy_seconds", d.busy_seconds},
                               {"busy", d.busy}});
  }
  return json.dump(2);
}

}  // namespace toto
