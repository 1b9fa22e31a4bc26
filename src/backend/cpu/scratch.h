// SPDX-License-Identifier: Apache-2.0
// The memory that each thread of the team has to itself. Only used inside ThreadTeam::run, which
// lets one caller in at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "backend/cpu/pages.h"
#include "backend/cpu/product_kernels.h"

namespace toto::cpu {

class ScratchSet {
 public:
  explicit ScratchSet(int threads) : threads_(static_cast<std::size_t>(threads)) {}

  /// Makes every thread's memory at least that large. Not while the team runs.
  void reserve(std::size_t bytes) {
    if (bytes <= bytes_) return;
    for (Pages& memory : threads_) memory = allocate_pages(bytes);
    bytes_ = bytes;
  }

  /// The memory of one thread: at least what was reserved, 64-byte aligned.
  [[nodiscard]] std::byte* of(int thread) const {
    return threads_[static_cast<std::size_t>(thread)].get();
  }

 private:
  std::vector<Pages> threads_;
  std::size_t bytes_ = 0;
};

}  // namespace toto::cpu
