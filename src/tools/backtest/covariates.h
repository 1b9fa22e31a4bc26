// SPDX-License-Identifier: Apache-2.0
// Known covariates of a symbol: their effect on a context is taken out before the model sees it,
// and put back into what the model says.
#pragma once

#include <span>
#include <vector>

#include "tools/backtest/windows.h"

namespace toto::backtest {

/// Whether the symbol has covariates and they are to be used.
bool uses_covariates(const Symbol& symbol, const Options& options);

/// What covariates do to the steps of one request, for one target: [steps] each.
struct Effect {
  std::vector<double> value, deviation;
};

/// Fits the context of target `v` of a request, and takes the effect out of `values`, which are the
/// context as the model would see it.
Effect take_out(const Symbol& symbol, const Request& request, std::size_t v,
                std::span<float> values);

/// Puts it back into the answer of one target, [steps][points + 1 + levels] as read_forecast has
/// it: points and mean are moved, quantiles also stretched around the median.
void put_back(const Effect& effect, std::size_t points, std::span<float> answer);

/// MAE of both, symbol by symbol; the paired test is over windows.
std::vector<CovariateGain> covariate_gain(const Result& with, const Result& without,
                                          const Options& options);

}  // namespace toto::backtest
