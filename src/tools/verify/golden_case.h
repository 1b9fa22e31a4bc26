// SPDX-License-Identifier: Apache-2.0
// Reading a folder of golden outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/family.h"
#include "toto/forecast.hpp"

namespace toto {

struct GoldenTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

struct GoldenFolder {
  std::string path;
  std::shared_ptr<const WeightSource> weights;
  std::size_t batch = 0;      // B
  std::size_t variates = 0;   // V
  std::size_t steps = 0;      // T
  std::size_t exogenous = 0;  // E
  std::size_t horizon = 0;
  std::vector<float> values;            // [B][V][T]
  std::vector<std::uint8_t> mask;       // [B][V][T]
  std::vector<std::int32_t> groups;     // [B][V][T]
  std::vector<float> future_exogenous;  // [B][E][horizon]
  std::vector<GoldenTensor> expected;
  std::vector<std::string> ids;  // of the B series

  [[nodiscard]] const GoldenTensor* find(const std::string& name) const;
  /// The tensor, which must have this shape; throws Error invalid_golden (65).
  [[nodiscard]] const GoldenTensor& at(const std::string& name,
                                       const std::vector<std::int64_t>& shape) const;
  [[nodiscard]] Series series(std::size_t b) const;
};

/// Throws Error: file_not_found (66), invalid_golden (65), and what its files throw.
GoldenFolder read_golden_folder(const Configuration& config, const std::string& path);

}  // namespace toto
