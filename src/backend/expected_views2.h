// SPDX-License-Identifier: Apache-2.0
// What each operation of Ops2 expects of its views, as expected_views.h for those of Backend.
#pragma once

#include "backend/expected_views.h"
#include "backend/ops2.h"

namespace toto::expected2 {

/// Of a backend: the type of its activations, and whether layers are multiplied in bfloat16.
struct Types {
  ElementType element;
  bool narrow = false;
};

inline void arrays(Types types, const SeriesArrays& a) {
  expect("arrays: values", a.values, types.element, 0, a.patch);
  expect("arrays: loc", a.loc, types.element, 0, 1);
  expect("arrays: scale", a.scale, types.element, 0, 1);
  expect("arrays: bounds", a.bounds, types.element, 0, 2);
}

inline void inputs(Types types, const Call& call, const SeriesArrays& a, const ConstView& z) {
  arrays(types, a);
  expected::operands("inputs: z", z, types.element, types.narrow, call.rows,
                     std::int64_t{2} * a.patch);
}

/// quantiles(), knot_results(), feed_back()
inline void quantiles(Types types, const Call& call, const SeriesArrays& a, const ConstView& y) {
  arrays(types, a);
  expect("quantiles", y, types.element, call.rows, std::int64_t{kQuantiles} * a.patch);
}

/// `type`: of what products with w take.
inline void linear_silu(ElementType type, const Matrix& w, const ConstView& x, const ConstView& y) {
  expect("linear_silu: x", x, type, 0, w.in);
  expect("linear_silu: y", y, type, x.rows.count, w.out);
}

/// linear_values(), linear_wanted()
inline void linear_heads(ElementType type, const Matrix& w, const HeadShape& shape,
                         const ConstView& x, const ConstView& y) {
  expect("linear before attention: x", x, type, 0, w.in);
  expect("linear before attention: y", y, type, x.rows.count, shape.row());
}

inline void rms_norm(Types types, const ConstView& x, const ConstView& y) {
  expect("rms_norm: x", x, types.element, 0, x.width);
  expected::operands("rms_norm: y", y, types.element, types.narrow, x.rows.count, x.width);
}

inline void norms(Types types, const HeadShape& shape, const HeadNorm& norm) {
  if (!norm.query) return;
  expect("attention: gain of queries", norm.query, types.element, 1, shape.qk);
  expect("attention: gain of keys", norm.key, types.element, 1, shape.qk);
}

inline void variate_attention(Types types, const Call& call, const HeadShape& shape,
                              const HeadNorm& norm, const ConstView& qkv, const ConstView& out) {
  norms(types, shape, norm);
  expect("attention: qkv", qkv, types.element, call.rows, shape.row());
  expected::operands("attention: out", out, types.element, types.narrow, call.rows,
                     shape.attended());
}

inline void time_attention(Types types, const Call& all, const Call& wanted, const HeadShape& shape,
                           const HeadNorm& norm, const Rotary& rotary, const ConstView& qkv,
                           const KvCache& kv, const ConstView& out) {
  norms(types, shape, norm);
  expect("attention: qkv", qkv, types.element, all.rows, shape.row());
  expected::operands("attention: out", out, types.element, types.narrow, wanted.rows,
                     shape.attended());
  expect("attention: keys", kv.keys, types.element, 0, shape.qk);
  expect("attention: values", kv.values, types.element, 0, shape.v);
  expect("attention: cosine", rotary.cosine, types.element, rotary.positions, shape.qk / 4);
  expect("attention: sine", rotary.sine, types.element, rotary.positions, shape.qk / 4);
  if (!rotary.factor) return;
  expect("attention: factor", rotary.factor, types.element, 2 * std::int64_t{rotary.positions},
         shape.qk / 4);
}

inline void gather(Types types, const Call& all, const Call& wanted, const ConstView& x,
                   const ConstView& y) {
  expect("gather: x", x, types.element, all.rows, x.width);
  expect("gather: y", y, types.element, wanted.rows, x.width);
}

}  // namespace toto::expected2
