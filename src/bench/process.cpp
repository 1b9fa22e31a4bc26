// SPDX-License-Identifier: Apache-2.0
#include "bench/process.h"

#include <fstream>

namespace toto {
namespace {

/// The rest of the first line of `file` that begins with `name`, blanks and the colon left out.
std::string field(const char* file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(name)) continue;
    const std::size_t at = line.find_first_not_of(" \t:", name.size());
    return at == std::string::npos ? std::string() : line.substr(at);
  }
  return {};
}

}  // namespace

void reset_peak_rss() { std::ofstream("/proc/self/clear_refs") << "5"; }

std::uint64_t peak_rss() {
  const std::string kibibytes = field("/proc/self/status", "VmHWM");
  return kibibytes.empty() ? 0 : std::stoull(kibibytes) * 1024;
}

std::string processor_name() {
  const std::string name = field("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown processor" : name;
}

}  // namespace toto
