// SPDX-License-Identifier: Apache-2.0
// What calls of a network cost: counted from shapes, to hold against what the machine can do.
#pragma once

namespace toto {

struct Cost {
  double operations = 0;    // a multiply-add is two
  double weight_bytes = 0;  // every weight that is needed, once for each call
  Cost& operator+=(const Cost& other) {
    operations += other.operations;
    weight_bytes += other.weight_bytes;
    return *this;
  }
};

}  // namespace toto
