// SPDX-License-Identifier: Apache-2.0
// What the kernel of all layers is made of, whatever its type: sizes, the wires between its blocks
// of threads, who computes what, norm, attention.
#pragma once

#include <cuda.h>

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
inline constexpr int kMostEmbedded = 64;     // steps of a patch
inline constexpr int kLeastProcessors = 96;
inline constexpr int kMostProcessors = 144;  // then every block has units of qkv and mlp_in
inline constexpr int kWorkers = 256;         // threads that compute; a warp more streams weights

enum Product { kQkv, kOut, kMlpIn, kMlpOut, kProducts };
__host__ __device__ constexpr int outs(int p) {
  return p == kQkv ? 3 * kDim : p == kMlpIn ? 2 * kHidden : kDim;
}
__host__ __device__ constexpr int ins(int p) { return p == kMlpOut ? kHidden : kDim; }
/// Stages of a unit, which is so many outputs with all their inputs.
__host__ __device__ constexpr int stages_of(int p) { return ins(p) / kDim; }

/// What there is of a layer besides its matrices.
struct Vectors {
  const float* bias[kProducts];
  const float* norm[2];
  std::int32_t space;
};

/// One layer, in the device's memory.
struct LayerOnDevice {
  CUtensorMap maps[kProducts];
  Vectors vectors;
};

/// Brings a share of the vectors as far as the cache: lines of 128 bytes dealt to `count` lanes of
/// all blocks of threads.
__device__ inline void prefetch(const Vectors& v, int lane, int count) {
  const int own = lane * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x);
  const int all = count * static_cast<int>(gridDim.x);
  const auto lines = [&](const float* from, int length) {
    for (int i = own; i * 32 < length; i += all) {
      asm volatile("prefetch.global.L2 [%0];" ::"l"(from + i * 32));
    }
  };
  for (int p = 0; p < kProducts; ++p) lines(v.bias[p], outs(p));
  lines(v.norm[0], kDim);
  lines(v.norm[1], kDim);
}

struct Arguments {
  const LayerOnDevice* layers;
  std::int32_t count;
  std::int32_t last_time;  // after its attention only the last tokens go on
  const LiveBatch* all;
  const LiveBatch* last;
  Rotary rotary;
  DeviceMatrix embed;  // the patch embedding; without weights it was carried out before
  const float* x;  // scaled values [rows][embed.in], or rows that are embedded [rows][768]
  float* y;
  float* wires;              // two sets: of this launch, and of the next, which this one clears
  std::int32_t* set;         // which one is of this launch
  std::uint32_t nothing;     // zero, which the compiler does not know (Ring::release_once)
  float* keys[kMostLayers];  // of each layer; of time layers only
  float* values[kMostLayers];
};

/// Words between the phases of one layer: where each kind begins.
enum Wire {
  kQkvWire = 0,                                    // [rows][3][heads][64]
  kAttendedWire = kQkvWire + kFewRows * 3 * kDim,  // laid out by the type of the products
  kMiddleWire = kAttendedWire + kFewRows * kDim,   // [rows][dim], after the attention
  kGatedWire = kMiddleWire + kFewRows * kDim,      // laid out by the type of the products
  kEndWire = kGatedWire + kFewRows * kHidden,      // [rows][dim]
  kWireWords = kEndWire + kFewRows * kDim
};
/// Words of a set: of all layers, and before those the embedded rows [rows][dim].
__host__ __device__ constexpr int set_words(int layers) {
  return layers * kWireWords + kFewRows * kDim;
}

__device__ inline float* wire_of(float* wires, int layer, Wire wire) {
  return wires + (kFewRows * kDim + layer * kWireWords + wire);
}
/// What goes into a layer. The first one's may lie there from the beginning.
__device__ inline const float* input_of(const Arguments& a, float* wires, int layer) {
  if (layer > 0) return wire_of(wires, layer - 1, kEndWire);
  return a.embed.weights != nullptr ? wires : a.x;
}

/// Makes this block's share of a set of wires empty: `count` lanes of all blocks.
__device__ inline void clear(float* wires, int words, int lane, int count) {
  const int own = lane * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x);
  const int all = count * static_cast<int>(gridDim.x);
  auto* const fours = reinterpret_cast<uint4*>(wires);
  constexpr std::uint32_t kEmpty = wire::kNothing;
  for (int i = own; i < words / 4; i += all) {
    fours[i] = uint4{kEmpty, kEmpty, kEmpty, kEmpty};
  }
}

/// Of the workers only.
__device__ inline void sync_workers() {
  asm volatile("bar.sync 1, %0;" ::"n"(kWorkers) : "memory");
}

/// Units of work of the whole launch are dealt to the blocks of threads in turn. What a block has
/// to know of a product for that: its units as so many rounds and a rest.
struct Deal {
  int rounds, rest;
};
/// Where the dealing has come to for this block: how many units are to be dealt before its next.
struct Turn {
  int wait = static_cast<int>(blockIdx.x);
  /// Its share of a product's units: `first`, first + blocks, ... Goes on to the next product.
  __device__ int take(const Deal& deal, int& first) {
    first = wait;
    const int count = deal.rounds + (wait < deal.rest ? 1 : 0);
    wait -= deal.rest;
    if (wait < 0) wait += static_cast<int>(gridDim.x);
    return count;
  }
};

/// Where a row of the trimmed batch comes from.
__device__ inline int row_before(const Arguments& a, int lane) {
  const Block& b = a.all->blocks[block_of_lane(*a.all, lane)];
  return b.row + (lane - b.lane) * b.tokens + b.tokens - 1;
}

/// A warp's row, normed as rms_norm does it where it is to be: this lane's part of it.
__device__ inline void take_row(float4 (&v)[kDim / 128], const float* row, const float* gain,
                                bool normed) {
  constexpr int kFours = kDim / 128;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float4 gains[kFours];
  load_part(gains, gain);
  uint4 words[kFours];
  wire::await_first(row);
  wire::take_fours(words, [&](int i) { return row + i * 128 + lane * 4; });
#pragma unroll
  for (int i = 0; i < kFours; ++i) {
    v[i] = {__uint_as_float(words[i].x), __uint_as_float(words[i].y), __uint_as_float(words[i].z),
            __uint_as_float(words[i].w)};
  }
  if (normed) norm_part(v, gains);
}

struct AttentionMemory {
  alignas(16) float query[kHead];
  alignas(16) float keys[kFewRows][kHead + 4];
  alignas(16) float values[kFewRows][kHead];
};

/// What a block of threads attends with, one row and head, and what that row sees: of the rows
/// `first + stride j`, j < count, of the batch those with a bit in `seen`. It is the same in all
/// layers of a kind.
struct Sight {
  std::int32_t first, stride, count, own;  // own: j of the row itself
  std::int32_t out;                        // row of what it attends to; -1: there is none
  std::int32_t last_out;                   // the same where only the last tokens go on
  std::int64_t slot = 0;                   // in time layers: where its key and value are kept
  const Block* block = nullptr;            // in time layers
  std::uint32_t seen = (1U << kFewRows) - 1;
};
enum SightKind { kInTime, kOfVariates, kOfLastVariates, kSights };

/// Row `row` of a time layer sees the tokens of its lane up to itself.
__device__ inline Sight sight_in_time(const LiveBatch& live, int row, int head) {
  const Block& b = live.blocks[block_of_row(live, row)];
  const std::int32_t lane = (row - b.row) / b.tokens;
  const std::int32_t token = (row - b.row) % b.tokens;
  Sight sight{row - token, 1, token + 1, token, row, token == b.tokens - 1 ? b.lane + lane : -1};
  sight.slot =
      b.suffix_at +
      ((std::int64_t{lane} * kHeads + head) * b.suffix_capacity + b.suffix + token) * kHead;
  sight.block = &b;
  return sight;
}

/// Row `row` of a variate layer sees the variates of its trajectory and token.
__device__ inline Sight sight_of_variates(const LiveBatch& live, int row) {
  const Block& b = live.blocks[block_of_row(live, row)];
  const std::int32_t token = (row - b.row) % b.tokens;
  const std::int32_t variate = (row - b.row) / b.tokens % b.variates;
  Sight sight{row - variate * b.tokens, b.tokens, b.variates, variate, row, row};
  const std::int32_t* const ids = live.ids + b.ids + token;
  sight.seen = 0;
  for (int j = 0; j < sight.count; ++j) {
    if (ids[j * b.tokens] == ids[variate * b.tokens]) sight.seen |= 1U << j;
  }
  return sight;
}

/// The row and head that this block of threads attends with: none has more than one.
__device__ inline int own_row() { return static_cast<int>(blockIdx.x) / kHeads; }
__device__ inline int own_head() { return static_cast<int>(blockIdx.x) % kHeads; }
static_assert(kFewRows * kHeads <= kLeastProcessors);

/// Sixteen bytes of the query, of keys and of values are taken by one thread each.
constexpr int kQuadsOfHead = kHead / 4;
static_assert((1 + kFewRows) * kQuadsOfHead <= kWorkers);

/// In time layers: how this thread turns what it takes first, the query or a key.
__device__ inline Rotation rotation_of_thread(const Rotary& rotary, const Sight& sight) {
  const int thread = static_cast<int>(threadIdx.x);
  const int vector = thread / kQuadsOfHead;
  if (vector > sight.count) return {};
  const Rotation r(rotary, *sight.block, vector == 0 ? sight.own : vector - 1,
                   thread % kQuadsOfHead * 4, kHead);
  return vector == 0 ? r : r.of_key();
}

/// Attention of one row and head by the workers of a block of threads, its warp 0 at the end, with
/// the bits of attend.cuh; emit(row, channel, v, w) has the values of a channel and the next.
/// `keys`, `values`: of the layer. The caller lets all workers meet before the next one.
template <typename Emit>
__device__ void attend_row(AttentionMemory& m, const Rotation& rotation, const float* qkv,
                           const Sight& sight, float* keys, float* values, bool last,
                           const Emit& emit) {
  const int thread = static_cast<int>(threadIdx.x);
  const bool in_time = sight.block != nullptr;
  const int count = sight.count;
  struct Part {  // sixteen bytes of the query, of a key or of a value
    int which, j, e;
  };
  const auto part_of = [&](int i) {
    const int vector = i / kQuadsOfHead;  // the query, the keys, the values
    const int which = vector == 0 ? 0 : vector <= count ? 1 : 2;
    const int j = vector == 0 ? sight.own : (vector - 1) - (which - 1) * count;
    return Part{which, j, i % kQuadsOfHead * 4};
  };
  const auto from = [&](const Part& part) {
    const std::int64_t row = sight.first + std::int64_t{sight.stride} * part.j;
    return qkv + ((row * 3 + part.which) * kHeads + own_head()) * kHead + part.e;
  };
  const auto keep = [&](const Part& part, const uint4& word) {
    float4 v{__uint_as_float(word.x), __uint_as_float(word.y), __uint_as_float(word.z),
             __uint_as_float(word.w)};
    if (in_time && part.which != 2) v = rotation(v);
    float* const to = part.which == 0   ? m.query
                      : part.which == 1 ? m.keys[part.j]
                                        : m.values[part.j];
    *reinterpret_cast<float4*>(to + part.e) = v;
    if (in_time && part.which != 0 && part.j == sight.own) {
      *reinterpret_cast<float4*>((part.which == 1 ? keys : values) + sight.slot + part.e) = v;
    }
  };
  // A thread has one part, or two, for both of which it asks at once.
  const int parts = (1 + 2 * count) * kQuadsOfHead;
  if (thread < parts) {
    const bool two = thread + kWorkers < parts;
    const Part first = part_of(thread);
    const Part second = part_of(two ? thread + kWorkers : thread);
    uint4 words[2];
    wire::take_fours(words, [&](int i) { return from(i == 0 ? first : second); });
    keep(first, words[0]);
    if (two) {  // of the last value: queries and keys come first
      *reinterpret_cast<uint4*>(m.values[second.j] + second.e) = words[1];
      if (in_time && second.j == sight.own) {
        *reinterpret_cast<uint4*>(values + sight.slot + second.e) = words[1];
      }
    }
  }
  sync_workers();
  const int out = last ? sight.last_out : sight.out;
  if (thread >= 32 || out < 0) return;
  // Four lanes have a key, each the chain of every fourth channel; then a lane has two channels.
  static_assert(4 * kFewRows == 32 && kHead == 2 * 32);
  const std::uint32_t sees = sight.seen & (1U << count) - 1;
  const int key = thread / 4;
  float sum = 0;
#pragma unroll
  for (int e = 0; e < kHead; e += 4) {
    sum = __fmaf_rn(m.query[e + thread % 4], m.keys[key][e + thread % 4], sum);
  }
  sum += __shfl_xor_sync(~0U, sum, 1);
  sum += __shfl_xor_sync(~0U, sum, 2);
  const bool seen = (sees >> key & 1) != 0;
  const float score = seen ? sum / sqrtf(static_cast<float>(kHead)) : attend::none();
  float highest = score;
#pragma unroll
  for (int offset = 16; offset >= 4; offset /= 2) {
    highest = fmaxf(highest, __shfl_xor_sync(~0U, highest, offset));
  }
  const float weight = score == attend::none() ? 0 : expf(score - highest);
  float total = weight;
#pragma unroll
  for (int offset = 16; offset >= 4; offset /= 2) total += __shfl_xor_sync(~0U, total, offset);
  float2 to = {0, 0};
#pragma unroll
  for (int j = 0; j < kFewRows; ++j) {
    const float p = __shfl_sync(~0U, weight, 4 * j);
    const float2 v = *reinterpret_cast<const float2*>(&m.values[j][2 * thread]);
    if ((sees >> j & 1) == 0) continue;
    to.x = __fmaf_rn(p, v.x, to.x);
    to.y = __fmaf_rn(p, v.y, to.y);
  }
  emit(out, own_head() * kHead + 2 * thread, to.x / total, to.y / total);
}

}  // namespace toto::cuda::layers
