// SPDX-License-Identifier: Apache-2.0
// The nearest known name, for "did you mean".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace toto {

/// The name of `known` that is fewest edits away from `name`; empty where all are too far.
std::string_view closest(std::string_view name, const std::vector<std::string>& known);

}  // namespace toto
