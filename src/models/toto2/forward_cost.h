// SPDX-License-Identifier: Apache-2.0
// What a call of the Toto 2.0 network costs.
#pragma once

#include <cstdint>

#include "models/cost.h"
#include "models/toto2/toto2.h"

namespace toto {

/// What there is to do in a call, over all of its slices.
struct CallWork {
  double rows = 0;
  double time_pairs = 0;  // of queries, and keys that they see
  double variate_pairs = 0;

  /// A slice whose first token sees so many keys before it.
  void add(std::int32_t variates, std::int32_t tokens, std::int32_t before) {
    const double n = tokens;
    rows += static_cast<double>(variates) * n;
    time_pairs += variates * (n * before + n * (n + 1) / 2);
    variate_pairs += static_cast<double>(variates) * n * variates;
  }
};

Cost forward_cost(const Toto2& net, const CallWork& all, const CallWork& wanted);

}  // namespace toto
