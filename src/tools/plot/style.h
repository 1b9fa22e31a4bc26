// SPDX-License-Identifier: Apache-2.0
// Colours, and the style sheet that gives them to the classes the drawing uses.
#pragma once

#include <cstddef>
#include <string>

namespace toto::plot {

enum class Scheme { light, dark };

/// CSS rules for all classes of the drawing; `bands` is how many levels there are. Class b0 is the
/// widest band and the faintest tint.
[[nodiscard]] std::string style_rules(Scheme scheme, std::size_t bands);

}  // namespace toto::plot
