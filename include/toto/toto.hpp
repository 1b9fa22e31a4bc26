// SPDX-License-Identifier: Apache-2.0
// The C++ interface of toto.cpp: load a model, describe series, forecast, read statistics.
//
//   toto::Forecaster forecaster(toto::Model::load({.model = "path/to/checkpoint"}));
//   const auto forecasts = forecaster.forecast(series, options);
//
// Shapes, units and errors stand beside each declaration. No dependency's type appears in any of
// these headers.
#pragma once

#include "toto/error.hpp"           // IWYU pragma: export
#include "toto/forecast.hpp"        // IWYU pragma: export
#include "toto/log.hpp"             // IWYU pragma: export
#include "toto/model.hpp"           // IWYU pragma: export
#include "toto/service.hpp"         // IWYU pragma: export
#include "toto/settings.hpp"        // IWYU pragma: export
#include "toto/tools/backtest.hpp"  // IWYU pragma: export
#include "toto/tools/bench.hpp"     // IWYU pragma: export
#include "toto/tools/data.hpp"      // IWYU pragma: export
#include "toto/tools/output.hpp"    // IWYU pragma: export
#include "toto/tools/plot.hpp"      // IWYU pragma: export
#include "toto/tools/verify.hpp"    // IWYU pragma: export
