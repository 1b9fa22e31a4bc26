// SPDX-License-Identifier: Apache-2.0
// Results that a kernel reads before the one that forms them has ended.
#pragma once

#include <cstddef>
#include <cstdint>

namespace toto::cuda {

/// Results that the kernel before publishes word by word (flag_in_data.cuh), in one of two sets.
/// That kernel lets the next one begin once all that ran before it has ended, and once `set` can be
/// read.
struct EarlyWords {
  const float* first = nullptr;  // of the first set; nullptr: there are none
  std::int64_t set_words = 0;    // from a set to the next
  const std::int32_t* set = nullptr;
};

}  // namespace toto::cuda
