// SPDX-License-Identifier: Apache-2.0
// The C++ interface of toto.cpp: load a model, describe series, forecast, read statistics.
//
//   toto::Forecaster forecaster(toto::Model::load({.model = "path/to/checkpoint"}));
//   const auto forecasts = forecaster.forecast(series, options);
//
// Shapes, units and errors stand beside each declaration. No dependency's type appears in any of
// these headers.
#pragma once

#include "toto/backtest.hpp"  // IWYU pragma: export
#include "toto/bench.hpp"     // IWYU pragma: export
#include "toto/data.hpp"      // IWYU pragma: export
#include "toto/error.hpp"     // IWYU pragma: export
#include "toto/forecast.hpp"  // IWYU pragma: export
#include "toto/model.hpp"     // IWYU pragma: export
#include "toto/output.hpp"    // IWYU pragma: export
#include "toto/plot.hpp"      // IWYU pragma: export
#include "toto/settings.hpp"  // IWYU pragma: export
#include "toto/verify.hpp"    // IWYU pragma: export
