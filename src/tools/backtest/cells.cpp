// SPDX-License-Identifier: Apache-2.0
// The point forecast and the quantiles of a cell, of the model or of a baseline.
#include "tools/backtest/baselines.h"
#include "toto/tools/backtest.hpp"

namespace toto::backtest {

double Cell::point(Source source) const {
  return source == Source::model ? model.point : baseline[static_cast<std::size_t>(source) - 1];
}

double Cell::quantile(Source source, std::size_t level) const {
  if (source == Source::model) {
    const double value = model.quantiles[level];
    return value_offset == 0 ? value : value_offset + value;
  }
  const std::size_t at = static_cast<std::size_t>(source) - 1;
  return baseline[at] + baseline_sigma[at] * normal_quantile(level);
}

}  // namespace toto::backtest
