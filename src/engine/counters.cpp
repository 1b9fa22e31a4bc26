// SPDX-License-Identifier: Apache-2.0
// Counters for people (one line) and for programs (JSON).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "toto/forecast.hpp"

namespace toto {

std::string summary(const Counters& c) {
  std::string line =
      fmt::format("{} forecast{} of {} series, {:.1f} ms each (p50; p99 {:.1f})", c.forecasts,
                  c.forecasts == 1 ? "" : "s", c.series, c.latency_p50 * 1e3, c.latency_p99 * 1e3);
  line += fmt::format("; plans: {} built in {:.1f} ms, {} hits, {} evicted, {:.1f} MiB",
                      c.plan_builds, c.plan_seconds * 1e3, c.plan_hits, c.plan_evictions,
                      static_cast<double>(c.working_bytes) / (1 << 20));
  line += fmt::format("; {} allocations, {} splits, {} parks, {} host reads", c.allocations,
                      c.splits, c.thread_parks, c.host_reads);
  line += fmt::format("; graphs: {} captured, {} replayed, {} fallbacks", c.graph_captures,
                      c.graph_replays, c.graph_fallbacks);
  return line;
}

std::string to_json(const Counters& c, std::size_t indent) {
  const nlohmann::ordered_json json = {{"forecasts", c.forecasts},
                                       {"series", c.series},
                                       {"plan_builds", c.plan_builds},
                                       {"plan_hits", c.plan_hits},
                                       {"plan_evictions", c.plan_evictions},
                                       {"plan_seconds", c.plan_seconds},
                                       {"capture_seconds", c.capture_seconds},
                                       {"autotune_seconds", c.autotune_seconds},
                                       {"load_seconds", c.load_seconds},
                                       {"allocations", c.allocations},
                                       {"splits", c.splits},
                                       {"thread_parks", c.thread_parks},
                                       {"host_reads", c.host_reads},
                                       {"graph_captures", c.graph_captures},
                                       {"graph_replays", c.graph_replays},
                                       {"graph_launches", c.graph_launches},
                                       {"graph_fallbacks", c.graph_fallbacks},
                                       {"autotune_runs", c.autotune_runs},
                                       {"cache_loads", c.cache_loads},
                                       {"device_seconds", c.device_seconds},
                                       {"prepare_seconds", c.prepare_seconds},
                                       {"context_seconds", c.context_seconds},
                                       {"decode_seconds", c.decode_seconds},
                                       {"statistics_seconds", c.statistics_seconds},
                                       {"working_bytes", c.working_bytes},
                                       {"operations", c.operations},
                                       {"weight_bytes", c.weight_bytes},
                                       {"latency_p50", c.latency_p50},
                                       {"latency_p95", c.latency_p95},
                                       {"latency_p99", c.latency_p99},
                                       {"plan", c.plan},
                                       {"builds", c.builds}};
  std::string text = json.dump(2);
  if (indent == 0) return text;
  std::string shifted;
  for (const char ch : text) {
    shifted += ch;
    if (ch == '\n') shifted.append(indent, ' ');
  }
  return shifted;
}

}  // namespace toto
