// SPDX-License-Identifier: Apache-2.0
// What a call of the network costs, counted from shapes.
#pragma once

#include "backend/backend.h"
#include "models/cost.h"
#include "models/toto1/config.h"
#include "models/toto1/toto1.h"

namespace toto {

/// Products and attention of one Toto1::forward(); norms, rotary embedding and softmax are left out
/// (below one percent). `weight_size`: bytes of one weight of a matrix.
Cost forward_cost(const Toto1Config& config, const Execution& execution, const Batch& all,
                  std::int32_t steps, double weight_size);

}  // namespace toto
