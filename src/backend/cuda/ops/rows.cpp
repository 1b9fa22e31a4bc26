// SPDX-License-Identifier: Apache-2.0
// Operations on rows: norm, labels, rotary, the last tokens.
#ifdef TOTO_CUDA
#include "backend/cuda/ops/rows.h"

#include "backend/cuda/runtime/device_backend.h"
#include "backend/expected_views.h"
#include "backend/operation.h"

namespace toto::cuda {

void DeviceBackend::rms_norm(const ConstView& x, const ConstView& gain, const View& y) const {
  const OperationSpan span(Operation::rms_norm);
  expected::rms_norm(*this, x, gain, y, bf16());
  cuda::rms_norm(floats(x), floats(gain), y, x.rows, stream_);
}

void DeviceBackend::set_labels(const Batch& batch, const ConstView& labels,
                               const View& hidden) const {
  const OperationSpan span(Operation::set_labels);
  expected::set_labels(*this, batch, labels, hidden);
  cuda::set_labels(extent(batch), floats(labels), floats(hidden), hidden.width, stream_);
}

void DeviceBackend::rotary_append(const Batch& batch, const Rotary& rotary, const View& qkv,
                                  const KvLayer& kv, std::int32_t heads) const {
  const OperationSpan span(Operation::rotary_append);
  const std::int32_t d = expected::rotary_append(*this, batch, rotary, qkv, kv, heads);
  cuda::rotary_append(extent(batch), tables_of(rotary), floats(qkv), kv, heads, d, stream_);
}

void DeviceBackend::gather_last(const Batch& batch, const ConstView& x, const View& y) const {
  const OperationSpan span(Operation::gather_last);
  expected::gather_last(*this, batch, x, y);
  cuda::gather_last(extent(batch), floats(x), floats(y), x.width, y.width, stream_);
}

}  // namespace toto::cuda
#endif
