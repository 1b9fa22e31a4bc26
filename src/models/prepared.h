// SPDX-License-Identifier: Apache-2.0
// A series cut into tokens: what a program stages.
#pragma once

#include <cstdint>
#include <vector>

namespace toto {

/// Arrays [V][tokens][P]; ids [V][tokens].
struct Prepared {
  std::int32_t variates = 0;
  std::int32_t tokens = 0;
  std::int32_t exogenous = 0;
  std::uint64_t key = 0;  // addresses the draws: hash of the series' id
  std::vector<float> values;
  std::vector<std::uint8_t> mask;  // 1 = observed
  std::vector<std::int32_t> ids;
  std::vector<float> covariates;  // [patches][E][P], zero where nothing is known; empty: none given
  std::vector<std::uint8_t> covariate_mask;  // as covariates, 1 = known; empty: all of the horizon
};

}  // namespace toto
