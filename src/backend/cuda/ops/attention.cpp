// SPDX-License-Identifier: Apache-2.0
// Attention as operations of the seam.
#ifdef TOTO_CUDA
#include "backend/cuda/ops/attention.h"

#include "backend/cuda/runtime/device_backend.h"
#include "backend/expected_views.h"
#include "backend/operation.h"

namespace toto::cuda {

void DeviceBackend::time_attention(const Batch& batch, const ConstView& qkv, const KvLayer& kv,
                                   const View& out, std::int32_t heads, bool last_only) const {
  const OperationSpan span(Operation::time_attention);
  const std::int32_t d =
      expected::time_attention(*this, batch, qkv, kv, out, heads, last_only, bf16());
  cuda::time_attention(extent(batch), floats(qkv), kv, out, heads, d, last_only, stream_);
}

void DeviceBackend::append_and_attend(const Batch& batch, const Rotary& rotary, const View& qkv,
                                      const KvLayer& kv, const View& out, std::int32_t heads,
                                      bool last_only, bool kept) const {
  if (!appends_at_once(extent(batch), out.width / heads)) {
    return Backend::append_and_attend(batch, rotary, qkv, kv, out, heads, last_only, kept);
  }
  const OperationSpan span(Operation::append_and_attend);
  expected::rotary_append(*this, batch, rotary, qkv, kv, heads);
  expected::time_attention(*this, batch, qkv, kv, out, heads, last_only, bf16());
  cuda::append_and_attend(extent(batch), tables_of(rotary), floats(qkv), kv, out, heads, last_only,
                          kept, stream_);
}

void DeviceBackend::variate_attention(const Batch& batch, const ConstView& qkv, const View& out,
                                      std::int32_t heads) const {
  const OperationSpan span(Operation::variate_attention);
  const std::int32_t d = expected::variate_attention(*this, batch, qkv, out, heads, bf16());
  cuda::variate_attention(extent(batch), floats(qkv), out, heads, d, stream_);
}

}  // namespace toto::cuda
#endif
