// SPDX-License-Identifier: Apache-2.0
// What engines have in common whose calls overlap on one device: captured forecasts and counts.
// Under the turn of the model (Model::Impl::turn).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>

#include "engine/graph_cache.h"
#include "models/cost.h"
#include "models/executor.h"

namespace toto {

struct DeviceWork {
  DeviceWork(Backend& backend, std::size_t max_graphs) : graphs(backend, max_graphs) {}

  GraphCache graphs;
  std::size_t under_way = 0;        // captured forecasts, of all engines
  std::uint64_t landed = 0;         // captured forecasts that were under way and are not any more
  std::condition_variable landing;  // `landed` has grown

  std::uint64_t splits = 0, allocations = 0, host_reads = 0;
  std::uint64_t graph_captures = 0, graph_replays = 0, graph_fallbacks = 0;
  std::uint64_t launches = 0;  // kernels of the last graph
  double device_seconds = 0, capture_seconds = 0;
  Cost cost;
  StageTimes times;
};

}  // namespace toto
