// SPDX-License-Identifier: Apache-2.0
// Measures of forecasts, each a function of plain numbers. All are NaN for no numbers at all.
#pragma once

#include <cstdint>
#include <span>

#include "toto/tools/backtest.hpp"

namespace toto::backtest {

using Values = std::span<const double>;

double mean_absolute_error(Values actual, Values forecast);
double root_mean_square_error(Values actual, Values forecast);
/// Percent of |actual|; cells where that is 0 are left out.
double mean_absolute_percentage_error(Values actual, Values forecast);
/// 200 |a - f| / (|a| + |f|), percent; 0 where both are 0.
double symmetric_percentage_error(Values actual, Values forecast);
/// Mean of |a - f| / scale over cells whose scale is above 0.
double mean_scaled_error(Values actual, Values forecast, Values scale);

/// Mean of max(q (a - f), (q - 1) (a - f)).
double pinball_loss(Values actual, Values quantile, double level);
/// 2 x the sum of pinball losses / the sum of |actual|.
double weighted_quantile_loss(Values actual, Values quantile, double level);
double share_at_or_below(Values actual, Values quantile);
double coverage(Values actual, Values low, Values high);

struct Proportion {
  std::size_t right = 0, count = 0;
  double share = 0, low = 0, high = 0;  // Wilson's 95 % interval
};
Proportion wilson(std::size_t right, std::size_t count);
/// Of the cells where value and forecast both moved from the base: those where both went to the
/// same side. A forecast of no move names no direction, so it is neither right nor wrong.
Proportion direction(Values actual, Values forecast, Values base);

/// Of losses at the same origins in the order of time; errors of forecasts up to `overlap` origins
/// apart may be correlated (0: none are). Nothing is said by fewer losses than are needed: the
/// correction for small samples would make p 1 whatever they are.
PairedTest paired_test(Values loss, Values other, std::size_t overlap);
/// How many losses are enough for a test: 10, and 3 for each that may be correlated.
std::size_t fewest_origins(std::size_t overlap);
/// The same by any number of losses, for comparison with other implementations.
PairedTest diebold_mariano(Values loss, Values other, std::size_t overlap);

/// P(|T| >= |t|) of Student's t with df >= 1 degrees of freedom.
double two_sided_p(double t, double df);

}  // namespace toto::backtest
