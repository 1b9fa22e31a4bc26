// SPDX-License-Identifier: Apache-2.0
// Toto 2.0 as a family of models.
#pragma once

#include "models/family.h"
#include "models/toto2/config.h"

namespace toto {

class Toto2Configuration final : public Configuration {
 public:
  explicit Toto2Configuration(const Toto2Config& config) : config_(config) {}

  [[nodiscard]] const Toto2Config& config() const { return config_; }
  [[nodiscard]] std::string_view family() const override { return "toto-2.0"; }
  [[nodiscard]] TensorList tensors() const override;
  [[nodiscard]] std::string to_json() const override { return toto::to_json(config_); }
  void describe(const WeightTable& weights, ModelInfo& info) const override;
  [[nodiscard]] std::unique_ptr<Network> build(const WeightTable& weights,
                                               std::shared_ptr<Backend> backend, Build how,
                                               ContextCache cache) const override;
  [[nodiscard]] std::unique_ptr<GoldenOutputs> read_golden(
      const std::string& folder) const override;

 private:
  Toto2Config config_;
};

Family toto2_family();

}  // namespace toto
