// SPDX-License-Identifier: Apache-2.0
// What the input scale does to forecasts, measured on some of the contexts.
#pragma once

#include <span>
#include <vector>

#include "tools/backtest/predict.h"

namespace toto::backtest {

/// Forecasts up to options.scale_probe contexts, evenly chosen, once more at input scale 1.
ScaleEffect measure_scale_effect(Predictor& predictor, const Result& result,
                                 std::span<const Request> requests,
                                 std::span<const std::size_t> answers, const Options& options);

}  // namespace toto::backtest
