// SPDX-License-Identifier: Apache-2.0
// Distribution parameters and the next patch as operations of the seam.
#ifdef TOTO_CUDA
#include "backend/cuda/ops/predict.h"

#include "backend/cuda/runtime/device_backend.h"
#include "backend/operation.h"

namespace toto::cuda {

void DeviceBackend::distribution(void* raw, Rows rows, std::int32_t components,
                                 bool mixture) const {
  const OperationSpan span(Operation::distribution);
  cuda::distribution(floats(raw), rows, components, mixture, stream_);
}

void DeviceBackend::predict(const Batch& batch, const Batch* shared, const Prediction& p) const {
  cuda::predict(extent(batch), shared == nullptr ? nullptr : extent(*shared).live, p, stream_);
}

void DeviceBackend::predict_mean(const Batch& batch, const Batch* shared, const PatchShape& shape,
                                 const void* params, const void* loc, const void* scale,
                                 void* y) const {
  const OperationSpan span(Operation::predict_mean);
  predict(batch, shared, {shape, floats(params), floats(loc), floats(scale), floats(y), true});
}

void DeviceBackend::predict_draw(const Batch& batch, const Batch* shared, const PatchShape& shape,
                                 const void* params, const void* loc, const void* scale,
                                 void* y) const {
  const OperationSpan span(Operation::predict_draw);
  predict(batch, shared, {shape, floats(params), floats(loc), floats(scale), floats(y), false});
}

void DeviceBackend::inject(const Batch& batch, const PatchShape& shape, const float* covariates,
                           void* y) const {
  const OperationSpan span(Operation::inject);
  cuda::inject(extent(batch), shape, covariates, floats(y), stream_);
}

}  // namespace toto::cuda
#endif
