// SPDX-License-Identifier: Apache-2.0
// From a request to whole patches (spec A3): checks, padding or trimming, group ids.
#pragma once

#include <cstdint>

#include "models/prepared.h"
#include "toto/forecast.hpp"

namespace toto {

/// Tokens of the context of a series.
std::int32_t context_tokens(const Series& series, std::int32_t patch, Align align);

/// Throws Error (65): invalid_series, not_finite, no_observations; the series is named.
void check_series(const Series& series, std::int32_t patch, Align align, std::size_t horizon);

/// Cuts a series that has been checked.
void prepare(const Series& series, std::int32_t patch, Align align, std::size_t horizon,
             Prepared& out);

}  // namespace toto
