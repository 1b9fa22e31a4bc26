// SPDX-License-Identifier: Apache-2.0
#ifdef TOTO_CUDA
#include "backend/cuda/ops2/device_ops2.h"

#include "backend/cuda/ops2/ops2.h"
#include "backend/cuda/runtime/device_backend.h"
#include "backend/cuda/runtime/typed.h"
#include "backend/expected_views2.h"
#include "backend/operation.h"

namespace toto::cuda {
namespace {

/// A product as what is added to another.
Summand summand(const ProductArgs& p) {
  return {p.w, p.bias, p.x, p.in, p.pitch, p.scale, p.squares};
}

/// Where take_normed() finds what a product leaves for a norm, of as many rows: the sums lie behind
/// the rows.
Ahead ahead_in(const View& room, Rows rows, std::int32_t width) {
  const View narrow = room.as(ElementType::bf16, rows, width);
  auto* const squares =
      reinterpret_cast<float*>(static_cast<std::byte*>(room.data) + narrow.bytes());
  return {typed<__nv_bfloat16>(narrow), squares};
}

}  // namespace

/// With bfloat16 weights these are bfloat16 too: what the input MLP leaves is rounded to that
/// anyway, and the head moves quantiles by a fraction of what the layers do (docs/cuda.md).
bool DeviceOps2::exact_ends(std::int32_t width) const { return !types_.narrow || width % 8 != 0; }

void DeviceOps2::inputs(const Call& call, const SeriesArrays& a, bool first, const View& z) const {
  const OperationSpan span(Operation::inputs);
  expected2::inputs(types_, call, a, z);
  inputs2(call, a, first, z, {}, stream_);
}

bool DeviceOps2::copy_in_and_inputs(const Staging& staging, std::size_t bytes, const Call& call,
                                    const SeriesArrays& a, bool first, const View& z) const {
  if (!Arrival::pays(bytes, call.lanes)) return false;
  const OperationSpan span(Operation::inputs);
  expected2::inputs(types_, call, a, z);
  stream_.forget_calls();
  inputs2(call, a, first, z, {staging.device, staging.host, bytes}, stream_);
  return true;
}

void DeviceOps2::quantiles(const Call& call, const SeriesArrays& a, const ConstView& raw,
                           const View& y) const {
  const OperationSpan span(Operation::quantiles);
  expected2::quantiles(types_, call, a, raw);
  expected2::quantiles(types_, call, a, y);
  quantiles2(call, a, floats(raw), floats(y), {}, stream_);
}

bool DeviceOps2::quantiles_and_statistics(const Call& call, const SeriesArrays& a,
                                          const ConstView& raw, const View& y,
                                          const KnotOutputs& to) const {
  const OperationSpan span(Operation::quantiles);
  expected2::quantiles(types_, call, a, raw);
  expected2::quantiles(types_, call, a, y);
  quantiles2(call, a, floats(raw), floats(y), to, stream_);
  return true;
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

bool DeviceOps2::knot_paths(const Call& call, const SeriesArrays& a, const ConstView& quantiles,
                            const KnotOutputs& to) const {
  if (to.mean || !has_knot_paths2(call, a, to, stream_)) return false;
  const OperationSpan span(Operation::knot_chains);
  expected2::quantiles(types_, call, a, quantiles);
  knot_paths2(call, a, floats(quantiles), to, stream_);
  return true;
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

bool DeviceOps2::norms_ahead(Rows rows, std::int32_t width, std::int32_t inputs) const {
  return types_.narrow && width % 64 == 0 && some_rows_fit(rows.count, inputs, stream_);
}

bool DeviceOps2::linear_sum(const Matrix& w, const ConstView& x, const Matrix& v,
                            const ConstView& z, const View& y, const NormRoom& next) const {
  const ElementType type = backend_.operand_type(w);
  if (type != ElementType::bf16 || backend_.operand_type(v) != type) return false;
  if (x.rows.count > kSomeRows) return false;
  const OperationSpan span(Operation::linear);
  expected::linear(backend_, w, x, y, Epilogue::store);
  expected::linear(backend_, v, z, y, Epilogue::residual);
  ProductArgs args = product_of(w, x, y, Epilogue::store);
  const ProductArgs other = product_of(v, z, y, Epilogue::residual);
  args.also = summand(other);
  if (next.ahead) {
    expect("linear_sum: room", next.room, types_.element, x.rows.count, w.out);
    args.ahead = ahead_in(next.room, x.rows, w.out);
  }
  return some_rows_bf16(args, stream_);
}

void DeviceOps2::linear_ahead(const Matrix& w, const ConstView& x, const View& y,
                              const View& room) const {
  const OperationSpan span(Operation::linear);
  expected::linear(backend_, w, x, y, Epilogue::residual);
  expect("linear_ahead: room", room, types_.element, x.rows.count, w.out);
  ProductArgs args = product_of(w, x, y, Epilogue::residual);
  args.ahead = ahead_in(room, x.rows, w.out);
  product_bf16(args, stream_);
}

void DeviceOps2::take_normed(ProductArgs& args, const ConstView& x, double epsilon,
                             const NormRoom& room) const {
  const Ahead there = ahead_in(room.room, x.rows, x.width);
  args.x = there.rows;
  args.epsilon = static_cast<float>(epsilon);
  if (room.ahead) {
    args.squares = there.squares;
    return;
  }
  // Without squares: the inverse roots themselves.
  raw_rows2(floats(x), room.room.as(ElementType::bf16, x.rows, x.width), there.squares, x.rows,
            epsilon, stream_);
  args.scale = there.squares;
}

void DeviceOps2::rms_norm(const ConstView& x, const View& y, double epsilon) const {
  const OperationSpan span(Operation::rms_norm);
  expected2::rms_norm(types_, x, y);
  rms_norm2(floats(x), y, x.rows, epsilon, stream_);
}

bool DeviceOps2::norm_residual_mlp(const ConstView& x, double epsilon, const NormRoom& room,
                                   const Matrix& first, const Matrix& second, const Matrix& skip,
                                   const View& inner, const View& y) const {
  const ElementType type = backend_.operand_type(first);
  if (type != ElementType::bf16 || x.width % 4 != 0 || x.width < 8) return false;
  if (backend_.operand_type(second) != type || backend_.operand_type(skip) != type) return false;
  const OperationSpan span(Operation::norm_linear);
  expect("norm_residual_mlp: x", x, types_.element, 0, first.in);
  expect("norm_residual_mlp: room", room.room, types_.element, x.rows.count, first.in);
  expect("norm_residual_mlp: inner", inner, type, x.rows.count, first.out);
  expected::linear(backend_, second, inner, y, Epilogue::store);
  ProductArgs in = product_of(first, x, inner, Epilogue::store);
  ProductArgs out = product_of(second, inner, y, Epilogue::store);
  ProductArgs past = product_of(skip, x, y, Epilogue::residual);
  in.silu = true;
  take_normed(in, x, epsilon, room);
  past.x = in.x, past.scale = in.scale, past.squares = in.squares;
  past.epsilon = out.epsilon = in.epsilon;
  product_bf16(in, stream_);
  out.also = summand(past);
  if (some_rows_bf16(out, stream_)) return true;
  out.also = {};
  product_bf16(out, stream_);
  product_bf16(past, stream_);
  return true;
}

bool DeviceOps2::norm_linear(const ConstView& x, double epsilon, const NormRoom& room,
                             const Matrix& w, const View& y, Epilogue epilogue) const {
  const ElementType type = backend_.operand_type(w);
  if (w.in % 4 != 0 || w.in < 8) return false;
  const OperationSpan span(Operation::norm_linear);
  const bool gated = epilogue == Epilogue::gated;
  expect("norm_linear: x", x, types_.element, 0, w.in);
  expect("norm_linear: room", room.room, types_.element, x.rows.count, w.in);
  expect("norm_linear: y", y, gated ? type : types_.element, x.rows.count,
         gated ? w.out / 2 : w.out);
  ProductArgs args = product_of(w, x, y, epilogue);
  if (type == ElementType::bf16) {
    take_normed(args, x, epsilon, room);
    product_bf16(args, stream_);
    return true;
  }
  args.norm = true;
  args.epsilon = static_cast<float>(epsilon);
  if (few_rows_f32(args, stream_)) return true;
  args.norm = false;
  float* const inverse = floats(room.room);
  row_roots2(floats(x), inverse, x.rows, w.in, epsilon, stream_);
  args.scale = inverse;
  product_f32(args, stream_);
  return true;
}

bool DeviceOps2::norm_values(const ConstView& x, double epsilon, const NormRoom& room,
                             const Matrix& w, const HeadShape& shape, const View& out) const {
  const std::int32_t width = shape.attended();
  if (shape.heads != shape.groups || w.in % 4 != 0 || w.in < 8 || width % 8 != 0) return false;
  const ElementType type = backend_.operand_type(w);
  const bool narrow = type == ElementType::bf16;
  if (narrow && !some_rows_fit(x.rows.count, w.in, stream_)) return false;
  const OperationSpan span(Operation::norm_linear);
  expect("norm_values: x", x, types_.element, 0, w.in);
  expect("norm_values: out", out, type, x.rows.count, width);
  ProductArgs args = product_of(w, x, out, Epilogue::store);
  const std::int32_t before = w.out - width;  // queries and keys
  const std::int64_t cells = std::int64_t{before} * args.pitch;
  args.out = args.stored = width;
  if (args.bias != nullptr) args.bias += before;
  if (narrow) {
    expect("norm_values: room", room.room, types_.element, x.rows.count, w.in);
    take_normed(args, x, epsilon, room);
    args.w = static_cast<const __nv_bfloat16*>(args.w) + cells;
    args.rounded = true;
    return some_rows_bf16(args, stream_);
  }
  args.norm = true;
  args.epsilon = static_cast<float>(epsilon);
  args.w = static_cast<const float*>(args.w) + cells;
  return few_rows_f32(args, stream_);
}

void DeviceOps2::time_attention(const Call& all, const Call& wanted, const SeriesArrays& a,
                                const HeadShape& shape, const HeadNorm& norm, const Rotary& rotary,
                                const View& qkv, const KvCache& kv, bool keep,
                                const View& out) const {
  const OperationSpan span(Operation::time_attention);
  expected2::time_attention(types_, all, wanted, shape, norm, rotary, qkv, kv, out);
  if (out.type == ElementType::bf16 && tensor_attention2(all, wanted, a, shape, norm, rotary,
                                                         floats(qkv), kv, keep, out, {}, stream_)) {
    return;
  }
  time_attention2(all, wanted, a, shape, norm, rotary, floats(qkv), kv, keep, out, stream_);
}

bool DeviceOps2::time_attention_and_gather(const Call& all, const Call& wanted,
                                           const SeriesArrays& a, const HeadShape& shape,
                                           const HeadNorm& norm, const Rotary& rotary,
                                           const View& qkv, const KvCache& kv, bool keep,
                                           const View& out, const ConstView& x,
                                           const View& y) const {
  if (out.type != ElementType::bf16 || x.width % 4 != 0) return false;
  if (shape.qk != kTensorHead2 || shape.v != kTensorHead2) return false;
  const OperationSpan span(Operation::time_attention);
  expected2::time_attention(types_, all, wanted, shape, norm, rotary, qkv, kv, out);
  expected2::gather(types_, all, wanted, x, y);
  const Passed passed{floats(x), floats(y), static_cast<std::int32_t>(x.width)};
  return tensor_attention2(all, wanted, a, shape, norm, rotary, floats(qkv), kv, keep, out, passed,
                           stream_);
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
