// SPDX-License-Identifier: Apache-2.0
// Attention of Toto 2.0 over time (spec B7.2) on tensor cores, for bfloat16 weights and heads of 64
// channels, which all released sizes have. Queries, keys, values and weights are rounded to tf32;
// sums are float32. A warp takes sixteen queries, and 32 keys at a time.
//
// There are three ways with the same bits. Where the keys and values of a lane fit into shared
// memory, a thread block prepares them there for all its queries: of few warps where there are many
// lanes, of more where there are few. Otherwise one kernel prepares them in the cache, and another
// attends.
#include <algorithm>

#include "backend/cuda/gemm/product.h"
#include "backend/cuda/ops2/attention_keys.cuh"
#include "backend/cuda/ops2/row_squares.cuh"
#include "backend/cuda/runtime/typed.h"

namespace toto::cuda {
namespace {

using namespace tiles;

constexpr int kWarps = 4;
constexpr int kLaneWarps = 2;    // few: short contexts have two tiles of queries
constexpr int kAloneWarps = 14;  // where there are so few lanes that processors are idle
constexpr int kAloneTiles = 5;   // of queries then, two warps each
static_assert(2 * kAloneTiles < kAloneWarps, "some prepare keys");

/// Attends with a tile and hands on what that gives: of `Halves` of the channels from number
/// `first` on.
template <int Halves = 2>
__device__ void finish_tile(const Attention& a, const LaneAt& at, const Tile& tile,
                            const Queries& q, const float* keys, const float* values,
                            std::int32_t pitch, int first = 0) {
  const CallSlice& s = at.s;
  const std::uint8_t* const hidden =
      s.time_mask ? a.arrays.hidden + first_patch_of(s, at.lane.variate) + s.first_slot : nullptr;
  const int column = static_cast<int>(threadIdx.x) % 4;
  float out[4 * Halves][4];
  attend_tile<Halves>(q, tile, keys, values + first, pitch, hidden, out);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (!tile.there[r]) continue;
    const std::int64_t row = s.row + std::int64_t{at.lane.variate} * s.tokens + tile.token[r];
    __nv_bfloat16* const to =
        a.out + row * a.shape.attended() + std::int64_t{tile.head[r]} * kWidth + first + 8 * column;
#pragma unroll
    for (int half = 0; half < Halves; ++half) {
      const float(*const of)[4] = out + 4 * half;
      const uint2 low = four_bf16({of[0][2 * r], of[1][2 * r], of[2][2 * r], of[3][2 * r]});
      const uint2 high =
          four_bf16({of[0][2 * r + 1], of[1][2 * r + 1], of[2][2 * r + 1], of[3][2 * r + 1]});
      *reinterpret_cast<uint4*>(to + half * kWidth / 2) = {low.x, low.y, high.x, high.y};
    }
  }
}

/// The tiles of a lane and head group that are this warp's: of `warps`, number `warp`. Keys and
/// values are there once prepare() has returned, before which it asks for its first queries. Ends
/// lookups.
template <typename Prepare>
__device__ void attend_tiles(const Attention& a, const LaneAt& at, std::int32_t group,
                             const float* keys, const float* values, std::int32_t pitch,
                             std::int32_t warp, std::int32_t warps, const Prepare& prepare) {
  std::int32_t first = warp * kTile;
  Tile tile(at.s, a.heads_per_group, group, first);
  const QueriesAt queries = at.queries_at(a, tile);
  end_lookups(a.known);
  RawQueries raw(queries);
  prepare();
  while (first < at.queries) {
    const Queries q(
        a, raw, [&] { return Gain(a, a.gains.query); },
        [&](int r) { return at.rotation_of(a, tile, r); });
    finish_tile(a, at, tile, q, keys, values, pitch);
    first += warps * kTile;
    if (first >= at.queries) break;
    tile = Tile(at.s, a.heads_per_group, group, first);
    raw = RawQueries(at.queries_at(a, tile));
  }
}

/// Hands on the rows of the lane's wanted tokens, of which the head groups have some columns each:
/// by `threads` threads, this one number `thread`.
__device__ void pass_rows(const Attention& a, const LaneAt& at, std::int32_t group,
                          std::int32_t thread, std::int32_t threads) {
  if (a.passed.x == nullptr) return;
  const std::int32_t fours = a.passed.dim / 4;
  const std::int32_t each = (fours + a.shape.groups - 1) / a.shape.groups;
  const std::int64_t from = at.first_row + at.s.patch - at.source.patch;
  const std::int64_t to = at.s.row + std::int64_t{at.lane.variate} * at.s.tokens;
  for (std::int32_t i = thread; i < at.s.tokens * each; i += threads) {
    const std::int32_t token = i / each;
    const std::int32_t column = group * each + i % each;
    if (column >= fours) continue;
    reinterpret_cast<float4*>(a.passed.y)[(to + token) * fours + column] =
        reinterpret_cast<const float4*>(a.passed.x)[(from + token) * fours + column];
  }
}

/// A thread block for a lane and a head group; many at once, for each waits for memory.
__global__ void __launch_bounds__(32 * kLaneWarps, 8) attend_lane_tensor(Attention a) {
  extern __shared__ float4 shared[];
  begin_lookups(a.known);
  const auto index = static_cast<std::int32_t>(blockIdx.x);
  if (index >= a.wanted->lanes) return end_lookups(a.known);
  const LaneAt at(a, index);
  const auto group = static_cast<std::int32_t>(blockIdx.y);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int32_t n = at.s.patch + at.s.tokens - at.s.first_slot;
  auto* const keys = reinterpret_cast<float*>(shared);
  const OwnKeys own{{a, at, group, keys, n, warp, kLaneWarps}};
  attend_tiles(a, at, group, keys, keys + n * kPitch, kPitch, warp, kLaneWarps, [&] {
    own.bring();
    own.prepare();
    __syncthreads();
  });
  pass_rows(a, at, group, static_cast<std::int32_t>(threadIdx.x), 32 * kLaneWarps);
}

/// The same where few lanes leave processors idle: with more warps, some of which prepare queries
/// while the others prepare keys. Two share a tile, each has half of the values' channels. Of few
/// rows it lets the next kernel begin early.
__global__ void __launch_bounds__(32 * kAloneWarps) attend_alone_tensor(Attention a) {
  extern __shared__ float4 shared[];
  if (a.early) let_next_begin();
  begin_lookups(a.known);
  const auto index = static_cast<std::int32_t>(blockIdx.x);
  if (index >= a.wanted->lanes) return end_lookups(a.known);
  const LaneAt at(a, index);
  const auto group = static_cast<std::int32_t>(blockIdx.y);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int32_t n = at.s.patch + at.s.tokens - at.s.first_slot;
  auto* const keys = reinterpret_cast<float*>(shared);
  float* const values = keys + n * kPitch;
  const int attending = (at.queries + kTile - 1) / kTile * 2;
  if (warp >= attending) {
    const LaneKeys own{{a, at, group, keys, n, warp - attending, kAloneWarps - attending}};
    const float4 gain = key_gain(a, own.lane());
    const KeyRotation rotation = own.first_rotation();
    LaneKeys::Places from = own.places();
    asm volatile("" : "+l"(from.key), "+l"(from.value));  // worked out now
    end_lookups(a.known);
    own.bring(from);
    own.prepare(gain, rotation);
    __syncthreads();
    return pass_rows(a, at, group, static_cast<std::int32_t>(threadIdx.x) - 32 * attending,
                     32 * (kAloneWarps - attending));
  }
  const Tile tile(at.s, a.heads_per_group, group, warp / 2 * kTile);
  const Gain gain(a, a.gains.query);
  const Rotation rotations[2] = {at.rotation_of(a, tile, 0), at.rotation_of(a, tile, 1)};
  QueriesAt queries = at.queries_at(a, tile);
  asm volatile("" : "+l"(queries.head[0]), "+l"(queries.head[1]));  // worked out now
  end_lookups(a.known);
  // Which the compiler cannot see any more.
  __builtin_assume(__isGlobal(queries.head[0]));
  __builtin_assume(__isGlobal(queries.head[1]));
  const Queries q(
      a, RawQueries(queries), [&] { return gain; }, [&](int r) { return rotations[r]; });
  __syncthreads();
  finish_tile<1>(a, at, tile, q, keys, values, kPitch, warp % 2 * (kWidth / 2));
}

/// Four lanes for each row and head group: its key and value to the cache.
__global__ void __launch_bounds__(32 * kWarps) prepare_keys(Attention a) {
  begin_lookups(a.known);
  const std::int64_t at = (std::int64_t{blockIdx.x} * 32 * kWarps + threadIdx.x) / 4;
  const std::int64_t count = std::int64_t{a.all->rows} * a.shape.groups;
  const std::int64_t from = min(at, count - 1);
  if (count == 0) return end_lookups(a.known);
  const auto row = static_cast<std::int32_t>(from / a.shape.groups);
  const auto group = static_cast<std::int32_t>(from % a.shape.groups);
  const Token t = token_of(*a.all, row);
  const float* const x = a.qkv + std::int64_t{row} * a.shape.row();
  const Gain gain(a, a.gains.key);
  const Rotation rotation(a, t.s, t.patch());
  end_lookups(a.known);
  float key[kOwn], value[kOwn];
  load_own(key, x + (a.shape.heads + group) * kWidth);
  load_own(value, x + (a.shape.heads + a.shape.groups + group) * kWidth);
  const std::int64_t to =
      (slot_of(t.s, a.shape, t.variate, group) + t.patch() - t.s.first_slot) * kWidth;
  prepare_own_key(
      key, a, [&] { return gain; }, rotation);
  if (at >= count) return;
  put_own(a.keys + to, key);
  put_own(a.values + to, value);
}

/// Over the cache: thread blocks for a lane and a head group.
__global__ void __launch_bounds__(32 * kWarps) attend_cache_tensor(Attention a) {
  begin_lookups(a.known);
  const auto index = static_cast<std::int32_t>(blockIdx.x);
  if (index >= a.wanted->lanes) return end_lookups(a.known);
  const LaneAt at(a, index);
  const auto group = static_cast<std::int32_t>(blockIdx.y);
  const std::int64_t slot = slot_of(at.s, a.shape, at.lane.variate, group);
  const auto warp = static_cast<std::int32_t>(blockIdx.z * kWarps + threadIdx.x / 32);
  if (warp * kTile >= at.queries) return end_lookups(a.known);
  attend_tiles(a, at, group, a.keys + slot * kWidth, a.values + slot * kWidth, kWidth, warp,
               static_cast<std::int32_t>(gridDim.z) * kWarps, [] {});
  if (warp == 0) pass_rows(a, at, group, static_cast<std::int32_t>(threadIdx.x), 32);
}

}  // namespace

bool tensor_attention2(const Call& all, const Call& wanted, const SeriesArrays& arrays,
                       const HeadShape& shape, const HeadNorm& norm, const Rotary& rotary,
                       const float* qkv, const KvCache& kv, bool keep, const View& out,
                       const Passed& passed, const Stream& s) {
  if (shape.qk != kWidth || shape.v != kWidth) return false;
  const bool known = s.calls_known();
  const Attention a{all.live,
                    wanted.live,
                    DeviceArrays(arrays),
                    shape,
                    shape.heads / shape.groups,
                    HeadGains(norm),
                    tables_of(rotary),
                    qkv,
                    typed<float>(kv.keys),
                    typed<float>(kv.values),
                    keep,
                    known,
                    known && lets_next_begin_early(all.all_rows(), shape.attended()),
                    typed<__nv_bfloat16>(out),
                    passed};
  const dim3 block(32 * kWarps);
  const auto lanes = static_cast<unsigned>(wanted.lanes);
  const auto groups = static_cast<unsigned>(shape.groups);
  const std::size_t bytes = static_cast<std::size_t>(wanted.keys) * 2 * kPitch * sizeof(float);
  if (bytes <= static_cast<std::size_t>(s.shared_bytes)) {
    const std::int64_t queries = std::int64_t{wanted.keys} * a.heads_per_group;
    if (lanes * groups <= 2 * static_cast<unsigned>(s.processors) &&
        queries <= kAloneTiles * kTile) {
      allow_shared_memory<attend_alone_tensor>(bytes);
      launch(attend_alone_tensor, dim3(lanes, groups), dim3(32 * kAloneWarps), bytes, s, a);
      return true;
    }
    allow_shared_memory<attend_lane_tensor>(bytes);
    launch(attend_lane_tensor, dim3(lanes, groups), dim3(32 * kLaneWarps), bytes, s, a);
    return true;
  }
  launch(prepare_keys, dim3(ceil_div(std::int64_t{all.rows} * groups, kOwnKeys * kWarps)), block, 0,
         s, a);
  const std::int64_t tiles = (std::int64_t{wanted.keys} * a.heads_per_group + kTile - 1) / kTile;
  const unsigned chunks = std::min(ceil_div(tiles, kWarps), 64U);
  launch(attend_cache_tensor, dim3(lanes, groups, chunks), block, 0, s, a);
  return true;
}

}  // namespace toto::cuda
