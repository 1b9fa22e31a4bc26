// SPDX-License-Identifier: Apache-2.0
// Verification: comparing this build with outputs of the official implementation.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "toto/model.hpp"

namespace toto {

/// One tensor compared.
struct TensorCheck {
  std::string tensor;     ///< name in expected.safetensors
  std::string execution;  ///< "eager": the reference's order of operations; "planned": shared
                          ///< context, folded head, trimmed last layers
  std::string measure;    ///< how the error is formed, in words
  double error = 0;       ///< the largest; infinite where a value is not finite or a shape differs
  double bound = 0;
  std::string place;    ///< index of the largest error, e.g. "[0,2,17]"
  double expected = 0;  ///< the two values there
  double found = 0;
  [[nodiscard]] bool holds() const { return error <= bound; }
};

struct GoldenCase {
  std::string folder;
  std::string model;  ///< e.g. "4 layers, width 32, weights from the file"
  bool full_size = false;
  double seconds = 0;  ///< loading and running
  std::vector<TensorCheck> checks;
  [[nodiscard]] bool holds() const;
};

struct GoldenReport {
  std::string backend;
  std::string precision;
  std::vector<GoldenCase> cases;
  [[nodiscard]] bool holds() const;  ///< every check of every case, and there is at least one
};

/// Runs folders in the format of docs/verification.md: config.json, model.safetensors or
/// weights.json, inputs.safetensors, expected.safetensors. Bounds: forecasts, distributions and
/// teacher-forced steps 2e-5 (full size: 1e-4) of scale + |expected|; hidden states 1e-5 (1e-4) of
/// the tensor's largest value. Throws Error for files that are missing (66) or malformed (65, 78).
GoldenReport verify_golden(std::span<const std::string> folders, const LoadOptions& options = {});

}  // namespace toto
