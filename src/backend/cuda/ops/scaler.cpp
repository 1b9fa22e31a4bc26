// SPDX-License-Identifier: Apache-2.0
// The scaler as operations of the seam.
#ifdef TOTO_CUDA
#include "backend/cuda/ops/scaler.h"

#include "backend/cuda/runtime/device_backend.h"
#include "backend/expected_views.h"
#include "backend/operation.h"

namespace toto::cuda {

void DeviceBackend::scale(const Batch& batch, const ScalerSpec& spec, const ConstView& x,
                          const std::uint8_t* mask, ScalerState* state,
                          const ScalerOutputs& to) const {
  const OperationSpan span(Operation::scale);
  expected::scale(*this, batch, spec, x, to);
  cuda::scale(extent(batch), spec, floats(x), mask, state, to, {}, stream_);
}

void DeviceBackend::copy_in_and_scale(const Staging& staging, std::size_t bytes, const Batch& batch,
                                      const ScalerSpec& spec, const float* x,
                                      const std::uint8_t* mask, const View& /*scratch*/,
                                      ScalerState* state, const ScalerOutputs& to) {
  const OperationSpan span(Operation::copy_in_and_scale);
  expected::scale(*this, batch, spec, view_of(x, batch.all_rows(), spec.patch), to);
  const Extent e = extent(batch);
  Arrival arrival;
  if (Arrival::pays(bytes, e.lanes)) {
    arrival = {staging.device, staging.host, bytes};
    stream_.forget_calls();  // the scaler copies the batch itself
  } else {
    copy(staging.device, staging.host, bytes);
  }
  cuda::scale(e, spec, x, mask, state, to, arrival, stream_);
}

void DeviceBackend::repeat_state(const Batch& source, const Batch& batch, const ScalerState* from,
                                 ScalerState* to) const {
  const OperationSpan span(Operation::repeat_state);
  cuda::repeat_state(extent(source), extent(batch), from, to, stream_);
}

}  // namespace toto::cuda
#endif
