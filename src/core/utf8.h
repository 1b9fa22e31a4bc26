// SPDX-License-Identifier: Apache-2.0
// Checking that text is UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace toto {

/// The offset of the first byte that does not belong to well-formed UTF-8 (Unicode 15, table 3-7:
/// no overlong forms, no surrogates, nothing above U+10FFFF), or npos.
std::size_t first_invalid_utf8(std::string_view text);

}  // namespace toto
