// SPDX-License-Identifier: Apache-2.0
// Sinks that keep what is logged, for tests.
#pragma once

#include <string>
#include <vector>

#include "toto/log.hpp"

namespace toto::test {

/// A sink that adds the messages of one severity to `lines`, which must outlive it.
inline LogSink lines_of(Severity severity, std::vector<std::string>& lines) {
  return [severity, &lines](const LogEvent& event) {
    if (event.severity == severity) lines.emplace_back(event.message);
  };
}
inline LogSink infos_into(std::vector<std::string>& lines) {
  return lines_of(Severity::info, lines);
}
inline LogSink warnings_into(std::vector<std::string>& lines) {
  return lines_of(Severity::warning, lines);
}

/// The same event with texts of its own.
struct KeptEvent {
  Topic topic;
  Severity severity;
  std::string code, message;
};
inline LogSink events_into(std::vector<KeptEvent>& events) {
  return [&events](const LogEvent& event) {
    events.push_back(
        {event.topic, event.severity, std::string(event.code), std::string(event.message)});
  };
}

}  // namespace toto::test
