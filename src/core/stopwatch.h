// SPDX-License-Identifier: Apache-2.0
// Time spent in a scope, added to a total, and a span of the trace where it has a name.
#pragma once

#include <chrono>

#include "core/trace.h"

namespace toto {

class Stopwatch {
 public:
  explicit Stopwatch(double& seconds, const char* span = nullptr)
      : seconds_(seconds), span_(span) {}
  ~Stopwatch() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  Span span_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace toto
