// SPDX-License-Identifier: Apache-2.0
// Reading a folder of golden outputs of Toto 2.0: several calls on one model and one batch.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/checkpoint/weights.h"
#include "models/toto2/config.h"
#include "models/toto2/generation.h"

namespace toto {

struct Toto2GoldenTensor {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};

struct Toto2GoldenCall {
  std::string name;
  std::int32_t horizon = 0;
  std::int32_t block = 0;  // decode_block_size; 0: single pass
  bool has_missing_values = true;
  std::int32_t fallback = 0;
  double cap = 0;
};

struct Toto2GoldenFolder {
  std::string path;
  Toto2Config config;
  std::shared_ptr<const WeightSource> weights;
  std::int32_t batch = 0;        // B
  std::int32_t targets = 0;      // V
  std::int32_t steps = 0;        // T
  std::int32_t covariates = 0;   // E
  std::int32_t known_steps = 0;  // n
  std::vector<float> values;     // [B][V][T]
  std::vector<std::uint8_t> mask;
  std::vector<std::int32_t> groups;  // [B][V]
  std::vector<float> known;          // [B][E][n]
  std::vector<std::uint8_t> known_mask;
  std::vector<std::int32_t> known_groups;  // [B][E]
  std::vector<Toto2GoldenCall> calls;
  std::map<std::string, Toto2GoldenTensor, std::less<>> expected;

  /// nullptr where the case does not have it.
  [[nodiscard]] const Toto2GoldenTensor* find(const std::string& name) const;
  [[nodiscard]] std::vector<toto2::Request> requests(const Toto2GoldenCall& call) const;
};

/// Throws Error: invalid_golden (65), and what its files throw.
Toto2GoldenFolder read_toto2_golden_folder(const Toto2Config& config, const std::string& folder);

}  // namespace toto
