// SPDX-License-Identifier: Apache-2.0
// Shapes as people write them: 512x8.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace toto {

/// The numbers of "4096x336x7", each from 1 to `most`. Empty where `text` is anything else.
std::vector<std::size_t> parse_sizes(std::string_view text, std::size_t most);

}  // namespace toto
