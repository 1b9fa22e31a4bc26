// SPDX-License-Identifier: Apache-2.0
// Forecasts for many requests: contexts that are alike are forecast once, all others go through
// the engine in ragged batches, and what is in the cache does not go at all.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/backtest/prediction_cache.h"
#include "tools/backtest/windows.h"
#include "toto/tools/backtest.hpp"

namespace toto::backtest {

/// Floats of one bar in a stored prediction with one point: the point, the mean, the quantiles.
inline constexpr std::size_t kStored = 2 + kLevels;

class Predictor {
 public:
  Predictor(Forecaster& forecaster, const Options& options);

  /// `parameters[symbol]` belong to `symbols[symbol]`. The answer for request i lies at
  /// stored(answer[i]): [variates of the request][steps][size of wanted_of(parameters)].
  std::vector<std::size_t> predict(std::span<const Symbol> symbols,
                                   std::span<const Parameters> parameters,
                                   std::span<const Request> requests);
  [[nodiscard]] std::span<const float> stored(std::size_t answer) const { return stored_[answer]; }
  [[nodiscard]] RunStatistics statistics() const;

 private:
  struct Job {
    Request request;
    std::string id, key;
    std::size_t answer = 0;
  };
  struct Batch;

  [[nodiscard]] std::string id_of(const Symbol& symbol, const Request& request) const;
  [[nodiscard]] std::string key_of(const Parameters& parameters, const Request& request,
                                   std::size_t variates, const std::string& id) const;
  void run_jobs(std::span<const Symbol> symbols, const Parameters& parameters,
                std::span<const Job> jobs);
  void run_batch(std::span<const Symbol> symbols, const Parameters& parameters,
                 std::span<const Job> jobs);
  void note_applied(const Applied& applied);
  void time_alone(const Batch& batch, const ForecastOptions& options);
  [[nodiscard]] std::size_t batch_size(std::span<const Symbol> symbols,
                                       const Parameters& parameters,
                                       std::span<const Job> jobs) const;

  Forecaster& forecaster_;
  const Options& options_;
  PredictionCache cache_;
  std::string run_;  // what all keys have in common
  std::size_t patch_ = 0;
  std::unordered_map<std::string, std::size_t> answers_;  // by key
  std::deque<std::vector<float>> stored_;
  RunStatistics statistics_;
  std::vector<double> calls_, alone_;  // seconds
  std::size_t done_ = 0, total_ = 0;   // for the progress bar
};

/// How many variates a request has.
std::size_t variates_of(const Symbol& symbol, const Options& options);

}  // namespace toto::backtest
