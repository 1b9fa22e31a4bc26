// SPDX-License-Identifier: Apache-2.0
// A folder of its own for a test, and bars to put into it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "data/calendar.h"
#include "support/small_model.h"
#include "toto/tools/backtest.hpp"

namespace toto::backtest::test {

class InFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "toto-backtest-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }

  std::filesystem::path folder_;
};

/// Close of bar t of a symbol: a walk that is the same everywhere.
inline double price(std::size_t t, int symbol) {
  const auto x = static_cast<double>(t);
  return 50 + 10 * symbol + 4 * std::sin(x / 9 + symbol) + 2 * std::sin(x / 3.7) + 0.02 * x;
}

/// Bars from Monday 2024-01-01, every day or on weekdays.
inline std::string bars(std::size_t count, int symbol, bool weekends = false) {
  std::string text = "Date,Open,High,Low,Close,Volume\n";
  const std::int64_t first = 19723;
  for (std::size_t t = 0; t < count; ++t) {
    const auto n = static_cast<std::int64_t>(t);
    const std::int64_t day =
        weekends ? first + n : data::business_day(data::business_day_number(first) + n);
    const auto date = data::date_of(day);
    char line[160];
    const double p = price(t, symbol);
    std::snprintf(line, sizeof(line), "%04d-%02u-%02u,%.3f,%.3f,%.3f,%.3f,%d\n",
                  static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                  static_cast<unsigned>(date.day()), p - 0.2, p + 1, p - 1, p, 1000);
    text += line;
  }
  return text;
}

inline Forecaster forecaster() {
  return Forecaster(toto::test::make_model(toto::test::spec_config()));
}

inline Market market_of(const std::vector<std::string>& inputs,
                        const std::vector<std::string>& targets = {}) {
  MarketOptions options;
  options.inputs = inputs;
  options.targets = targets;
  return read_market(options);
}

}  // namespace toto::backtest::test
