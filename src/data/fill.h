// SPDX-License-Identifier: Apache-2.0
// Putting values where none were observed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "toto/tools/data.hpp"

namespace toto::data {

/// The last observed value before the values at hand.
struct Earlier {
  float value = 0.0F;
  std::size_t steps = 1;  // before the first value at hand
};

/// Fills every value whose mask is 0 (Missing::error: as ffill, the caller has objected). Zeros
/// where nothing at all was observed; `zero` is what stands for 0.
/// `season`: steps, of Missing::seasonal.
void fill_missing(std::span<float> values, std::span<const std::uint8_t> mask, Missing missing,
                  const std::optional<Earlier>& earlier = std::nullopt, float zero = 0.0F,
                  std::size_t season = 1);

}  // namespace toto::data
