// SPDX-License-Identifier: Apache-2.0
// Operations on rows: one launch each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.h"
#include "backend/cuda/gemm/stream.cuh"
#include "backend/cuda/ops/rotary_tables.h"
#include "backend/cuda/runtime/extent.h"

namespace toto::cuda {

void rms_norm(const float* x, const float* gain, const View& y, Rows rows, const Stream& s);
/// What a product of normed rows of kNormedWidth takes: y, the rows times the gain, and the inverse
/// roots [rows], by which what it gives is multiplied (ProductArgs::scale, norm.cuh).
void norm_later(const float* x, const float* gain, const View& y, float* inverse, Rows rows,
                const Stream& s);
void set_labels(const Extent& batch, const float* labels, float* hidden, std::int32_t dim,
                const Stream& s);
void gather_last(const Extent& batch, const float* x, float* y, std::int32_t dim,
                 std::int32_t columns, const Stream& s);
void rotary_append(const Extent& batch, const RotaryTables& rotary, float* qkv, const KvLayer& kv,
                   std::int32_t heads, std::int32_t d, const Stream& s);

}  // namespace toto::cuda
