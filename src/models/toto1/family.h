// SPDX-License-Identifier: Apache-2.0
// Toto 1.0 as a family of models.
#pragma once

#include "models/family.h"
#include "models/toto1/config.h"

namespace toto {

class Toto1Configuration final : public Configuration {
 public:
  explicit Toto1Configuration(const Toto1Config& config) : config_(config) {}

  [[nodiscard]] const Toto1Config& config() const { return config_; }
  [[nodiscard]] std::string_view family() const override { return "toto-1.0"; }
  [[nodiscard]] TensorList tensors() const override;
  [[nodiscard]] std::string to_json() const override { return toto::to_json(config_); }
  void describe(const WeightTable& weights, ModelInfo& info) const override;
  [[nodiscard]] std::unique_ptr<Network> build(const WeightTable& weights,
                                               std::shared_ptr<Backend> backend, Build how,
                                               ContextCache cache) const override;

 private:
  Toto1Config config_;
};

Family toto1_family();

}  // namespace toto
