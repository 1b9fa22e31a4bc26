// SPDX-License-Identifier: Apache-2.0
// A device of the service: one replica of a model, and forecasts on it that overlap.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/forecaster_impl.h"
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
  [[nodiscard]] std::size_t lanes() const override { return jobs_.size(); }
  void check(const Request& request) const override;
  [[nodiscard]] Estimate estimate(const Request& request, bool bytes) const override;
  [[nodiscard]] bool compatible(const Request& a, const Request& b) const override;
  void run(std::span<const Request* const> requests, std::span<Outcome> outcomes,
           const RunnerCall& call) override;

 private:
  using Shared = std::shared_ptr<Forecaster::Impl>;
  [[nodiscard]] Shared current();
  [[nodiscard]] Shared on_cpu(const Shared& lacking, const std::string& lack);

  Model model_;
  std::string device_;
  RequestCost cost_;
  std::vector<std::vector<ForecastJob>> jobs_;  // of a call in each lane; kept for their memory
  std::mutex mutex_;                            // of what follows
  Shared forecaster_;  // another one once the memory of the device did not suffice
};

}  // namespace toto
