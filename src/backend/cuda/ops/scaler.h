// SPDX-License-Identifier: Apache-2.0
// The scaler: one launch.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "backend/cuda/gemm/stream.cuh"
#include "backend/cuda/ops/arrival.h"
#include "backend/cuda/runtime/extent.h"

namespace toto::cuda {

/// The batch and its inputs lie in what arrives, if anything does.
void scale(const Extent& batch, const ScalerSpec& spec, const float* x, const std::uint8_t* mask,
           ScalerState* state, const ScalerOutputs& to, const Arrival& arrival, const Stream& s);
void repeat_state(const Extent& source, const Extent& batch, const ScalerState* from,
                  ScalerState* to, const Stream& s);

}  // namespace toto::cuda
