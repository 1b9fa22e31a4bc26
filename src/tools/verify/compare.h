// SPDX-License-Identifier: Apache-2.0
// The error measures of the golden cases.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/golden.h"

namespace toto {

/// max |found - expected| / (scale + |expected|); `scale` of the same size, or empty for 1.
Difference largest_difference(std::span<const double> found, std::span<const float> expected,
                              std::span<const double> scale);

/// max |found - expected| / max |expected|.
Difference largest_relative_to_peak(std::span<const double> found, std::span<const float> expected);

/// A flat index as "[i,j,k]".
std::string place_of(std::size_t index, const std::vector<std::int64_t>& shape);

}  // namespace toto
