// SPDX-License-Identifier: Apache-2.0
// Views on the device: bfloat16 as CUDA calls it, and the choice of a kernel by what it writes.
#pragma once

#include <cuda_bf16.h>

#include "backend/view.h"

namespace toto {

template <>
inline constexpr ElementType kTypeOf<__nv_bfloat16> = ElementType::bf16;

namespace cuda {

/// Calls run(pointer) with the elements of a view, float or bfloat16.
template <typename Run>
void with_type(const View& v, const Run& run) {
  if (v.type == ElementType::bf16) {
    run(typed<__nv_bfloat16>(v));
  } else {
    run(typed<float>(v));
  }
}

}  // namespace cuda
}  // namespace toto
