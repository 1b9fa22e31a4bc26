// SPDX-License-Identifier: Apache-2.0
// Outputs of the official implementation, to be compared with those of a network
// (docs/verification.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/checkpoint/weights.h"
#include "models/network.h"
#include "toto/model.hpp"

namespace toto {

struct Difference {
  double error = 0;       // infinite where sizes differ or a value is not finite
  std::size_t index = 0;  // flat index of the largest error
  double expected = 0;
  double found = 0;
};

/// One tensor of a golden folder, compared.
struct GoldenDifference {
  std::string tensor;   // its name in the folder
  std::string measure;  // how the error is formed, in words
  Difference worst;
  double bound = 0;
  std::vector<std::int64_t> shape;
};

/// A golden folder that has been read.
class GoldenOutputs {
 public:
  GoldenOutputs() = default;
  virtual ~GoldenOutputs() = default;
  GoldenOutputs(const GoldenOutputs&) = delete;
  GoldenOutputs& operator=(const GoldenOutputs&) = delete;

  /// From which the outputs were made.
  [[nodiscard]] virtual std::shared_ptr<const WeightSource> weights() const = 0;
  /// Whether a model of this size has bounds of its own.
  [[nodiscard]] virtual bool full_size(const ModelInfo& info) const = 0;
  /// Runs the network on the folder's inputs and compares every tensor. `exact`: it computes in
  /// float64. Throws Error (65) invalid_golden where tensors do not fit the model.
  [[nodiscard]] virtual std::vector<GoldenDifference> compare(const Network& net,
                                                              const ModelInfo& info,
                                                              bool exact) const = 0;
};

/// Throws Error (65) invalid_golden.
[[noreturn]] void refuse_golden(const std::string& where, const std::string& message);

}  // namespace toto
