// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace toto {

/// Looks at all of them, whatever they are, so that it looks at many at a time.
inline bool all_finite(std::span<const float> values) {
  constexpr std::uint32_t kExponent = 0x7F800000U;
  std::uint32_t others = 0;
  for (const float v : values) {
    const bool finite = (std::bit_cast<std::uint32_t>(v) & kExponent) != kExponent;
    others |= finite ? 0U : 1U;
  }
  return others == 0;
}

}  // namespace toto
