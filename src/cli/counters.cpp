// SPDX-License-Identifier: Apache-2.0
#include "cli/counters.h"

#include <fmt/format.h>

#include <cstdio>

namespace toto::cli {

void show_counters(const Counters& counters) {
  std::fputs(fmt::format("toto: {}\n", summary(counters)).c_str(), stderr);
}

}  // namespace toto::cli
