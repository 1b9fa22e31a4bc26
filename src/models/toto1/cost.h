// SPDX-License-Identifier: Apache-2.0
// What a call of the network costs: counted from shapes, to hold against what the machine can do.
#pragma once

#include "backend/backend.h"
#include "models/checkpoint/config.h"
#include "models/toto1/toto1.h"

namespace toto {

struct Cost {
  double operations = 0;    // a multiply-add is two
  double weight_bytes = 0;  // every weight that is needed, once
  Cost& operator+=(const Cost& other) {
    operations += other.operations;
    weight_bytes += other.weight_bytes;
    return *this;
  }
};

/// Products and attention of one Toto1::forward(); norms, rotary embedding and softmax are left out
/// (below one percent). `weight_size`: bytes of one weight of a matrix.
Cost forward_cost(const Toto1Config& config, const Execution& execution, const Batch& all,
                  std::int32_t steps, double weight_size);

}  // namespace toto
