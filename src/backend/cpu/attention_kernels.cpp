// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/hwy_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/attention_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <algorithm>
#include <cmath>

#include "backend/cpu/attention_kernels.h"
#include "backend/cpu/softmax_attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace toto::HWY_NAMESPACE {
namespace {

using cpu::AttentionScratch;
using cpu::AttentionShape;
using cpu::TimeTask;
using cpu::VariateTask;

constexpr int kRows = 4;  // queries worked on together, so that keys and values are read once

/// Private keys lie far apart from one trajectory to the next: their first lines are asked for
/// while the shared ones are worked on.
HWY_INLINE void fetch_private(const AttentionScratch& s, int q, std::size_t floats) {
  constexpr std::size_t kLine = 16;
  constexpr std::size_t kMax = 24 * kLine;  // the processor goes on by itself
  for (std::size_t i = 0; i < std::min(floats, kMax); i += kLine) {
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
