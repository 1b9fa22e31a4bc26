// SPDX-License-Identifier: Apache-2.0
#include "backend/reference/ops2.h"

#include <algorithm>
#include <cmath>

#include "backend/expected_views2.h"
#include "backend/operation.h"
#include "backend/reference/attention.h"
#include "backend/reference/series2.h"

namespace toto::reference {
namespace {

using series2::for_each_token;
using series2::lane_of;

template <typename T>
T silu(T x) {
  return x / (T{1} + std::exp(-x));
}

template <typename T>
void norm(const T* x, const T* gain, T* y, std::int32_t dim, double epsilon) {
  T squares = 0;
  for (std::int32_t i = 0; i < dim; ++i) squares += x[i] * x[i];
  const T root = std::sqrt(squares / static_cast<T>(dim) + static_cast<T>(epsilon));
  for (std::int32_t i = 0; i < dim; ++i) {
    y[i] = gain == nullptr ? x[i] / root : x[i] / root * gain[i];
  }
}

template <typename T>
void norm_row(const HeadShape& shape, const HeadNorm& n, T* row) {
  if (!n.query) return;
  const T* const query = typed<T>(n.query);
  const T* const key = typed<T>(n.key);
  for (std::int32_t h = 0; h < shape.heads + shape.groups; ++h) {
    T* head = row + std::int64_t{h} * shape.qk;
    norm(head, h < shape.heads ? query : key, head, shape.qk, n.epsilon);
  }
}

/// The first half of one head: pairs of neighbours, angle and factor by pair (spec B7.4).
template <typename T>
void rotate_half(T* z, const T* cosine, const T* sine, const T* factor, std::int32_t qk,
                 bool invert) {
  for (std::int32_t m = 0; m < qk / 4; ++m) {
    T by{1};
    if (factor != nullptr) by = invert ? T{1} / factor[m] : factor[m];
    const T a = z[2 * m];
    const T b = z[2 * m + 1];
    z[2 * m] = (cosine[m] * a + sine[m] * -b) * by;
    z[2 * m + 1] = (cosine[m] * b + sine[m] * a) * by;
  }
}

/// softmax(q.k) v over n keys; `seen(j)` masks, and something is seen.
template <typename T, typename Key, typename Value, typename Seen>
void attend2(const T* query, T* out, std::int32_t n, const HeadShape& shape, Key key, Value value,
             Seen seen) {
  T highest = -std::numeric_limits<T>::infinity();
  for (std::int32_t j = 0; j < n; ++j) {
    if (seen(j)) highest = std::max(highest, dot(query, key(j), shape.qk));
  }
  T total = 0;
  std::fill_n(out, shape.v, T{0});
  for (std::int32_t j = 0; j < n; ++j) {
    if (!seen(j)) continue;
    const T weight = std::exp(dot(query, key(j), shape.qk) - highest);
    total += weight;
    const T* v = value(j);
    for (std::int32_t e = 0; e < shape.v; ++e) out[e] += weight * v[e];
  }
  for (std::int32_t e = 0; e < shape.v; ++e) out[e] /= total;
}

template <typename T>
constexpr expected2::Types kTypes{kTypeOf<T>};

}  // namespace

template <typename T>
void ReferenceOps2<T>::inputs(const Call& call, const SeriesArrays& a, bool first,
                              const View& z) const {
  const OperationSpan span(Operation::inputs);
  expected2::inputs(kTypes<T>, call, a, z);
  T* const rows = typed<T>(z);
  for (std::int32_t i = 0; i < call.count; ++i) {
    const CallSlice& s = call.slices[i];
    for (std::int32_t v = 0; v < s.variates; ++v) {
      const series2::Lane<T> lane = lane_of<T>(s, a, v);
      series2::statistics(lane, s.fallback);
      if (first) series2::cap_bounds(lane, s.cap);
    }
  }
  for_each_token(call, [&](const CallSlice& s, std::int32_t v, std::int32_t t, std::int64_t row) {
    series2::embed_input(lane_of<T>(s, a, v), s.patch + t, t < s.refed, rows + row * 2 * a.patch);
  });
}

template <typename T>
void ReferenceOps2<T>::quantiles(const Call& call, const SeriesArrays& a, const ConstView& raw,
                                 const View& y) const {
  const OperationSpan span(Operation::quantiles);
  expected2::quantiles(kTypes<T>, call, a, raw);
  expected2::quantiles(kTypes<T>, call, a, y);
  const T* const from = typed<T>(raw);
  T* const to = typed<T>(y);
  for_each_token(call, [&](const CallSlice& s, std::int32_t v, std::int32_t t, std::int64_t row) {
    const std::int64_t at = row * kQuantiles * a.patch;
    series2::quantiles(lane_of<T>(s, a, v), units_of(s, s.patch + t + 1), from + at, to + at);
  });
}

template <typename T>
void ReferenceOps2<T>::knot_results(const Call& call, const SeriesArrays& a,
                                    const ConstView& quantiles, const KnotOutputs& to) const {
  const OperationSpan span(Operation::knot_results);
  expected2::quantiles(kTypes<T>, call, a, quantiles);
  const T* const knots = typed<T>(quantiles);
  for_each_token(call, [&](const CallSlice& s, std::int32_t v, std::int32_t t, std::int64_t row) {
    series2::knot_results(s, a, v, t, knots + row * kQuantiles * a.patch, to);
  });
}

template <typename T>
void ReferenceOps2<T>::feed_back(const Call& call, const ConstView& quantiles,
                                 const SeriesArrays& a) const {
  const OperationSpan span(Operation::feed_back);
  expected2::quantiles(kTypes<T>, call, a, quantiles);
  const T* const knots = typed<T>(quantiles);
  for_each_token(call, [&](const CallSlice& s, std::int32_t v, std::int32_t t, std::int64_t row) {
    if (v >= s.targets || s.patch + t + 1 < s.context) return;
    series2::feed_back(lane_of<T>(s, a, v), s.patch + t + 1, knots + row * kQuantiles * a.patch);
  });
}

template <typename T>
void ReferenceOps2<T>::knot_neighbours(const Call& call, const SeriesArrays& a,
                                       const ConstView& quantiles, double* scores,
                                       float* rho) const {
  const OperationSpan span(Operation::knot_neighbours);
  expected2::quantiles(kTypes<T>, call, a, quantiles);
  const T* const knots = typed<T>(quantiles);
  for (std::int32_t i = 0; i < call.count; ++i) {
    const CallSlice& s = call.slices[i];
    for (std::int32_t v = 0; v < s.variates; ++v) {
      const std::int64_t row = s.row + std::int64_t{v} * s.tokens;
      series2::knot_neighbours(s, a, v, knots + row * kQuantiles * a.patch, scores + row * a.patch,
                               rho + (std::int64_t{s.lane} + v) * a.patch);
    }
  }
}

template <typename T>
void ReferenceOps2<T>::knot_chains(const Call& call, const SeriesArrays& a, const float* rho,
                                   const KnotOutputs& to) const {
  const OperationSpan span(Operation::knot_chains);
  const auto draw = [&](const CallSlice& s, std::int32_t v, std::int32_t n) {
    const std::int64_t lane = std::int64_t{s.lane} + v;
    double z = 0;
    for (std::int32_t step = 0; step < s.horizon; ++step) {
      const paths::ChainStep one = paths::chain_step(rho + lane * a.patch, a.patch, step);
      z = one.rho * z + one.free * paths::knot_normal(s, v, n, step);
      to.kept[(lane * to.steps + step) * to.trajectories + n] = static_cast<float>(z);
    }
  };
  for (std::int32_t i = 0; i < call.count; ++i) {
    const CallSlice& s = call.slices[i];
    for (std::int32_t v = 0; v < s.variates; ++v) {
      for (std::int32_t n = 0; n < s.trajectories; ++n) draw(s, v, n);
    }
  }
}

template <typename T>
void ReferenceOps2<T>::linear_silu(const Matrix& w, const ConstView& x, const View& y) const {
  const OperationSpan span(Operation::linear_silu);
  expected2::linear_silu(kTypeOf<T>, w, x, y);
  const T* const inputs = typed<T>(x);
  T* const outputs = typed<T>(y);
  const auto& own = *static_cast<const PlainWeights<T>*>(w.weights);
  const T* const weights = own.weights.get();
  const T* const bias = own.bias.get();
  for (std::int32_t row = 0; row < x.rows.count; ++row) {
    const T* input = inputs + std::int64_t{row} * w.in;
    T* output = outputs + std::int64_t{row} * w.out;
    for (std::int32_t j = 0; j < w.out; ++j) {
      const T sum = dot(weights + std::int64_t{j} * w.in, input, w.in);
      output[j] = silu(bias == nullptr ? sum : sum + bias[j]);
    }
  }
}

template <typename T>
void ReferenceOps2<T>::rms_norm(const ConstView& x, const View& y, double epsilon) const {
  const OperationSpan span(Operation::rms_norm);
  expected2::rms_norm(kTypes<T>, x, y);
  const std::int32_t dim = x.width;
  const T* const from = typed<T>(x);
  T* const to = typed<T>(y);
  for (std::int64_t row = 0; row < x.rows.count; ++row) {
    norm<T>(from + row * dim, nullptr, to + row * dim, dim, epsilon);
  }
}

/// Norms queries and keys in place.
template <typename T>
void ReferenceOps2<T>::norm_heads(Rows rows, const HeadShape& shape, const HeadNorm& norm,
                                  T* qkv) const {
  for (std::int64_t row = 0; row < rows.count; ++row) {
    norm_row(shape, norm, qkv + row * shape.row());
  }
}

/// Norms and rotates queries in place, and appends keys and values to the cache.
template <typename T>
void ReferenceOps2<T>::rotary_append(const Call& call, const HeadShape& shape, const HeadNorm& norm,
                                     const Rotary& rotary, T* qkv, const KvCache& kv) const {
  norm_heads(call.rows, shape, norm, qkv);
  const T* const cosines = typed<T>(rotary.cosine);
  const T* const sines = typed<T>(rotary.sine);
  const T* const factors = typed<T>(rotary.factor);
  T* const kept_keys = typed<T>(kv.keys);
  T* const kept_values = typed<T>(kv.values);
  const std::int32_t pairs = shape.qk / 4;
  for_each_token(call, [&](const CallSlice& s, std::int32_t v, std::int32_t t, std::int64_t row) {
    T* queries = qkv + row * shape.row();
    T* keys = queries + shape.heads * shape.qk;
    const T* values = keys + shape.groups * shape.qk;
    const std::int64_t patch = s.patch + t;
    const T* cosine = cosines + patch * pairs;
    const T* sine = sines + patch * pairs;
    const T* factor =
        factors == nullptr ? nullptr : factors + (patch - s.centre + rotary.positions) * pairs;
    for (std::int32_t h = 0; h < shape.heads; ++h) {
      rotate_half(queries + h * shape.qk, cosine, sine, factor, shape.qk, false);
    }
    for (std::int32_t g = 0; g < shape.groups; ++g) {
      rotate_half(keys + g * shape.qk, cosine, sine, factor, shape.qk, true);
      const std::int64_t at = (s.slot + std::int64_t{v} * s.slots) * shape.groups +
                              std::int64_t{g} * s.slots + patch - s.first_slot;
      std::copy_n(keys + g * shape.qk, shape.qk, kept_keys + at * shape.qk);
      std::copy_n(values + g * shape.v, shape.v, kept_values + at * shape.v);
    }
  });
}

template <typename T>
void ReferenceOps2<T>::time_attention(const Call& all, const Call& wanted, const SeriesArrays& a,
                                      const HeadShape& shape, const HeadNorm& norm,
                                      const Rotary& rotary, const View& qkv, const KvCache& kv,
                                      bool /*keep*/, const View& out) const {
  const OperationSpan span(Operation::time_attention);
  expected2::time_attention(kTypes<T>, all, wanted, shape, norm, rotary, qkv, kv, out);
  T* const rows = typed<T>(qkv);
  T* const attended = typed<T>(out);
  const T* const kept_keys = typed<T>(kv.keys);
  const T* const kept_values = typed<T>(kv.values);
  rotary_append(all, shape, norm, rotary, rows, kv);
  for (std::int32_t i = 0; i < wanted.count; ++i) {
    const CallSlice& s = wanted.slices[i];
    const CallSlice& source = all.slices[i];
    for (std::int32_t v = 0; v < s.variates; ++v) {
      const std::uint8_t* hidden = a.hidden + s.array + std::int64_t{v} * s.patches + s.first_slot;
      for (std::int32_t t = 0; t < s.tokens; ++t) {
        const std::int64_t from =
            source.row + std::int64_t{v} * source.tokens + t + s.patch - source.patch;
        const std::int64_t to = s.row + std::int64_t{v} * s.tokens + t;
        const std::int32_t own = s.patch + t - s.first_slot;
        for (std::int32_t h = 0; h < shape.heads; ++h) {
          const std::int32_t g = h / (shape.heads / shape.groups);
          const std::int64_t at =
              (s.slot + std::int64_t{v} * s.slots) * shape.groups + std::int64_t{g} * s.slots;
          const T* keys = kept_keys + at * shape.qk;
          const T* values = kept_values + at * shape.v;
          attend2(
              rows + from * shape.row() + h * shape.qk,
              attended + to * shape.attended() + h * shape.v, own + 1, shape,
              [&](std::int32_t j) { return keys + std::int64_t{j} * shape.qk; },
              [&](std::int32_t j) { return values + std::int64_t{j} * shape.v; },
              [&](std::int32_t j) { return !s.time_mask || hidden[j] == hidden[own]; });
        }
      }
    }
  }
}

template <typename T>
void ReferenceOps2<T>::variate_attention(const Call& call, const SeriesArrays& a,
                                         const HeadShape& shape, const HeadNorm& norm,
                                         const View& qkv, const View& out) const {
  const OperationSpan span(Operation::variate_attention);
  expected2::variate_attention(kTypes<T>, call, shape, norm, qkv, out);
  T* const rows = typed<T>(qkv);
  T* const attended = typed<T>(out);
  norm_heads(call.rows, shape, norm, rows);
  for_each_token(call, [&](const CallSlice& s, std::int32_t v, std::int32_t t, std::int64_t row) {
    const auto row_of = [&](std::int32_t variate) {
      return rows + (s.row + std::int64_t{variate} * s.tokens + t) * shape.row();
    };
    const std::int64_t own = id_of(s, a, v, t);
    for (std::int32_t h = 0; h < shape.heads; ++h) {
      const std::int32_t g = h / (shape.heads / shape.groups);
      const std::int32_t key = (shape.heads + g) * shape.qk;
      const std::int32_t value = (shape.heads + shape.groups) * shape.qk + g * shape.v;
      attend2(
          row_of(v) + h * shape.qk, attended + row * shape.attended() + h * shape.v, s.variates,
          shape, [&](std::int32_t j) { return row_of(j) + key; },
          [&](std::int32_t j) { return row_of(j) + value; },
          [&](std::int32_t j) { return id_of(s, a, j, t) == own; });
    }
  });
}

template <typename T>
void ReferenceOps2<T>::gather(const Call& all, const Call& wanted, const ConstView& x,
                              const View& y) const {
  const OperationSpan span(Operation::gather);
  expected2::gather(kTypes<T>, all, wanted, x, y);
  const std::int64_t dim = x.width;
  const T* const rows = typed<T>(x);
  T* const to = typed<T>(y);
  for (std::int32_t i = 0; i < wanted.count; ++i) {
    const CallSlice& s = wanted.slices[i];
    const CallSlice& source = all.slices[i];
    for (std::int32_t v = 0; v < s.variates; ++v) {
      const std::int64_t from =
          source.row + std::int64_t{v} * source.tokens + s.patch - source.patch;
      std::copy_n(rows + from * dim, s.tokens * dim,
                  to + (s.row + std::int64_t{v} * s.tokens) * dim);
    }
  }
}

template class ReferenceOps2<float>;
template class ReferenceOps2<double>;

}  // namespace toto::reference
