// SPDX-License-Identifier: Apache-2.0
// Softmax attention of a few queries over keys and values: one query over rows anywhere, several
// over a panel of transposed keys. Compiled once for each instruction set.
#if defined(TOTO_BACKEND_CPU_SOFTMAX_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TOTO_BACKEND_CPU_SOFTMAX_ATTENTION_INL_H_
#undef TOTO_BACKEND_CPU_SOFTMAX_ATTENTION_INL_H_
#else
#define TOTO_BACKEND_CPU_SOFTMAX_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "backend/cpu/attention_kernels.h"
#include "backend/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace toto::HWY_NAMESPACE {
namespace {

constexpr std::size_t kChunk = cpu::kKeyChunk;

struct Softmax {
  float highest = -std::numeric_limits<float>::infinity();
  float total = 0;
};

/// Rows of keys or values that lie at equal distances, and rows picked from such by number.
struct Every {
  const float* base;
  std::size_t stride;
  HWY_INLINE const float* operator()(std::size_t j) const { return base + j * stride; }
};
struct Picked {
  const float* base;
  std::size_t stride;
  const std::int32_t* index;
  HWY_INLINE const float* operator()(std::size_t j) const {
    return base + static_cast<std::size_t>(index[j]) * stride;
  }
};

/// The four sums s0 .. s3, in the first four lanes.
HWY_INLINE Vec sums_of(Vec s0, Vec s1, Vec s2, Vec s3) {
  const Floats d;
  const hn::Repartition<double, Floats> d2;
  const auto wide = [&](Vec v) { return hn::BitCast(d2, v); };
  // In each block of 128 bits: two sums of two lanes each, then four sums of all four.
  const Vec a = hn::Add(hn::InterleaveLower(d, s0, s1), hn::InterleaveUpper(d, s0, s1));
  const Vec b = hn::Add(hn::InterleaveLower(d, s2, s3), hn::InterleaveUpper(d, s2, s3));
  Vec sum = hn::Add(hn::BitCast(d, hn::InterleaveLower(d2, wide(a), wide(b))),
                    hn::BitCast(d, hn::InterleaveUpper(d2, wide(a), wide(b))));
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  sum = hn::Add(sum, hn::SwapAdjacentBlocks(sum));
#endif
#if HWY_TARGET == HWY_AVX3
  sum = hn::Add(sum, hn::ReverseBlocks(d, sum));
#endif
  return sum;
}

/// logits[j] = query . key(j), j < n. Keys are taken four at a time to have four sums in flight; up
/// to a vector more is written.
template <typename Rows>
HWY_INLINE void dots(const float* query, const Rows& key, std::size_t n, std::size_t d,
                     float* logits) {
  for (std::size_t j = 0; j < n; j += 4) {
    const std::size_t last = n - 1;
    const float* k0 = key(j);
    const float* k1 = key(std::min(j + 1, last));
    const float* k2 = key(std::min(j + 2, last));
    const float* k3 = key(std::min(j + 3, last));
    Vec s0 = hn::Zero(Floats());
    Vec s1 = s0;
    Vec s2 = s0;
    Vec s3 = s0;
    for_each_vector(d, [&](std::size_t, const auto& load, const auto&) {
      const Vec q = load(query);
      s0 = hn::MulAdd(q, load(k0), s0);
      s1 = hn::MulAdd(q, load(k1), s1);
      s2 = hn::MulAdd(q, load(k2), s2);
      s3 = hn::MulAdd(q, load(k3), s3);
    });
    hn::StoreU(sums_of(s0, s1, s2, s3), Floats(), logits + j);
  }
}

/// Turns the first n logits of a chunk into weights and takes them into the softmax. Returns what
/// all that was weighed before must be multiplied with.
HWY_INLINE float soften(float* logits, std::size_t n, float scale, Softmax& softmax) {
  const Floats d;
  const std::size_t whole = (n + kLanes - 1) / kLanes * kLanes;
  std::fill(logits + n, logits + whole, -std::numeric_limits<float>::infinity());
  Vec largest = hn::Set(d, softmax.highest);
  for (std::size_t i = 0; i < n; i += kLanes) {
    const Vec v = hn::Mul(hn::Load(d, logits + i), hn::Set(d, scale));
    hn::Store(v, d, logits + i);
    largest = hn::Max(largest, v);
  }
  largest = hn::MaxOfLanes(d, largest);
  Vec sum = hn::Zero(d);
  for (std::size_t i = 0; i < n; i += kLanes) {
    const Vec weight = exp_negative(hn::Sub(hn::Load(d, logits + i), largest));
    hn::Store(weight, d, logits + i);
    sum = hn::Add(sum, weight);
  }
  float correction = 0;  // what was never weighed is nothing
  if (softmax.highest > -std::numeric_limits<float>::infinity()) {
    correction = hn::GetLane(exp_negative(hn::Sub(hn::Set(d, softmax.highest), largest)));
  }
  softmax.highest = hn::GetLane(largest);
  softmax.total = softmax.total * correction + sum_of(sum);
  return correction;
}

/// Columns c .. of out[r] = correction[r] * out[r] + sum over j of weights[r][j] * row(j); without
/// `correction`, nothing but the sum. The sum is one chain in the order of j.
template <int R, int C, typename Rows, typename Load, typename Store>
HWY_INLINE void combine_columns(const float* const* weights, const float* correction,
                                const Rows& row, std::size_t n, float* const* out, std::size_t c,
                                const Load& load, const Store& store) {
  const Floats d;
  Vec sum[R][C];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < C; ++i) {
      const float* at = out[r] + c + static_cast<std::size_t>(i) * kLanes;
      sum[r][i] =
          correction == nullptr ? hn::Zero(d) : hn::Mul(load(at), hn::Set(d, correction[r]));
    }
  }
  for (std::size_t j = 0; j < n; ++j) {
    const float* v = row(j) + c;
    Vec part[C];
#pragma GCC unroll 4
    for (int i = 0; i < C; ++i) part[i] = load(v + static_cast<std::size_t>(i) * kLanes);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const Vec w = hn::Set(d, weights[r][j]);
#pragma GCC unroll 4
      for (int i = 0; i < C; ++i) sum[r][i] = hn::MulAdd(w, part[i], sum[r][i]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < C; ++i) {
      store(sum[r][i], out[r] + c + static_cast<std::size_t>(i) * kLanes);
    }
  }
}

constexpr int kWide = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
                          ? 2
                          : 4;  // vectors of columns, of 16 registers

/// The same for all `columns`, Wide vectors of them at a time.
template <int R, int Wide = kWide, typename Rows>
HWY_INLINE void combine(const float* const* weights, const float* correction, const Rows& row,
                        std::size_t n, float* const* out, std::size_t columns) {
  const Floats d;
  const auto load = [&](const float* p) { return hn::LoadU(d, p); };
  const auto store = [&](Vec v, float* p) { hn::StoreU(v, d, p); };
  std::size_t c = 0;
  for (; c + Wide * kLanes <= columns; c += Wide * kLanes) {
    combine_columns<R, Wide>(weights, correction, row, n, out, c, load, store);
  }
  for (; c + kLanes <= columns; c += kLanes) {
    combine_columns<R, 1>(weights, correction, row, n, out, c, load, store);
  }
  if (c < columns) {
    combine_columns<R, 1>(
        weights, correction, row, n, out, c, [&](const float* p) { return load_n(p, columns - c); },
        [&](Vec v, float* p) { store_n(v, p, columns - c); });
  }
}

/// One query over n <= kChunk keys.
template <typename Rows>
HWY_INLINE void attend_chunk(const float* query, const Rows& key, const Rows& value, std::size_t n,
                             std::size_t d, float scale, Softmax& softmax, float* out) {
  HWY_ALIGN float logits[kChunk + kLanes];
  dots(query, key, n, d, logits);
  const float correction = soften(logits, n, scale, softmax);
  const float* weights = logits;
  combine<1>(&weights, &correction, value, n, &out, d);
}

[[maybe_unused]] void attend(const float* query, const float* keys, const float* values,
                             std::size_t n, std::size_t d, float scale, Softmax& softmax,
                             float* out) {
  for (std::size_t j = 0; j < n; j += kChunk) {
    attend_chunk(query, Every{keys + j * d, d}, Every{values + j * d, d}, std::min(kChunk, n - j),
                 d, scale, softmax, out);
  }
}

void finish(const Softmax& softmax, float* out, std::size_t dim) {
  const Vec total = hn::Set(Floats(), softmax.total);
  for_each_vector(dim, [&](std::size_t, const auto& load, const auto& store) {
    store(hn::Div(load(out), total), out);
  });
}

/// n keys side by side: [d][kChunk]. What lies behind them stays: whoever computes with it takes no
/// notice of the results.
void transpose(const float* keys, std::size_t n, std::size_t d, float* panel) {
  const hn::Full128<float> four;
  const hn::Full128<double> two;
  const auto pairs = [&](auto a, auto b, bool upper) {
    const auto x = hn::BitCast(two, a);
    const auto y = hn::BitCast(two, b);
    return hn::BitCast(four, upper ? hn::InterleaveUpper(two, x, y) : hn::InterleaveLower(x, y));
  };
  std::size_t j = 0;
  for (; j + 4 <= n; j += 4) {
    const float* from = keys + j * d;
    std::size_t e = 0;
    for (; e + 4 <= d; e += 4) {
      const auto k0 = hn::LoadU(four, from + e);
      const auto k1 = hn::LoadU(four, from + d + e);
      const auto k2 = hn::LoadU(four, from + 2 * d + e);
      const auto k3 = hn::LoadU(four, from + 3 * d + e);
      const auto low01 = hn::InterleaveLower(four, k0, k1);
      const auto low23 = hn::InterleaveLower(four, k2, k3);
      const auto high01 = hn::InterleaveUpper(four, k0, k1);
      const auto high23 = hn::InterleaveUpper(four, k2, k3);
      float* to = panel + e * kChunk + j;
      hn::StoreU(pairs(low01, low23, false), four, to);
      hn::StoreU(pairs(low01, low23, true), four, to + kChunk);
      hn::StoreU(pairs(high01, high23, false), four, to + 2 * kChunk);
      hn::StoreU(pairs(high01, high23, true), four, to + 3 * kChunk);
    }
    for (; e < d; ++e) {
      for (std::size_t i = 0; i < 4; ++i) panel[e * kChunk + j + i] = from[i * d + e];
    }
  }
  for (; j < n; ++j) {
    for (std::size_t e = 0; e < d; ++e) panel[e * kChunk + j] = keys[j * d + e];
  }
}

/// R queries over the n keys in `panel` and their values.
template <int R>
void attend_panel(const float* const* query, const float* panel, const float* values, std::size_t n,
                  std::size_t d, float scale, Softmax* softmax, float* const* out) {
  HWY_ALIGN float logits[R][kChunk];
  float* rows[R];
  const float* weights[R];
  float correction[R];
  for (int r = 0; r < R; ++r) weights[r] = rows[r] = logits[r];
  const std::size_t columns = (n + kLanes - 1) / kLanes * kLanes;
  combine<R>(query, nullptr, Every{panel, kChunk}, d, rows, columns);
  for (int r = 0; r < R; ++r) correction[r] = soften(logits[r], n, scale, softmax[r]);
  combine<R>(weights, correction, Every{values, d}, n, out, d);
}

}  // namespace
}  // namespace toto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
