// SPDX-License-Identifier: Apache-2.0
// Where forecasts begin: origins of windows, and the contexts that end there.
#pragma once

#include <cstddef>
#include <vector>

#include "toto/tools/backtest.hpp"

namespace toto::backtest {

/// The bars `origin` + 1 to `origin` + H are forecast.
struct Window {
  std::size_t symbol = 0;
  std::size_t number = 0;  // of the symbol, in the order of time
  std::size_t origin = 0;  // the last bar that is known
};

/// A forecast to be made: of `target` (or of all targets where they are joint) from the bars that
/// end with `last`. The first bar that is forecast is last + 1, always.
struct Request {
  std::size_t symbol = 0;
  std::size_t target = 0;
  std::size_t last = 0;
  std::size_t bars = 0;   // that the context has; with a transform, the first one only begins it
  std::size_t steps = 0;  // to forecast
};

/// The windows of one symbol. The last one ends with the last bar in the range, the others lie a
/// stride apart; each has at least `least` observed values of every target in its context. Throws
/// Error (65) too_short, (2) invalid_time.
std::vector<Window> find_windows(const Symbol& symbol, std::size_t index, const Options& options,
                                 const Parameters& parameters, std::size_t least);

/// The forecasts that a window needs, by target and step.
std::vector<Request> requests_of(const Window& window, const Symbol& symbol, const Options& options,
                                 const Parameters& parameters);

}  // namespace toto::backtest
