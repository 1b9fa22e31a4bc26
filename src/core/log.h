// SPDX-License-Identifier: Apache-2.0
// Sends log events to a sink that may be empty.
#pragma once

#include <string_view>

#include "toto/log.hpp"

namespace toto {

inline void log_info(const LogSink& sink, Topic topic, std::string_view code,
                     std::string_view message) {
  if (sink) sink({topic, Severity::info, code, message});
}

inline void log_warning(const LogSink& sink, Topic topic, std::string_view code,
                        std::string_view message) {
  if (sink) sink({topic, Severity::warning, code, message});
}

}  // namespace toto
