// SPDX-License-Identifier: Apache-2.0
// Attention over time and over variates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.h"
#include "backend/cuda/gemm/stream.cuh"
#include "backend/cuda/ops/rotary_tables.h"
#include "backend/cuda/runtime/extent.h"

namespace toto::cuda {

void time_attention(const Extent& batch, const float* qkv, const KvLayer& kv, const View& out,
                    std::int32_t heads, std::int32_t d, bool last_only, const Stream& s);
/// Whether append_and_attend() takes such a batch, and heads of d channels.
bool appends_at_once(const Extent& batch, std::int32_t d);
/// Backend::append_and_attend() in one launch.
void append_and_attend(const Extent& batch, const RotaryTables& rotary, const float* qkv,
                       const KvLayer& kv, const View& out, std::int32_t heads, bool last_only,
                       bool kept, const Stream& s);
void variate_attention(const Extent& batch, const float* qkv, const View& out, std::int32_t heads,
                       std::int32_t d, const Stream& s);

}  // namespace toto::cuda
