// SPDX-License-Identifier: Apache-2.0
// Log events: what the library says while it works. It writes to no stream: a program gives a sink.
#pragma once

#include <functional>
#include <string_view>

#pragma GCC visibility push(default)
namespace toto {

/// What an event is about. TOTO_LOG and --log choose by these words.
enum class Topic {
  plans,     ///< plans built and evicted, kernels chosen by measurement
  graphs,    ///< captures, evictions and fallbacks of graphs
  cache,     ///< the plan cache on disk
  memory,    ///< batches split to fit
  device,    ///< where it computes, and when that changes
  settings,  ///< variables that are set and mean something else here, or nothing
};

enum class Severity {
  info,     ///< as it should be
  warning,  ///< not as it was asked to be; no result is wrong
};

/// One event. The texts belong to the library and live only as long as the call of the sink.
struct LogEvent {
  Topic topic = Topic::plans;
  Severity severity = Severity::info;
  std::string_view code;     ///< stable: "plan_built", "graph_fallback", ... (docs/settings.md)
  std::string_view message;  ///< one line for people, without a full stop; may change
};

/// Called on the thread that forecasts or loads, while it waits: it must not call back into the
/// forecaster. What it throws ends the call that logs. Empty: nothing is logged.
using LogSink = std::function<void(const LogEvent&)>;

/// "plans", "graphs", "cache", "memory", "device", "settings".
std::string_view word(Topic topic);
/// "info", "warning".
std::string_view word(Severity severity);

}  // namespace toto
#pragma GCC visibility pop
