// SPDX-License-Identifier: Apache-2.0
// Reads the tensors of Toto 2.0 and folds into them what is linear or constant (toto2.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/folded_matrix.h"
#include "models/toto2/toto2.h"

namespace toto::toto2 {

class Loader {
 public:
  Loader(const Toto2Config& config, const WeightTable& weights, Backend& backend)
      : config_(config), weights_(weights), backend_(backend) {}

  [[nodiscard]] std::vector<float> vector(const std::string& name) const;
  /// `gain` [in] or empty: of the norm before it. `head`: the output MLP, with its own scales,
  /// whose rows are stored as q*P + p. Exact whatever the type of the other weights: few of them
  /// carry all of the signal.
  [[nodiscard]] ResidualMlp residual_mlp(const std::string& name, std::int32_t out, std::int32_t in,
                                         std::span<const float> gain, bool head, bool exact);
  /// `factor` of the residual stream before the layer becomes that after it.
  [[nodiscard]] Layer layer(std::int32_t index, double& factor);
  /// Memory that the layers' norms lie in.
  [[nodiscard]] std::vector<std::shared_ptr<void>> take_vectors() { return std::move(vectors_); }

 private:
  /// A linear layer, all of it times `by`. What it holds is valid until the next read().
  [[nodiscard]] FoldedMatrix read(const std::string& name, std::int32_t out, std::int32_t in,
                                  bool bias, double by);
  /// [1][values]
  [[nodiscard]] ConstView upload(std::span<const double> values);
  [[nodiscard]] std::vector<double> query_scale(const std::string& layer) const;
  [[nodiscard]] HeadNorm head_norm(const std::string& layer, std::span<const double> query_scale);
  [[nodiscard]] std::vector<float> gain(const std::string& name) const;

  /// At least `count` values of any content.
  [[nodiscard]] std::span<float> memory(std::size_t count);

  const Toto2Config& config_;
  const WeightTable& weights_;
  Backend& backend_;
  std::vector<std::shared_ptr<void>> vectors_;
  std::unique_ptr<float[]> memory_;  // of the matrix that was read last
  std::size_t room_ = 0;             // in it
};

}  // namespace toto::toto2
