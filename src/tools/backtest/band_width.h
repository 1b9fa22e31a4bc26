// SPDX-License-Identifier: Apache-2.0
// How wide bands are: what would have been right on windows of the past.
#pragma once

#include <cstddef>
#include <span>

#include "tools/backtest/read_forecast.h"
#include "toto/tools/backtest.hpp"

namespace toto::backtest {

/// One bar of a window: the 80 % band around the median, and what happened.
struct BandCell {
  double low = 0, median = 0, high = 0;
  double actual = 0;
  std::size_t window = 0;  // in the order of time
};

/// Of quantiles at levels().
BandCell band_cell(std::span<const float> quantiles, double actual, std::size_t window);

/// Coverage of the 80 % band and mean pinball loss over levels(), of many bars.
class BandScore {
 public:
  void add(std::span<const float> quantiles, double actual, double scale);
  [[nodiscard]] double coverage() const;  // NaN: of nothing
  [[nodiscard]] double loss() const;

 private:
  double count_ = 0, inside_ = 0, loss_ = 0;
};

struct Widths {
  double below = 1, above = 1;
};

/// How the windows lie: bars of one, and from one to the next.
struct WindowShape {
  std::size_t horizon = 1, stride = 1;
};

/// The factors of both sides with which a tenth of the cells would have been below the band and a
/// tenth above it, by split conformal prediction: the ceil((n + 1) 0.9)-th smallest of the
/// distances from the median in widths of the band, within [1/4, 4]. To the power of m / (m + 10),
/// m being the windows as far as they do not overlap, since little is known from a few. 1 where a
/// tenth is what was beyond that side but for chance (95 %, the correlation of windows that overlap
/// counted), and with fewer than kFewestWindows.
Widths find_widths(std::span<const BandCell> cells, const WindowShape& shape);

inline constexpr std::size_t kFewestWindows = 20;

/// Multiplies the distances from the median by the widths of the parameters. `read`: rows as
/// read_forecast() gives them, the median at `median` of each row.
void stretch(std::span<float> read, const Wanted& wanted, std::size_t median,
             const Parameters& parameters);

}  // namespace toto::backtest
