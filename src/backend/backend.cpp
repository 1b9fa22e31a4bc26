// SPDX-License-Identifier: Apache-2.0
// Staging on backends whose memory is the host's.
#include "backend/backend.h"

namespace toto {

Staging Backend::allocate_staging(std::size_t bytes) {
  Staging staging;
  staging.bytes = bytes;
  staging.host = staging.device = static_cast<std::byte*>(allocate(bytes));
  return staging;
}

void Backend::release_staging(const Staging& staging) noexcept {
  if (staging.host != nullptr) release(staging.host);
}

}  // namespace toto
