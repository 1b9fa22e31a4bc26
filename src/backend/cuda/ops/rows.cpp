// SPDX-License-Identifier: Apache-2.0
// Operations on rows: norm, labels, rotary, the last tokens.
#ifdef TOTO_CUDA
#include "backend/cuda/ops/rows.h"

#include "backend/cuda/runtime/device_backend.h"
#include "backend/operation.h"

namespace toto::cuda {

void DeviceBackend::rms_norm(const void* x, const void* scale, void* y, Rows rows,
                             std::int32_t dim) const {
  const OperationSpan span(Operation::rms_norm);
  cuda::rms_norm(floats(x), floats(scale), y, bf16(), rows, dim, stream_);
}

void DeviceBackend::set_labels(const Batch& batch, const void* labels, void* hidden,
                               std::int32_t dim) const {
  const OperationSpan span(Operation::set_labels);
  cuda::set_labels(extent(batch), floats(labels), floats(hidden), dim, stream_);
}

void DeviceBackend::rotary_append(const Batch& batch, const Rotary& rotary, void* qkv,
                                  const KvLayer& kv, std::int32_t heads,
                                  std::int32_t head_dim) const {
  const OperationSpan span(Operation::rotary_append);
  cuda::rotary_append(extent(batch), rotary, floats(qkv), kv, heads, head_dim, stream_);
}

void DeviceBackend::gather_last(const Batch& batch, const void* x, void* y,
                                std::int32_t dim) const {
  const OperationSpan span(Operation::gather_last);
  cuda::gather_last(extent(batch), floats(x), floats(y), dim, stream_);
}

}  // namespace toto::cuda
#endif
