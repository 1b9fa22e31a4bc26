// SPDX-License-Identifier: Apache-2.0
// Coherent paths as operations of the seam.
#ifdef TOTO_CUDA
#include "backend/cuda/ops/paths.h"

#include "backend/expected_views.h"
#include "backend/operation.h"

namespace toto::cuda {

void DevicePaths::neighbours(const Batch& context, const PatchShape& shape, const ConstView& params,
                             const ConstView& loc, const ConstView& scale, const float* x,
                             const std::uint8_t* mask, double* scores, float* rho) const {
  const OperationSpan span(Operation::neighbours);
  expected::neighbours(ElementType::f32, context, shape, params, loc, scale);
  cuda::neighbours(context, shape,
                   {typed<float>(params), typed<float>(loc), typed<float>(scale), x, mask}, scores,
                   rho, stream_);
}

void DevicePaths::draw(const Batch& batch, const Batch* shared, const Batch& source,
                       const PatchShape& shape, const ConstView& params, const ConstView& loc,
                       const ConstView& scale, const float* rho, const View& y) const {
  const OperationSpan span(Operation::draw);
  expected::predict(ElementType::f32, batch, shared, shape, params, loc, scale, y);
  draw_paths(batch, shared, source, shape,
             {typed<float>(params), typed<float>(loc), typed<float>(scale)}, rho, typed<float>(y),
             stream_);
}

}  // namespace toto::cuda
#endif
