// SPDX-License-Identifier: Apache-2.0
// A device of the service: one replica of a model, and a forecaster.
#pragma once

#include <string>
#include <vector>

#include "engine/service/runner.h"

namespace toto {

/// Throws Error (2) invalid_replicas where there is none, two are one, or they would not give the
/// same bits.
void check_replicas(std::span<const Model> replicas);

/// Puts requests of equal options into one batch.
class ForecasterRunner final : public Runner {
 public:
  ForecasterRunner(const Model& model, const ForecasterOptions& options);

  [[nodiscard]] std::string_view device() const override { return device_; }
  void check(const Request& request) const override;
  [[nodiscard]] Estimate estimate(const Request& request) const override;
  [[nodiscard]] bool compatible(const Request& a, const Request& b) const override;
  void run(std::span<const Request* const> requests, std::span<Outcome> outcomes,
           const StopCheck& stop) override;

 private:
  void count_earlier_ids(std::span<const Request* const> requests);

  Model model_;
  std::string device_;
  Forecaster forecaster_;
  // Of a call; kept for their memory.
  std::vector<std::size_t> order_, earlier_;
  std::vector<std::size_t> members_;
  std::vector<Series> series_;
  std::vector<Forecast> out_;
  ForecastOptions options_;
};

}  // namespace toto
