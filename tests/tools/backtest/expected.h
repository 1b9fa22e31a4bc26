// SPDX-License-Identifier: Apache-2.0
// What independent implementations say: tests/data/backtest/expected.json, by make_expected.py.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/paths.h"

namespace toto::backtest::test {

inline const nlohmann::json& expected() {
  static const nlohmann::json all = [] {
    std::ifstream file(toto::test::data_path("backtest/expected.json"));
    return nlohmann::json::parse(file);
  }();
  return all;
}

/// To 1e-9 of the expected value; of 1 where that is 0.
inline void expect_same(double found, double wanted, const std::string& what) {
  const double bound = 1e-9 * (wanted == 0 ? 1 : std::abs(wanted));
  EXPECT_NEAR(found, wanted, bound) << what;
}

}  // namespace toto::backtest::test
