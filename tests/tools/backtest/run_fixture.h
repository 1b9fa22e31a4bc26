// SPDX-License-Identifier: Apache-2.0
// Two small symbols and an evaluation of them that takes no time.
#pragma once

#include <string>
#include <vector>

#include "market_file.h"

namespace toto::backtest {

class Run : public test::InFolder {
 protected:
  Market two_symbols(const std::vector<std::string>& targets = {"close", "high"}) {
    return test::market_of(
        {write("in/AA.csv", test::bars(90, 0)), write("in/BB.csv", test::bars(70, 1, true))},
        targets);
  }
  static Options small() {
    Options options;
    options.parameters.context = 40;
    options.parameters.samples = 16;
    options.horizon = 4;
    options.windows = 6;
    options.seed = 5;
    return options;
  }
  static Result run(const Market& market, const Options& options) {
    Forecaster forecaster = test::forecaster();
    return backtest::run(market, forecaster, options);
  }
};

}  // namespace toto::backtest
