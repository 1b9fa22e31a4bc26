// SPDX-License-Identifier: Apache-2.0
// Plan entries for tests.
#pragma once

#include "engine/plan_entry.h"

namespace toto::test {

inline PlanCacheKey plan_key(const std::string& model = std::string(64, 'a')) {
  PlanCacheKey key;
  key.model = model;
  key.isa = "avx512_bf16";
  key.type = "float32";
  key.device = "cpu";
  return key;
}

/// Entries that differ for different `number`, and are larger for larger ones.
inline PlanEntry plan_entry(std::uint32_t number, std::uint32_t choices = 8) {
  PlanEntry entry;
  for (std::uint32_t i = 0; i < choices; ++i) {
    entry.choices.push_back(
        {768 * (i + 1), 768, "bias+residual f32", number, 1000ULL * (number + 1)});
  }
  for (std::uint32_t i = 0; i < 3; ++i) entry.shapes.push_back({i + 1, 1, 512, 8 + i, 256});
  return entry;
}

}  // namespace toto::test
