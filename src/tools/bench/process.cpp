// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/process.h"

#include "core/status_file.h"

namespace toto {

std::uint64_t peak_rss() {
  const std::string kibibytes = status_field("/proc/self/status", "VmHWM");
  return kibibytes.empty() ? 0 : std::stoull(kibibytes) * 1024;
}

}  // namespace toto
