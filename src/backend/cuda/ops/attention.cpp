// SPDX-License-Identifier: Apache-2.0
// Attention as operations of the seam.
#ifdef TOTO_CUDA
#include "backend/cuda/ops/attention.h"

#include "backend/cuda/runtime/device_backend.h"
#include "backend/operation.h"

namespace toto::cuda {

void DeviceBackend::time_attention(const Batch& batch, const void* qkv, const KvLayer& kv,
                                   void* out, std::int32_t heads, std::int32_t head_dim,
                                   bool last_only) const {
  const OperationSpan span(Operation::time_attention);
  cuda::time_attention(extent(batch), floats(qkv), kv, out, bf16(), heads, head_dim, last_only,
                       stream_);
}

void DeviceBackend::variate_attention(const Batch& batch, const void* qkv, void* out,
                                      std::int32_t heads, std::int32_t head_dim) const {
  const OperationSpan span(Operation::variate_attention);
  cuda::variate_attention(extent(batch), floats(qkv), out, bf16(), heads, head_dim, stream_);
}

}  // namespace toto::cuda
#endif
