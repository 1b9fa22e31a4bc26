// SPDX-License-Identifier: Apache-2.0
// NaN means missing: the mask says so, and something stands in its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "toto/tools/data.hpp"

namespace toto::python {

bool has_nan(std::span<const float> values);

/// Fills each NaN of one variate, whose values are differences from `offset`, and sets its mask to
/// 0. What is filled in is what the command line fills in (data::Missing). Throws Error (65)
/// missing_value with Missing::error. `season`: steps, of Missing::seasonal; 0: invalid_season (2).
void fill(std::span<float> values, std::span<std::uint8_t> mask, data::Missing missing,
          std::size_t season, double offset, std::string_view where);

/// Steps at the end of which no variate is observed; 0 where nothing is. `mask` is [rows][all].
std::size_t missing_end(std::span<const std::uint8_t> mask, std::size_t rows, std::size_t all);

/// Throws Error (2) invalid_context for 0 steps.
void check_context(std::size_t context);

}  // namespace toto::python
