// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/hwy_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/attention_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/attention_kernels.h"
#include "backend/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace toto::HWY_NAMESPACE {
namespace {

using cpu::AttentionScratch;
using cpu::AttentionShape;
using cpu::TimeTask;
using cpu::VariateTask;

constexpr std::size_t kChunk = cpu::kKeyChunk;
constexpr int kRows = 4;  // queries worked on together, so that keys and values are read once

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
  const float correction = hn::GetLane(exp_negative(hn::Sub(hn::Set(d, softmax.highest), largest)));
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

/// The same for all `columns`.
template <int R, typename Rows>
HWY_INLINE void combine(const float* const* weights, const float* correction, const Rows& row,
                        std::size_t n, float* const* out, std::size_t columns) {
  const Floats d;
  constexpr int kWide =
      HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4 ? 2 : 4;  // of 16 registers
  const auto load = [&](const float* p) { return hn::LoadU(d, p); };
  const auto store = [&](Vec v, float* p) { hn::StoreU(v, d, p); };
  std::size_t c = 0;
  for (; c + kWide * kLanes <= columns; c += kWide * kLanes) {
    combine_columns<R, kWide>(weights, correction, row, n, out, c, load, store);
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

void attend(const float* query, const float* keys, const float* values, std::size_t n,
            std::size_t d, float scale, Softmax& softmax, float* out) {
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

/// n keys side by side: [d][kChunk], zeros where there are fewer.
void transpose(const float* keys, std::size_t n, std::size_t d, float* panel) {
  if (n < kChunk) std::fill_n(panel, d * kChunk, 0.0F);
  for (std::size_t j = 0; j < n; ++j) {
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

/// Private keys lie far apart from one trajectory to the next: their first lines are asked for
/// while the shared ones are worked on.
HWY_INLINE void fetch_private(const AttentionScratch& s, int q, std::size_t floats) {
  constexpr std::size_t kLine = 16;
  constexpr std::size_t kMost = 24 * kLine;  // the processor goes on by itself
  for (std::size_t i = 0; i < std::min(floats, kMost); i += kLine) {
    __builtin_prefetch(s.keys[q] + i, 0, 2);
    __builtin_prefetch(s.values[q] + i, 0, 2);
  }
}

/// The task's queries over the n keys of the shared prefix: each chunk of keys is a matrix product
/// over all queries. `privately`: floats of the private keys of each query.
void attend_prefix(const float* keys, const float* values, std::size_t n, std::size_t d, int count,
                   std::size_t privately, float scale, Softmax* softmax, AttentionScratch& s) {
  for (std::size_t j = 0; j < n; j += kChunk) {
    const std::size_t chunk = std::min(kChunk, n - j);
    transpose(keys + j * d, chunk, d, s.panel);
    int q = 0;
    for (; q + kRows <= count; q += kRows) {
      if (j + kChunk >= n) {
        for (int r = 0; r < kRows; ++r) fetch_private(s, q + r, privately);
      }
      attend_panel<kRows>(s.query + q, s.panel, values + j * d, chunk, d, scale, softmax + q,
                          s.out + q);
    }
    for (; q < count; ++q) {
      attend_panel<1>(s.query + q, s.panel, values + j * d, chunk, d, scale, softmax + q,
                      s.out + q);
    }
  }
}

void time(const AttentionShape& shape, const TimeTask& task, AttentionScratch& s) {
  const Block& b = *task.block;
  const auto d = static_cast<std::size_t>(shape.d);
  const auto heads = static_cast<std::size_t>(shape.heads);
  const auto head = static_cast<std::size_t>(task.head);
  const float scale = 1.0F / std::sqrt(static_cast<float>(shape.d));
  const std::int32_t tokens = shape.last_only ? 1 : b.tokens;  // queries of a lane
  const auto lane_of = [&](std::int32_t q) {
    return (task.first + q) / tokens * b.variates + task.variate;
  };
  const auto token_of = [&](std::int32_t q) {
    return shape.last_only ? b.tokens - 1 : (task.first + q) % tokens;
  };
  Softmax softmax[cpu::kQueryGroup];
  for (std::int32_t q = 0; q < task.count; ++q) {
    const std::size_t row =
        static_cast<std::size_t>(b.row) +
        static_cast<std::size_t>(lane_of(q)) * static_cast<std::size_t>(b.tokens) +
        static_cast<std::size_t>(token_of(q));
    const std::size_t to = shape.last_only ? static_cast<std::size_t>(b.lane + lane_of(q)) : row;
    s.query[q] = shape.qkv + (row * 3 * heads + head) * d;
    s.out[q] = shape.out + (to * heads + head) * d;
    std::fill_n(s.out[q], d, 0.0F);
    const std::size_t at = static_cast<std::size_t>(b.suffix_at) +
                           (static_cast<std::size_t>(lane_of(q)) * heads + head) *
                               static_cast<std::size_t>(b.suffix_capacity) * d;
    s.keys[q] = shape.keys + at;
    s.values[q] = shape.values + at;
  }

  const auto prefix = static_cast<std::size_t>(b.prefix);
  const std::size_t prefix_at =
      static_cast<std::size_t>(b.prefix_at) +
      (static_cast<std::size_t>(task.variate) * heads + head) * prefix * d;
  const float* prefix_keys = shape.keys + prefix_at;
  const float* prefix_values = shape.values + prefix_at;
  const bool panels = shape.d <= cpu::kMaxPanelDim;
  if (panels) {
    const std::size_t privately = static_cast<std::size_t>(b.suffix + b.tokens) * d;
    attend_prefix(prefix_keys, prefix_values, prefix, d, task.count, privately, scale, softmax, s);
  }
  for (std::int32_t q = 0; q < task.count; ++q) {
    if (!panels) {
      attend(s.query[q], prefix_keys, prefix_values, prefix, d, scale, softmax[q], s.out[q]);
    }
    const std::size_t own =
        static_cast<std::size_t>(b.suffix) + static_cast<std::size_t>(token_of(q)) + 1;
    attend(s.query[q], s.keys[q], s.values[q], own, d, scale, softmax[q], s.out[q]);
    finish(softmax[q], s.out[q], d);
  }
}

void variates(const AttentionShape& shape, const VariateTask& task) {
  const Block& b = *task.block;
  const auto d = static_cast<std::size_t>(shape.d);
  const auto heads = static_cast<std::size_t>(shape.heads);
  const auto head = static_cast<std::size_t>(task.head);
  const auto tokens = static_cast<std::size_t>(b.tokens);
  const float scale = 1.0F / std::sqrt(static_cast<float>(shape.d));
  const std::size_t row =
      static_cast<std::size_t>(b.row) +  // of variate 0
      static_cast<std::size_t>(task.trajectory) * static_cast<std::size_t>(b.variates) * tokens +
      static_cast<std::size_t>(task.token);
  const std::size_t stride = tokens * 3 * heads * d;  // from one variate to the next
  const float* query = shape.qkv + (row * 3 * heads + head) * d;
  const float* key = query + heads * d;
  const float* value = key + heads * d;
  const std::int32_t* ids = shape.ids + b.ids + task.token;
  for (std::int32_t v = 0; v < b.variates; ++v) {
    float* out = shape.out + ((row + static_cast<std::size_t>(v) * tokens) * heads + head) * d;
    std::fill_n(out, d, 0.0F);
    Softmax softmax;
    std::int32_t members[kChunk];
    std::size_t n = 0;
    for (std::int32_t j = 0; j < b.variates; ++j) {
      if (ids[j * b.tokens] == ids[v * b.tokens]) members[n++] = j;
      if (n == kChunk || (n > 0 && j + 1 == b.variates)) {
        attend_chunk(query + static_cast<std::size_t>(v) * stride, Picked{key, stride, members},
                     Picked{value, stride, members}, n, d, scale, softmax, out);
        n = 0;
      }
    }
    finish(softmax, out, d);
  }
}

}  // namespace

extern const cpu::AttentionKernels kAttentionKernels;
const cpu::AttentionKernels kAttentionKernels = {time, variates};

}  // namespace toto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace toto::cpu {

const AttentionKernels& attention_kernels(Isa isa) { return TOTO_SELECT(isa, kAttentionKernels); }

}  // namespace toto::cpu
#endif
