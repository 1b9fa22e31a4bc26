// SPDX-License-Identifier: Apache-2.0
// Backend::for_each_share() with a callable.
#pragma once

#include <type_traits>

#include "backend/backend.h"

namespace toto {

/// Calls body(begin, end, worker) for shares that cover [0, count). `body` must be noexcept.
template <typename Body>
void parallel(const Backend& backend, std::int64_t count, const Body& body) {
  static_assert(std::is_nothrow_invocable_v<const Body&, std::int64_t, std::int64_t, int>);
  backend.for_each_share(
      count,
      [](const void* context, std::int64_t begin, std::int64_t end, int worker) {
        (*static_cast<const Body*>(context))(begin, end, worker);
      },
      &body);
}

}  // namespace toto
