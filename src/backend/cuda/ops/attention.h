// SPDX-License-Identifier: Apache-2.0
// Attention over time and over variates: one launch each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.h"
#include "backend/cuda/gemm/stream.cuh"
#include "backend/cuda/runtime/extent.h"

namespace toto::cuda {

void time_attention(const Extent& batch, const float* qkv, const KvLayer& kv, const View& out,
                    std::int32_t heads, std::int32_t d, bool last_only, const Stream& s);
void variate_attention(const Extent& batch, const float* qkv, const View& out, std::int32_t heads,
                       std::int32_t d, const Stream& s);

}  // namespace toto::cuda
