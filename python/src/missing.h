// SPDX-License-Identifier: Apache-2.0
// NaN means missing: the mask says so, and something stands in its place.
#pragma once

#include <cstdint>
#include <span>

#include "toto/tools/data.hpp"

namespace toto::python {

bool has_nan(std::span<const float> values);

/// Fills each NaN of one variate, whose values are differences from `offset`, and sets its mask to
/// 0. What is filled in is what the command line fills in (data::Missing). Throws Error (65)
/// missing_value with Missing::error.
void fill(std::span<float> values, std::span<std::uint8_t> mask, data::Missing missing,
          double offset, std::string_view where);

}  // namespace toto::python
