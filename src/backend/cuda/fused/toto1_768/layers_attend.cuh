// SPDX-License-Identifier: Apache-2.0
// Attention of the kernel of all layers: a block of threads has one row and head.
#pragma once

#include <cstdint>

#include "backend/cuda/ops/attend.cuh"
#include "backend/cuda/ops/rotary.cuh"
#include "layers.cuh"

namespace toto::cuda::layers {

/// Sixteen bytes of the query, of keys and of values are taken by one thread each.
constexpr int kQuadsOfHead = kHead / 4;
constexpr int kTurning = (1 + kFewRows) * kQuadsOfHead;  // threads, with the query and keys
static_assert(kTurning <= kWorkers);

struct AttentionMemory {
  Rotation turns[kTurning];  // in time layers: how a thread turns what it takes first
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
__device__ inline int own_row() { return block_now() / kHeads; }
__device__ inline int own_head() { return block_now() % kHeads; }
static_assert(kFewRows * kHeads <= kMinProcessors);

/// Finds out how threads turn what they take first in time layers; by a warp.
__device__ inline void prepare_turns(AttentionMemory& m, const RotaryTables& rotary,
                                     const Sight& sight) {
  for (int thread = static_cast<int>(threadIdx.x) % 32; thread < kTurning; thread += 32) {
    const int vector = thread / kQuadsOfHead;
    if (vector > sight.count) return;
    const Rotation r(rotary, *sight.block, vector == 0 ? sight.own : vector - 1,
                     thread % kQuadsOfHead * 4, kHead);
    m.turns[thread] = vector == 0 ? r : r.of_key();
  }
}

/// The query, keys and values of a block of threads to its shared memory, turned where they are to
/// be, and what is new to `keys` and `values` of the layer. `count`: of keys. By all workers.
__device__ inline void gather(AttentionMemory& m, const float* qkv, const Sight& sight, int count,
                              float* keys, float* values) {
  const int thread = static_cast<int>(threadIdx.x);
  const bool in_time = sight.block != nullptr;
  Rotation turn;
  if (in_time && thread <= count * kQuadsOfHead + kQuadsOfHead - 1) turn = m.turns[thread];
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
    const int row = sight.first + sight.stride * part.j;
    return qkv +
           static_cast<unsigned>(((row * 3 + part.which) * kHeads + own_head()) * kHead + part.e);
  };
  const auto keep = [&](const Part& part, const uint4& word) {
    float4 v{__uint_as_float(word.x), __uint_as_float(word.y), __uint_as_float(word.z),
             __uint_as_float(word.w)};
    if (in_time && part.which != 2) v = turn(v);
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
    const float* const at[2] = {from(first), from(second)};
    uint4 words[2];
    flag::wait_fours(words, [&](int i) { return at[i]; });
    keep(first, words[0]);
    if (two) {  // of the last value: queries and keys come first
      *reinterpret_cast<uint4*>(m.values[second.j] + second.e) = words[1];
      if (in_time && second.j == sight.own) {
        *reinterpret_cast<uint4*>(values + sight.slot + second.e) = words[1];
      }
    }
  }
}

/// Attention of one row and head by the workers of a block of threads, its warp 0 at the end, with
/// the bits of few_keys.cuh; emit(v, w) has the values of channel 2 lane and the next. If not
/// `wanted`, nobody needs them. `keys`, `values`: of the layer. The caller lets all workers meet
/// before the next one.
template <typename Emit>
__device__ void attend_row(AttentionMemory& m, const float* qkv, const Sight& sight, float* keys,
                           float* values, bool wanted, const Emit& emit) {
  const int thread = static_cast<int>(threadIdx.x);
  const int count = sight.count;
  gather(m, qkv, sight, count, keys, values);
  sync_workers();
  if (thread >= 32 || !wanted) return;
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
  emit(to.x / total, to.y / total);
}

}  // namespace toto::cuda::layers
