// SPDX-License-Identifier: Apache-2.0
// What the kernel of all layers is made of, whatever its type: sizes, the wires between its blocks of
// threads, who computes what, norm, attention.
#pragma once

#include <cstdint>

#include "backend/cuda/attend.cuh"
#include "backend/cuda/live.h"
#include "backend/cuda/norm.cuh"
#include "backend/cuda/product.h"
#include "backend/cuda/rotary.cuh"
#include "backend/cuda/wire.cuh"

namespace toto::cuda::layers {

inline constexpr int kDim = kNormedWidth;
inline constexpr int kHidden = 3072;
inline constexpr int kHead = 64;
inline constexpr int kHeads = 12;
inline constexpr int kMostLayers = 32;
inline constexpr int kLeastProcessors = 96;
inline constexpr int kWorkers = 256;  // threads that compute; a warp more streams weights

enum Product { kQkv, kOut, kMlpIn, kMlpOut, kProducts };
__host__ __device__ constexpr int outs(int p) {
  return p == kQkv ? 3 * kDim : p == kMlpIn ? 2 * kHidden : kDim;
}
__host__ __device__ constexpr int ins(int p) { return p == kMlpOut ? kHidden : kDim; }

struct alignas(64) TensorMap {
  std::uint64_t words[16];
};

/// One layer, in the device's memory.
struct LayerOnDevice {
  TensorMap maps[kProducts];
  const float* bias[kProducts];
  const float* norm[2];
  std::int32_t space;
};

struct Arguments {
  const LayerOnDevice* layers;
  std::int32_t count;
  std::int32_t last_time;  // after its attention only the last tokens go on
  const LiveBatch* all;
  const LiveBatch* last;
  Rotary rotary;
  const float* hidden;
  float* y;
  float* wires;
  float* keys[kMostLayers];  // of each layer; of time layers only
  float* values[kMostLayers];
};

/// Words between the phases of one layer.
struct Wires {
  float* qkv;       // [rows][3][heads][64]
  float* attended;  // laid out by the type of the products
  float* middle;    // [rows][dim], after the attention
  float* gated;     // laid out by the type of the products
  float* end;       // [rows][dim]
};
inline constexpr int kWireWords = kFewRows * (3 * kDim + kDim + kDim + kHidden + kDim);

__device__ inline Wires wires_of(float* all, int layer) {
  float* at = all + std::int64_t{layer} * kWireWords;
  Wires w{};
  w.qkv = at;
  w.attended = w.qkv + kFewRows * 3 * kDim;
  w.middle = w.attended + kFewRows * kDim;
  w.gated = w.middle + kFewRows * kDim;
  w.end = w.gated + kFewRows * kHidden;
  return w;
}

/// Of the workers only.
__device__ inline void sync_workers() {
  asm volatile("bar.sync 1, %0;" ::"n"(kWorkers) : "memory");
}

/// Units of work of the whole launch are dealt to the blocks of threads in turn: this block's first
/// of a phase whose first unit has the number `base`.
__device__ inline int first_unit(int base) {
  const int blocks = static_cast<int>(gridDim.x);
  return (static_cast<int>(blockIdx.x) + blocks - base % blocks) % blocks;
}
__device__ inline int units_here(int first, int units) {
  const int blocks = static_cast<int>(gridDim.x);
  return first < units ? (units - first + blocks - 1) / blocks : 0;
}

/// Where a row of the trimmed batch comes from.
__device__ inline int row_before(const Arguments& a, int lane) {
  const Block& b = a.all->blocks[block_of_lane(*a.all, lane)];
  return b.row + (lane - b.lane) * b.tokens + b.tokens - 1;
}

/// A warp's row, normed as rms_norm does it: lane's part of it in v.
__device__ inline void take_normed(float4 (&v)[kDim / 128], const float* row, const float* gain) {
  constexpr int kFours = kDim / 128;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float4 gains[kFours];
  load_part(gains, gain);
  uint4 words[kFours];
  wire::take_fours(words, [&](int i) { return row + i * 128 + lane * 4; });
#pragma unroll
  for (int i = 0; i < kFours; ++i) {
    v[i] = {__uint_as_float(words[i].x), __uint_as_float(words[i].y), __uint_as_float(words[i].z),
            __uint_as_float(words[i].w)};
  }
  norm_part(v, gains);
}

struct AttentionMemory {
  alignas(16) float query[kHead];
  alignas(16) float keys[kFewRows][kHead + 4];
  alignas(16) float values[kFewRows][kHead];
};

/// A row of the batch and what it sees: rows `first + stride j`, j < count, of equal id.
struct Sight {
  std::int32_t first, stride, count, own;  // own: j of the row itself
  std::int32_t out;                        // row of what it attends to; -1: only its key matters
};

__device__ inline float4 rotated(float4 v, const Rotary& rotary, const Block& b, int token, int e,
                                 bool key) {
  constexpr int kHalf = kHead / 2;
  const std::int64_t t = b.position + token;
  const float* const cosine = static_cast<const float*>(rotary.cosine) + t * kHalf;
  const float* const sine = static_cast<const float*>(rotary.sine) + t * kHalf;
  const float* const factor =
      static_cast<const float*>(rotary.factor) + (t - b.centre + rotary.positions) * kHalf;
  float f[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    f[i] = factor[(e + i) % kHalf];
    if (key) f[i] = 1.0F / f[i];
  }
  const int m = e / 2;
  const float2 low = rotate_pair({v.x, v.y}, cosine[m], sine[m], f[0], f[1]);
  const float2 high = rotate_pair({v.z, v.w}, cosine[m + 1], sine[m + 1], f[2], f[3]);
  return {low.x, low.y, high.x, high.y};
}

/// Attention of one row and head by the workers of a block of threads, its warp 0 at the end;
/// emit(i, v): the value of channel 32 i + lane.
template <typename Same, typename Turn, typename Emit>
__device__ void attend_row(AttentionMemory& m, const float* qkv, const Sight& sight, int head,
                           const Same& same, const Turn& turn, const Emit& emit) {
  constexpr int kQuads = kHead / 4;
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < (1 + 2 * sight.count) * kQuads; i += kWorkers) {
    const int e = i % kQuads * 4;
    const int vector = i / kQuads;  // the query, the keys, the values
    const int which = vector == 0 ? 0 : 1 + (vector - 1) / sight.count;
    const int j = vector == 0 ? sight.own : (vector - 1) % sight.count;
    const std::int64_t row = sight.first + std::int64_t{sight.stride} * j;
    uint4 word[1];
    wire::take_fours(word, [&](int) { return qkv + ((row * 3 + which) * kHeads + head) * kHead + e; });
    const float4 v = turn({__uint_as_float(word[0].x), __uint_as_float(word[0].y),
                           __uint_as_float(word[0].z), __uint_as_float(word[0].w)},
                          which, j, e);
    float* const to = which == 0 ? m.query : which == 1 ? m.keys[j] : m.values[j];
    *reinterpret_cast<float4*>(to + e) = v;
  }
  sync_workers();
  if (thread < 32 && sight.out >= 0) {
    attend::Running<kHead> running[1];
    float score = attend::none();
    if (thread < sight.count && same(thread)) {
      score = attend::dot<kHead>(m.query, m.keys[thread], kHead, true) /
              sqrtf(static_cast<float>(kHead));
    }
    const float weight[1] = {attend::weigh<kHead>(running[0], score)};
    const int count[1] = {sight.count};
    attend::take_values<kHead>(running, weight, count, sight.count, kHead, [&](int, int j, int e) {
      return same(j) ? m.values[j][e] : 0.0F;
    });
#pragma unroll
    for (int i = 0; i < kHead / 32; ++i) emit(i, running[0].out[i] / running[0].total);
  }
  sync_workers();
}

/// Row `row` of a time layer sees the tokens of its lane up to itself; its key and value are kept.
template <typename Emit>
__device__ void attend_time(AttentionMemory& m, const Arguments& a, int layer, const float* qkv,
                            int row, int head, const Emit& emit) {
  const Block& b = a.all->blocks[block_of_row(*a.all, row)];
  const std::int32_t own = row - b.row;
  const std::int32_t lane = own / b.tokens;
  const std::int32_t token = own % b.tokens;
  Sight sight{row - token, 1, token + 1, token, row};
  if (layer == a.last_time) sight.out = token == b.tokens - 1 ? b.lane + lane : -1;
  const std::int64_t slot =
      b.suffix_at +
      ((std::int64_t{lane} * kHeads + head) * b.suffix_capacity + b.suffix + token) * kHead;
  attend_row(
      m, qkv, sight, head, [](int) { return true; },
      [&](float4 v, int which, int j, int e) {
        if (which != 2) v = rotated(v, a.rotary, b, j, e, which == 1);
        if (which != 0 && j == token) {
          float* const kept = which == 1 ? a.keys[layer] : a.values[layer];
          *reinterpret_cast<float4*>(kept + slot + e) = v;
        }
        return v;
      },
      [&](int i, float v) { emit(sight.out, head * kHead + i * 32, v); });
}

/// Row `row` of a variate layer sees the variates of its trajectory and token that have its id.
template <typename Emit>
__device__ void attend_variates(AttentionMemory& m, const LiveBatch& live, const float* qkv, int row,
                                int head, const Emit& emit) {
  const Block& b = live.blocks[block_of_row(live, row)];
  const std::int32_t own = row - b.row;
  const std::int32_t token = own % b.tokens;
  const std::int32_t variate = own / b.tokens % b.variates;
  const std::int32_t* const ids = live.ids + b.ids + token;
  const std::int32_t id = ids[variate * b.tokens];
  const Sight sight{row - variate * b.tokens, b.tokens, b.variates, variate, row};
  attend_row(
      m, qkv, sight, head, [&](int j) { return ids[j * b.tokens] == id; },
      [](float4 v, int, int, int) { return v; },
      [&](int i, float v) { emit(row, head * kHead + i * 32, v); });
}

}  // namespace toto::cuda::layers
