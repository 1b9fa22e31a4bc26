// SPDX-License-Identifier: Apache-2.0
// Steps of time as people write them: 5min, 1h, D, B, W, MS, 3M, QS, Y.
#pragma once

#include <string_view>

#include "toto/tools/data.hpp"

namespace toto::data {

/// `flag` is for messages. Throws Error invalid_frequency (2).
Interval parse_frequency(std::string_view text, std::string_view flag);

}  // namespace toto::data
