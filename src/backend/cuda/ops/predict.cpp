// SPDX-License-Identifier: Apache-2.0
// Distribution parameters and the next patch as operations of the seam.
#ifdef TOTO_CUDA
#include "backend/cuda/ops/predict.h"

#include "backend/cuda/runtime/device_backend.h"
#include "backend/expected_views.h"
#include "backend/operation.h"

namespace toto::cuda {

void DeviceBackend::distribution(const View& raw, bool mixture) const {
  const OperationSpan span(Operation::distribution);
  const std::int32_t components = expected::distribution(*this, raw);
  cuda::distribution(floats(raw), raw.rows, components, mixture, stream_);
}

void DeviceBackend::predict(const Batch& batch, const Batch* shared, const Prediction& p) const {
  cuda::predict(extent(batch), shared == nullptr ? nullptr : extent(*shared).live, p, stream_);
}

void DeviceBackend::predict_mean(const Batch& batch, const Batch* shared, const PatchShape& shape,
                                 const ConstView& params, const ConstView& loc,
                                 const ConstView& scale, const View& y) const {
  const OperationSpan span(Operation::predict_mean);
  expected::predict(element_type(), batch, shared, shape, params, loc, scale, y);
  predict(batch, shared, {shape, floats(params), floats(loc), floats(scale), floats(y), true});
}

void DeviceBackend::predict_draw(const Batch& batch, const Batch* shared, const PatchShape& shape,
                                 const ConstView& params, const ConstView& loc,
                                 const ConstView& scale, const View& y) const {
  const OperationSpan span(Operation::predict_draw);
  expected::predict(element_type(), batch, shared, shape, params, loc, scale, y);
  predict(batch, shared, {shape, floats(params), floats(loc), floats(scale), floats(y), false});
}

void DeviceBackend::inject(const Batch& batch, const PatchShape& shape, const float* covariates,
                           const View& y) const {
  const OperationSpan span(Operation::inject);
  expected::predicted(*this, batch, shape, y);
  cuda::inject(extent(batch), shape, covariates, floats(y), stream_);
}

}  // namespace toto::cuda
#endif
