// SPDX-License-Identifier: Apache-2.0
// Distribution parameters and the next patch: one launch each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.h"
#include "backend/cuda/gemm/stream.cuh"
#include "backend/cuda/runtime/extent.h"

namespace toto::cuda {

void distribution(float* raw, Rows rows, std::int32_t components, bool mixture, const Stream& s);
/// The next patch: draws or means.
struct Prediction {
  PatchShape shape;
  const float* params;
  const float* loc;
  const float* scale;
  float* y;
  bool mean;
};
void predict(const Extent& batch, const LiveBatch* shared, const Prediction& p, const Stream& s);
void inject(const Extent& batch, const PatchShape& shape, const float* covariates, float* y,
            const Stream& s);

}  // namespace toto::cuda
