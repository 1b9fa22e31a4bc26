// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

namespace toto {

std::string_view word(Topic topic) {
  switch (topic) {
    case Topic::plans:
      return "plans";
    case Topic::graphs:
      return "graphs";
    case Topic::cache:
      return "cache";
    case Topic::memory:
      return "memory";
    case Topic::device:
      return "device";
    case Topic::settings:
      return "settings";
  }
  return {};
}

std::string_view word(Severity severity) {
  return severity == Severity::warning ? "warning" : "info";
}

}  // namespace toto
