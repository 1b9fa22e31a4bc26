// SPDX-License-Identifier: Apache-2.0
// Forecasts that are kept as they are made, so that a run that was interrupted goes on.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/backtest/prediction_cache.h"
#include "toto/forecast.hpp"

namespace toto::cli {

class ForecastStore {
 public:
  /// `folder`: empty keeps nothing. What the forecasts depend on besides the series is `model` and
  /// `options`; a run with others finds nothing of them.
  ForecastStore(const std::string& folder, const LoadReport& model, const ForecastOptions& options,
                backtest::PredictionCache::Warn warn);

  [[nodiscard]] bool keeps() const { return keeps_; }
  [[nodiscard]] std::optional<Forecast> find(const Series& series) const;
  /// Keeps the forecasts of the series, one by one; trajectories are not kept.
  void add(std::span<const Series> series, std::span<const Forecast> forecasts);

 private:
  [[nodiscard]] std::string key_of(const Series& series) const;

  bool keeps_;
  std::string run_;
  ForecastOptions options_;
  backtest::PredictionCache cache_;
};

}  // namespace toto::cli
