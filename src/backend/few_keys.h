// SPDX-License-Identifier: Apache-2.0
// How many keys are few: devices attend to them in ways of their own, and models tell batches apart
// by it (Batch::keys).
#pragma once

#include <cstdint>

namespace toto {

inline constexpr std::int32_t kFewKeys = 16;

}  // namespace toto
