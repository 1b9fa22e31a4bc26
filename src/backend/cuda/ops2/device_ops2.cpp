// SPDX-License-Identifier: Apache-2.0
#ifdef TOTO_CUDA
#include "backend/cuda/ops2/device_ops2.h"

#include "backend/cuda/ops2/ops2.h"
#include "backend/cuda/runtime/device_backend.h"
#include "backend/operation.h"

namespace toto::cuda {

namespace {

const DeviceMatrix& matrix_of(const Matrix& w) {
  return *static_cast<const DeviceMatrix*>(w.weights);
}

}  // namespace

/// With bfloat16 weights the input MLP is bfloat16 too: its results are rounded to that anyway.
bool DeviceOps2::exact_inputs(std::int32_t width) const { return !bf16_ || width % 8 != 0; }

void DeviceOps2::inputs(const Call& call, const SeriesArrays& a, bool first, const Matrix& next,
                        void* z) const {
  const OperationSpan span(Operation::inputs);
  inputs2(call, a, first, z, matrix_of(next).bf16, stream_);
}

void DeviceOps2::quantiles(const Call& call, const SeriesArrays& a, const void* raw,
                           void* y) const {
  const OperationSpan span(Operation::quantiles);
  quantiles2(call, a, floats(raw), floats(y), stream_);
}

void DeviceOps2::knot_results(const Call& call, const SeriesArrays& a, const void* quantiles,
                              const KnotOutputs& to) const {
  const OperationSpan span(Operation::knot_results);
  knot_results2(call, a, floats(quantiles), to, stream_);
}

void DeviceOps2::feed_back(const Call& call, const void* quantiles, const SeriesArrays& a) const {
  const OperationSpan span(Operation::feed_back);
  feed_back2(call, a, floats(quantiles), stream_);
}

void DeviceOps2::linear_silu(const Matrix& w, const void* x, void* y, Rows rows) const {
  const OperationSpan span(Operation::linear_silu);
  if (matrix_of(w).bf16) {
    ProductArgs args = product_of(w, x, y, rows, Epilogue::store);
    args.silu = true;
    product_bf16(args, stream_);
    return;
  }
  backend_.linear(w, x, y, rows, Epilogue::store);
  silu2(floats(y), rows, w.out, stream_);
}

void DeviceOps2::rms_norm(const void* x, void* y, Rows rows, const Matrix& next,
                          double epsilon) const {
  const OperationSpan span(Operation::rms_norm);
  rms_norm2(floats(x), y, matrix_of(next).bf16, rows, next.in, epsilon, stream_);
}

bool DeviceOps2::norm_linear(const void* x, double epsilon, void* normed, const Matrix& w, void* y,
                             Rows rows, Epilogue epilogue) const {
  if (!matrix_of(w).bf16 || w.in % 4 != 0 || w.in < 8) return false;
  const OperationSpan span(Operation::norm_linear);
  ProductArgs args = product_of(w, x, y, rows, epilogue);
  args.norm = true;
  args.epsilon = static_cast<float>(epsilon);
  if (some_rows_bf16(args, stream_)) return true;
  args.norm = false;
  // The rows take half of the scratch memory.
  float* const inverse = floats(normed) + std::int64_t{rows.count} * ((padded_bf16(w.in) + 1) / 2);
  raw_rows2(floats(x), normed, inverse, rows, w.in, epsilon, stream_);
  args.x = normed;
  args.scale = inverse;
  product_bf16(args, stream_);
  return true;
}

void DeviceOps2::time_attention(const Call& all, const Call& wanted, const SeriesArrays& a,
                                const HeadShape& shape, const HeadNorm& norm, const Rotary& rotary,
                                void* qkv, const KvCache& kv, bool keep, void* out) const {
  const OperationSpan span(Operation::time_attention);
  if (bf16_ &&
      tensor_attention2(all, wanted, a, shape, norm, rotary, floats(qkv), kv, keep, out, stream_)) {
    return;
  }
  time_attention2(all, wanted, a, shape, norm, rotary, floats(qkv), kv, keep, out, bf16_, stream_);
}

void DeviceOps2::variate_attention(const Call& call, const SeriesArrays& a, const HeadShape& shape,
                                   const HeadNorm& norm, void* qkv, void* out) const {
  const OperationSpan span(Operation::variate_attention);
  variate_attention2(call, a, shape, norm, floats(qkv), out, bf16_, stream_);
}

void DeviceOps2::gather(const Call& all, const Call& wanted, const void* x, void* y,
                        std::int32_t dim) const {
  const OperationSpan span(Operation::gather);
  gather2(all, wanted, floats(x), floats(y), dim, stream_);
}

}  // namespace toto::cuda
#endif
