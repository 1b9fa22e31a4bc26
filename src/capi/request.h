// SPDX-License-Identifier: Apache-2.0
// Series and options of C as those of C++. Views: the caller's memory is not copied.
#pragma once

#include <cstddef>
#include <vector>

#include "toto/forecast.hpp"
#include "toto/toto.h"

namespace toto::capi {

/// Throws Error: null_argument, invalid_struct_size (2), invalid_series (65: sizes whose product
/// no memory holds).
std::vector<Series> series_of(const toto_series* series, std::size_t count, std::size_t horizon);

/// `options` NULL: all defaults. Throws Error (2): null_argument, invalid_struct_size,
/// invalid_choice.
ForecastOptions options_of(const toto_forecast_options* options);

/// Throws Error (2): null_argument, invalid_struct_size, invalid_warmup.
std::vector<WarmupShape> shapes_of(const toto_warmup_shape* shapes, std::size_t count);

}  // namespace toto::capi
