// SPDX-License-Identifier: Apache-2.0
// Rotary as kernels take it.
#pragma once

#include <cstdint>

#include "backend/backend.h"

namespace toto::cuda {

struct RotaryTables {
  const float* cosine;
  const float* sine;
  const float* factor;  // nullptr: there is none
  std::int32_t positions;
};

inline RotaryTables tables_of(const Rotary& r) {
  return {typed<float>(r.cosine), typed<float>(r.sine), typed<float>(r.factor), r.positions};
}

}  // namespace toto::cuda
