// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace toto {

/// Throws Error (65) not_finite where one of `values`, rows of `steps`, or of what is known ahead
/// of covariates is NaN or infinite. `id` names the series.
void check_finite(std::string_view id, std::span<const float> values, std::size_t steps,
                  std::span<const float> future);

}  // namespace toto
