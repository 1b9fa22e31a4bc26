// SPDX-License-Identifier: Apache-2.0
// A device of the service: one replica of a model, and a forecaster.
#pragma once

#include <string>
#include <vector>

#include "engine/service/request_cost.h"
#include "engine/service/runner.h"

namespace toto {

/// Throws Error (2) invalid_replicas where there is none, two are one, or they would not give the
/// same bits.
void check_replicas(std::span<const Model> replicas);

/// Puts requests into one ragged batch. They may differ in all but what the operations of the
/// network's program depend on (ForecastWriter::alike): means fed back or draws, decoding from the
/// cache or from scratch, exact statistics or sampled ones, the device's clock.
class ForecasterRunner final : public Runner {
 public:
  ForecasterRunner(const Model& model, const ForecasterOptions& options);

  [[nodiscard]] std::string_view device() const override { return device_; }
  [[nodiscard]] bool on_device() const override;
  void check(const Request& request) const override;
  [[nodiscard]] Estimate estimate(const Request& request, bool bytes) const override;
  [[nodiscard]] bool compatible(const Request& a, const Request& b) const override;
  void run(std::span<const Request* const> requests, std::span<Outcome> outcomes,
           const StopCheck& stop) override;

 private:
  Model model_;
  std::string device_;
  RequestCost cost_;
  Forecaster forecaster_;
  std::vector<ForecastJob> jobs_;  // of a call; kept for its memory
};

}  // namespace toto
