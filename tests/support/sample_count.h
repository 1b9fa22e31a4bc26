// SPDX-License-Identifier: Apache-2.0
// How many draws statistical tests make: 10^6, but 10^5 under sanitizers, which slow drawing five-
// to twentyfold and look for other faults.
#pragma once

#include <cstdint>

namespace toto {

#ifdef TOTO_SANITIZED
inline constexpr std::uint32_t kDraws = 100'000;
#else
inline constexpr std::uint32_t kDraws = 1'000'000;
#endif

}  // namespace toto
