// SPDX-License-Identifier: Apache-2.0
// Work of the caller's own, item by item, on a backend's threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>

#include "backend/backend.h"

namespace toto {

/// Fewer items are not worth waking threads for.
inline constexpr std::size_t kWorthSharing = 32;

/// Calls work(i) for i = 0 .. count-1, in any order. If some throw, what the first of them (by
/// index) has thrown is thrown; items after it may have been worked on or not.
template <typename Work>
void share_out(const Backend& backend, std::size_t count, const Work& work) {
  if (count < kWorthSharing || backend.workers() == 1) {
    for (std::size_t i = 0; i < count; ++i) work(i);
    return;
  }
  struct State {
    const Work& work;
    std::mutex mutex{};
    std::exception_ptr error{};
    std::int64_t failed = std::numeric_limits<std::int64_t>::max();
  } state{work};
  const auto share = [](const void* context, std::int64_t begin, std::int64_t end, int) {
    State& s = *static_cast<State*>(const_cast<void*>(context));
    std::int64_t i = begin;
    try {
      for (; i < end; ++i) s.work(static_cast<std::size_t>(i));
    } catch (...) {
      const std::lock_guard<std::mutex> lock(s.mutex);
      if (i < s.failed) {
        s.failed = i;
        s.error = std::current_exception();
      }
    }
  };
  backend.for_each_share(static_cast<std::int64_t>(count), share, &state);
  if (state.error) std::rethrow_exception(state.error);
}

}  // namespace toto
