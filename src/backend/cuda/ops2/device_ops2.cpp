// SPDX-License-Identifier: Apache-2.0
#ifdef TOTO_CUDA
#include "backend/cuda/ops2/device_ops2.h"

#include "backend/cuda/ops2/ops2.h"
#include "backend/cuda/runtime/device_backend.h"
#include "backend/expected_views2.h"
#include "backend/operation.h"

namespace toto::cuda {

/// With bfloat16 weights these are bfloat16 too: what the input MLP leaves is rounded to that
/// anyway, and the head moves quantiles by a fraction of what the layers do (docs/cuda.md).
bool DeviceOps2::exact_ends(std::int32_t width) const { return !types_.narrow || width % 8 != 0; }

void DeviceOps2::inputs(const Call& call, const SeriesArrays& a, bool first, const View& z) const {
  const OperationSpan span(Operation::inputs);
  expected2::inputs(types_, call, a, z);
  inputs2(call, a, first, z, stream_);
}

void DeviceOps2::quantiles(const Call& call, const SeriesArrays& a, const ConstView& raw,
                           const View& y) const {
  const OperationSpan span(Operation::quantiles);
  expected2::quantiles(types_, call, a, raw);
  expected2::quantiles(types_, call, a, y);
  quantiles2(call, a, floats(raw), floats(y), stream_);
}

void DeviceOps2::knot_results(const Call& call, const SeriesArrays& a, const ConstView& quantiles,
                              const KnotOutputs& to) const {
  const OperationSpan span(Operation::knot_results);
  expected2::quantiles(types_, call, a, quantiles);
  knot_results2(call, a, floats(quantiles), to, stream_);
}

void DeviceOps2::feed_back(const Call& call, const ConstView& quantiles,
                           const SeriesArrays& a) const {
  const OperationSpan span(Operation::feed_back);
  expected2::quantiles(types_, call, a, quantiles);
  feed_back2(call, a, floats(quantiles), stream_);
}

void DeviceOps2::knot_neighbours(const Call& call, const SeriesArrays& a,
                                 const ConstView& quantiles, double* scores, float* rho) const {
  const OperationSpan span(Operation::knot_neighbours);
  expected2::quantiles(types_, call, a, quantiles);
  knot_neighbours2(call, a, floats(quantiles), scores, rho, stream_);
}

void DeviceOps2::knot_chains(const Call& call, const SeriesArrays& a, const float* rho,
                             const KnotOutputs& to) const {
  const OperationSpan span(Operation::knot_chains);
  knot_chains2(call, a.patch, rho, to, stream_);
}

void DeviceOps2::linear_silu(const Matrix& w, const ConstView& x, const View& y) const {
  const OperationSpan span(Operation::linear_silu);
  const ElementType type = backend_.operand_type(w);
  expected2::linear_silu(type, w, x, y);
  ProductArgs args = product_of(w, x, y, Epilogue::store);
  args.silu = true;
  if (type == ElementType::bf16) return product_bf16(args, stream_);
  if (few_rows_f32(args, stream_)) return;
  backend_.linear(w, x, y, Epilogue::store);
  silu2(floats(y), x.rows, w.out, stream_);
}

void DeviceOps2::rms_norm(const ConstView& x, const View& y, double epsilon) const {
  const OperationSpan span(Operation::rms_norm);
  expected2::rms_norm(types_, x, y);
  rms_norm2(floats(x), y, x.rows, epsilon, stream_);
}

bool DeviceOps2::norm_linear(const ConstView& x, double epsilon, const View& scratch,
                             const Matrix& w, const View& y, Epilogue epilogue) const {
  const ElementType type = backend_.operand_type(w);
  const bool narrow = type == ElementType::bf16;
  if (w.in % 4 != 0 || w.in < 8) return false;
  const OperationSpan span(Operation::norm_linear);
  const bool gated = epilogue == Epilogue::gated;
  expect("norm_linear: x", x, types_.element, 0, w.in);
  expect("norm_linear: scratch", scratch, types_.element, x.rows.count, w.in);
  expect("norm_linear: y", y, gated ? type : types_.element, x.rows.count,
         gated ? w.out / 2 : w.out);
  ProductArgs args = product_of(w, x, y, epilogue);
  args.norm = true;
  args.epsilon = static_cast<float>(epsilon);
  if (narrow ? some_rows_bf16(args, stream_) : few_rows_f32(args, stream_)) return true;
  args.norm = false;
  if (!narrow) {
    float* const inverse = floats(scratch);
    row_roots2(floats(x), inverse, x.rows, w.in, epsilon, stream_);
    args.scale = inverse;
    product_f32(args, stream_);
    return true;
  }
  // The rows take half of the scratch memory.
  const View rows = scratch.as(type, x.rows, w.in);
  float* const inverse = floats(scratch) + rows.bytes() / static_cast<std::int64_t>(sizeof(float));
  raw_rows2(floats(x), rows, inverse, x.rows, epsilon, stream_);
  args.x = rows.data;
  args.scale = inverse;
  product_bf16(args, stream_);
  return true;
}

bool DeviceOps2::norm_values(const ConstView& x, double epsilon, const Matrix& w,
                             const HeadShape& shape, const View& out) const {
  const std::int32_t width = shape.attended();
  if (shape.heads != shape.groups || w.in % 4 != 0 || w.in < 8 || width % 8 != 0) return false;
  const OperationSpan span(Operation::norm_linear);
  const ElementType type = backend_.operand_type(w);
  expect("norm_values: x", x, types_.element, 0, w.in);
  expect("norm_values: out", out, type, x.rows.count, width);
  ProductArgs args = product_of(w, x, out, Epilogue::store);
  const std::int32_t before = w.out - width;  // queries and keys
  const std::int64_t cells = std::int64_t{before} * args.pitch;
  args.out = args.stored = width;
  if (args.bias != nullptr) args.bias += before;
  args.norm = true;
  args.epsilon = static_cast<float>(epsilon);
  if (type == ElementType::bf16) {
    args.w = static_cast<const __nv_bfloat16*>(args.w) + cells;
    args.rounded = true;
    return some_rows_bf16(args, stream_);
  }
  args.w = static_cast<const float*>(args.w) + cells;
  return few_rows_f32(args, stream_);
}

void DeviceOps2::time_attention(const Call& all, const Call& wanted, const SeriesArrays& a,
                                const HeadShape& shape, const HeadNorm& norm, const Rotary& rotary,
                                const View& qkv, const KvCache& kv, bool keep,
                                const View& out) const {
  const OperationSpan span(Operation::time_attention);
  expected2::time_attention(types_, all, wanted, shape, norm, rotary, qkv, kv, out);
  if (out.type == ElementType::bf16 &&
      tensor_attention2(all, wanted, a, shape, norm, rotary, floats(qkv), kv, keep, out, stream_)) {
    return;
  }
  time_attention2(all, wanted, a, shape, norm, rotary, floats(qkv), kv, keep, out, stream_);
}

void DeviceOps2::variate_attention(const Call& call, const SeriesArrays& a, const HeadShape& shape,
                                   const HeadNorm& norm, const View& qkv, const View& out) const {
  const OperationSpan span(Operation::variate_attention);
  expected2::variate_attention(types_, call, shape, norm, qkv, out);
  variate_attention2(call, a, shape, norm, floats(qkv), out, stream_);
}

void DeviceOps2::gather(const Call& all, const Call& wanted, const ConstView& x,
                        const View& y) const {
  const OperationSpan span(Operation::gather);
  expected2::gather(types_, all, wanted, x, y);
  gather2(all, wanted, floats(x), floats(y), x.width, stream_);
}

}  // namespace toto::cuda
#endif
