// SPDX-License-Identifier: Apache-2.0
// The scaler: one launch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.h"
#include "backend/cuda/gemm/stream.cuh"
#include "backend/cuda/runtime/extent.h"

namespace toto::cuda {

/// What scale() copies to the device first, in which its batch and inputs lie: whole sixteen bytes,
/// at most kMaxArrival for all lanes; 0: nothing.
struct Arrival {
  void* device = nullptr;
  const void* host = nullptr;  // pinned
  std::size_t bytes = 0;
};
inline constexpr std::size_t kMaxArrival = std::size_t{16} << 10U;
void scale(const Extent& batch, const ScalerSpec& spec, const float* x, const std::uint8_t* mask,
           ScalerState* state, const ScalerOutputs& to, const Arrival& arrival, const Stream& s);
void repeat_state(const Extent& source, const Extent& batch, const ScalerState* from,
                  ScalerState* to, const Stream& s);

}  // namespace toto::cuda
