// SPDX-License-Identifier: Apache-2.0
// What each operation of Backend and PathOps expects of its views: every backend begins with the
// check of these names, so that a mistake is the same error on all of them.
#pragma once

#include <algorithm>

#include "backend/backend.h"

namespace toto::expected {

/// Whether y may be what a product takes: of the activations' type, or bfloat16 where that is what
/// layers of this backend are multiplied in.
inline void operands(const char* what, const ConstView& y, ElementType element, bool narrow,
                     std::int64_t rows, std::int64_t width) {
  expect(what, y, narrow && y.type == ElementType::bf16 ? ElementType::bf16 : element, rows, width);
}

inline void linear(const Backend& be, const Matrix& w, const ConstView& x, const ConstView& y,
                   Epilogue epilogue) {
  const bool gated = epilogue == Epilogue::gated;
  expect("linear: x", x, be.operand_type(w), 0, w.in);
  expect("linear: y", y, gated ? be.operand_type(w) : be.element_type(), x.rows.count,
         gated ? w.out / 2 : w.out);
}

inline void rms_norm(const Backend& be, const ConstView& x, const ConstView& gain,
                     const ConstView& y, bool narrow = false) {
  expect("rms_norm: x", x, be.element_type(), 0, x.width);
  expect("rms_norm: gain", gain, be.element_type(), 1, x.width);
  operands("rms_norm: y", y, be.element_type(), narrow, x.rows.count, x.width);
}

inline void norm_linear(const Backend& be, const ConstView& x, const ConstView& gain,
                        const ConstView& scratch, const Matrix& w, const ConstView& y,
                        Epilogue epilogue) {
  const bool gated = epilogue == Epilogue::gated;
  expect("norm_linear: x", x, be.element_type(), 0, w.in);
  expect("norm_linear: gain", gain, be.element_type(), 1, w.in);
  expect("norm_linear: scratch", scratch, be.element_type(), x.rows.count, w.in + 1);
  expect("norm_linear: y", y, gated ? be.operand_type(w) : be.element_type(), x.rows.count,
         gated ? w.out / 2 : w.out);
}

inline void scale(const Backend& be, const Batch& batch, const ScalerSpec& spec, const ConstView& x,
                  const ScalerOutputs& to) {
  const ElementType type = be.element_type();
  expect("scale: x", x, type, batch.rows, spec.patch);
  expect("scale: values", to.values, type, batch.rows, spec.patch);
  expect("scale: loc", to.loc, type, batch.rows, spec.patch);
  expect("scale: scale", to.scale, type, batch.rows, spec.patch);
  expect("scale: last loc", to.last_loc, type, batch.lanes, spec.patch);
  expect("scale: last scale", to.last_scale, type, batch.lanes, spec.patch);
}

inline void set_labels(const Backend& be, const Batch& batch, const ConstView& labels,
                       const ConstView& hidden) {
  expect("set_labels: labels", labels, be.element_type(), 2, hidden.width);
  expect("set_labels: hidden", hidden, be.element_type(), batch.rows, hidden.width);
}

inline void key_values(const Backend& be, const KvLayer& kv, std::int32_t head_dim) {
  expect("attention: keys", kv.keys, be.element_type(), 0, head_dim);
  expect("attention: values", kv.values, be.element_type(), 0, head_dim);
}

/// Returns the width of a head.
inline std::int32_t rotary_append(const Backend& be, const Batch& batch, const Rotary& rotary,
                                  const ConstView& qkv, const KvLayer& kv, std::int32_t heads) {
  const ElementType type = be.element_type();
  const std::int32_t d = qkv.width / 3 / heads;
  expect("rotary_append: qkv", qkv, type, batch.rows, 3 * heads * d);
  expect("rotary_append: cosine", rotary.cosine, type, rotary.positions, d / 2);
  expect("rotary_append: sine", rotary.sine, type, rotary.positions, d / 2);
  expect("rotary_append: factor", rotary.factor, type, 2 * std::int64_t{rotary.positions}, d / 2);
  key_values(be, kv, d);
  return d;
}

/// Returns the width of a head.
inline std::int32_t variate_attention(const Backend& be, const Batch& batch, const ConstView& qkv,
                                      const ConstView& out, std::int32_t heads,
                                      bool narrow = false) {
  const std::int32_t d = out.width / heads;
  expect("attention: qkv", qkv, be.element_type(), batch.rows, 3 * heads * d);
  operands("attention: out", out, be.element_type(), narrow, batch.rows, heads * d);
  return d;
}

/// Returns the width of a head.
inline std::int32_t time_attention(const Backend& be, const Batch& batch, const ConstView& qkv,
                                   const KvLayer& kv, const ConstView& out, std::int32_t heads,
                                   bool last_only, bool narrow = false) {
  const std::int32_t d = out.width / heads;
  expect("attention: qkv", qkv, be.element_type(), batch.rows, 3 * heads * d);
  operands("attention: out", out, be.element_type(), narrow, last_only ? batch.lanes : batch.rows,
           heads * d);
  key_values(be, kv, d);
  return d;
}

inline void gather_last(const Backend& be, const Batch& batch, const ConstView& x,
                        const ConstView& y) {
  expect("gather_last: x", x, be.element_type(), batch.rows, x.width);
  expect("gather_last: y", y, be.element_type(), batch.lanes, std::min(x.width, y.width));
}

/// Returns the number of components.
inline std::int32_t distribution(const Backend& be, const ConstView& raw) {
  const std::int32_t components = raw.width / 4;
  expect("distribution: raw", raw, be.element_type(), 0, 4 * components);
  return components;
}

/// Parameters of `lanes` with what they are in units of.
inline void parameters(ElementType type, std::int64_t lanes, const PatchShape& shape,
                       const ConstView& params, const ConstView& loc, const ConstView& scale) {
  expect("parameters", params, type, lanes, std::int64_t{shape.steps} * 4 * shape.components);
  expect("parameters: loc", loc, type, lanes, shape.patch);
  expect("parameters: scale", scale, type, lanes, shape.patch);
}

/// predict_mean(), predict_draw(), PathOps::draw()
inline void predict(ElementType type, const Batch& batch, const Batch* shared,
                    const PatchShape& shape, const ConstView& params, const ConstView& loc,
                    const ConstView& scale, const ConstView& y) {
  parameters(type, shared == nullptr ? batch.lanes : shared->lanes, shape, params, loc, scale);
  expect("predict: y", y, type, batch.lanes, shape.patch);
}

/// inject(), keep()
inline void predicted(const Backend& be, const Batch& batch, const PatchShape& shape,
                      const ConstView& y) {
  expect("a predicted patch", y, be.element_type(), batch.lanes, shape.patch);
}

/// exact_statistics(), keep_parameters()
inline void statistics(const Backend& be, const Batch& batch, const PatchShape& shape,
                       const ConstView& params, const ConstView& loc, const ConstView& scale) {
  parameters(be.element_type(), batch.lanes, shape, params, loc, scale);
}

/// PathOps::neighbours()
inline void neighbours(ElementType type, const Batch& context, const PatchShape& shape,
                       const ConstView& params, const ConstView& loc, const ConstView& scale) {
  PatchShape whole = shape;
  whole.steps = shape.patch;
  parameters(type, context.rows, whole, params, loc, scale);
}

/// upload(), download() of `count` activations.
inline void activations(const Backend& be, const char* what, const ConstView& v,
                        std::size_t count) {
  expect(what, v, be.element_type(), 0, v.width);
  if (static_cast<std::int64_t>(count) > v.elements()) {
    refuse_size(what, v, 1, static_cast<std::int64_t>(count));
  }
}

}  // namespace toto::expected
