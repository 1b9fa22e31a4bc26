// SPDX-License-Identifier: Apache-2.0
// From a request to whole patches (spec A3): checks, padding or trimming, group ids.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "toto/forecast.hpp"

namespace toto {

/// One series cut into tokens. Arrays [V][tokens][P]; ids [V][tokens].
struct Prepared {
  std::int32_t variates = 0;
  std::int32_t tokens = 0;
  std::int32_t exogenous = 0;
  std::uint64_t key = 0;
  std::vector<float> values;
  std::vector<std::uint8_t> mask;
  std::vector<std::int32_t> ids;
  std::vector<float> covariates;  // [patches][E][P], zero where nothing is known; empty: none given
};

/// Tokens of the context of a series.
std::int32_t context_tokens(const Series& series, std::int32_t patch, Align align);

/// Throws Error (65): invalid_series, not_finite, no_observations; the series is named.
void check_series(const Series& series, std::int32_t patch, Align align, std::size_t horizon);

/// Cuts a series that has been checked.
void prepare(const Series& series, std::int32_t patch, Align align, std::size_t horizon,
             Prepared& out);

}  // namespace toto
