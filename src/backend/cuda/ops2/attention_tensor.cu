// SPDX-License-Identifier: Apache-2.0
// Attention of Toto 2.0 over time (spec B7.2) on tensor cores, for bfloat16 weights and heads of 64
// channels, which all released sizes have. Queries, keys, values and weights are rounded to tf32;
// sums are float32. A warp has sixteen queries and takes 32 keys at a time.
//
// There are three ways with the same bits. Where the keys and values of a lane fit into shared
// memory, a thread block prepares them there for all its queries: of few warps where there are many
// lanes, of more where there are few. Otherwise one kernel prepares them in the cache, and another
// attends.
#include <algorithm>

#include "backend/cuda/gemm/mma.cuh"
#include "backend/cuda/gemm/product.h"
#include "backend/cuda/ops2/calls.cuh"
#include "backend/cuda/ops2/heads.cuh"
#include "backend/cuda/ops2/ops2.h"
#include "backend/cuda/runtime/typed.h"

namespace toto::cuda {
namespace {

constexpr int kWidth = 64;          // channels of a head
constexpr int kSteps = kWidth / 8;  // of a tensor core over them
constexpr int kRowLanes = 16;       // lanes that prepare a key, four channels each
constexpr int kPitch = kWidth + 4;  // of rows in shared memory: no bank conflicts
constexpr int kWarps = 4;
constexpr int kLaneWarps = 2;    // few: short contexts have two tiles of queries
constexpr int kAloneWarps = 10;  // where there are so few lanes that processors are idle
constexpr int kAloneTiles = 5;   // of queries then
constexpr int kTile = 16;        // queries of a warp
constexpr int kKeys = 32;        // at a time

/// What every kernel here is given.
struct Attention {
  const LiveCall* all;
  const LiveCall* wanted;
  DeviceArrays arrays;
  HeadShape shape;
  HeadGains gains;
  RotaryTables rotary;
  const float* qkv;
  float* keys;  // the cache
  float* values;
  bool keep;
  __nv_bfloat16* out;
};

__device__ float4 rounded(const float4& v) {
  return {__uint_as_float(to_tf32(v.x)), __uint_as_float(to_tf32(v.y)),
          __uint_as_float(to_tf32(v.z)), __uint_as_float(to_tf32(v.w))};
}

/// Divides in place.
template <int N>
__device__ void divide(float (&v)[N], float by) {
  if (Divisor::ordinary(by)) {
    const Divisor divisor(by);
#pragma unroll
    for (float& x : v) x = divisor(x);
  } else {
#pragma unroll
    for (float& x : v) x = x / by;
  }
}

/// A key as attention takes it, by sixteen lanes: normed, rotated, rounded. All lanes of the warp
/// take part.
__device__ float4 prepare_key(float4 v, const Attention& a, const CallSlice& s, std::int32_t patch,
                              int own) {
  if (a.gains.query != nullptr) {
    float squares = v.x * v.x;
    squares = __fmaf_rn(v.y, v.y, squares);
    squares = __fmaf_rn(v.z, v.z, squares);
    squares = __fmaf_rn(v.w, v.w, squares);
    const float root = sqrtf(sum_of_lanes<kRowLanes>(squares) / kWidth + a.gains.epsilon);
    const float* const gain = a.gains.key + 4 * own;
    float all[4] = {v.x, v.y, v.z, v.w};
    divide(all, root);
    v = {all[0] * gain[0], all[1] * gain[1], all[2] * gain[2], all[3] * gain[3]};
  }
  if (own < kRowLanes / 2) {
    const TokenRotation r(a.rotary, s, patch, kWidth);
    const int m = 2 * own;
    const float by0 = r.factor == nullptr ? 1.0F : 1.0F / r.factor[m];
    const float by1 = r.factor == nullptr ? 1.0F : 1.0F / r.factor[m + 1];
    v = {(r.cosine[m] * v.x - r.sine[m] * v.y) * by0, (r.cosine[m] * v.y + r.sine[m] * v.x) * by0,
         (r.cosine[m + 1] * v.z - r.sine[m + 1] * v.w) * by1,
         (r.cosine[m + 1] * v.w + r.sine[m + 1] * v.z) * by1};
  }
  return rounded(v);
}

/// The first key of a lane in the cache of a head group.
__device__ std::int64_t slot_of(const CallSlice& s, const HeadShape& shape, std::int32_t variate,
                                std::int32_t group) {
  return (s.slot + std::int64_t{variate} * s.slots) * shape.groups + std::int64_t{group} * s.slots;
}

/// The tile of queries of a warp: rows `lane / 4` and eight after it. Queries of a lane and a head
/// group are counted token by token, of each its heads.
struct Tile {
  std::int32_t token[2];
  std::int32_t head[2];
  std::int32_t key[2];  // its own: the last that it sees
  bool there[2];
  std::int32_t count;  // keys that any of the tile sees

  __device__ Tile(const CallSlice& s, const HeadShape& shape, std::int32_t group,
                  std::int32_t first) {
    const std::int32_t heads = shape.heads / shape.groups;
    const std::int32_t queries = s.tokens * heads;
    const std::int32_t before = s.patch - s.first_slot;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::int32_t at = first + static_cast<std::int32_t>(threadIdx.x) % 32 / 4 + 8 * r;
      there[r] = at < queries;
      const std::int32_t query = min(at, queries - 1);
      token[r] = query / heads;
      head[r] = group * heads + query % heads;
      key[r] = before + token[r];
    }
    count = before + (min(first + kTile, queries) - 1) / heads + 1;
  }
};

/// The operands of a tile: [step][of the instruction]. A lane has of each row the channels
/// lane % 4 + 4 i.
struct Queries {
  std::uint32_t part[kSteps][4];

  __device__ Queries(const Attention& a, const CallSlice& source, std::int64_t first_row,
                     const Tile& tile) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int column = lane % 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::int32_t patch = source.first_slot + tile.key[r];
      const float* const from = a.qkv + (first_row + patch - source.patch) * a.shape.row() +
                                std::int64_t{tile.head[r]} * kWidth + column;
      float v[2 * kSteps];
#pragma unroll
      for (int i = 0; i < 2 * kSteps; ++i) v[i] = from[4 * i];
      if (a.gains.query != nullptr) {
        float squares = 0;
#pragma unroll
        for (int i = 0; i < 2 * kSteps; ++i) squares = __fmaf_rn(v[i], v[i], squares);
        const float root = sqrtf(sum_of_lanes<4>(squares) / kWidth + a.gains.epsilon);
        divide(v, root);
#pragma unroll
        for (int i = 0; i < 2 * kSteps; ++i) v[i] *= a.gains.query[column + 4 * i];
      }
      const TokenRotation rotation(a.rotary, source, patch, kWidth);
#pragma unroll
      for (int i = 0; i < kSteps; ++i) {  // the first half of the channels, in pairs
        const int m = column / 2 + 2 * i;
        const float other = __shfl_xor_sync(~0U, v[i], 1);
        const float sine = column % 2 == 0 ? -rotation.sine[m] : rotation.sine[m];
        const float by = rotation.factor == nullptr ? 1.0F : rotation.factor[m];
        v[i] = (rotation.cosine[m] * v[i] + sine * other) * by;
      }
#pragma unroll
      for (int i = 0; i < kSteps; ++i) {
        part[i][r] = to_tf32(v[2 * i]);
        part[i][2 + r] = to_tf32(v[2 * i + 1]);
      }
    }
  }
};

/// softmax(q.k) v of a tile. keys, values: rows of `pitch` floats, tf32. hidden: flags of the keys,
/// where only keys as hidden as the query are seen; or nullptr.
__device__ void attend_tile(const Queries& q, const Tile& tile, const float* keys,
                            const float* values, std::int32_t pitch, const std::uint8_t* hidden,
                            float (&out)[kSteps][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = lane / 4;
  const int column = lane % 4;
  const std::int32_t last = tile.count - 1;
  float highest[2] = {-INFINITY, -INFINITY};
  float total[2] = {};
#pragma unroll
  for (int j = 0; j < kSteps; ++j) {
#pragma unroll
    for (int c = 0; c < 4; ++c) out[j][c] = 0;
  }
  for (std::int32_t first = 0; first < tile.count; first += kKeys) {
    float weight[kKeys / 8][4] = {};
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      if (first + n * 8 > last) break;
      const float* const key = keys + std::int64_t{min(first + n * 8 + row, last)} * pitch + column;
#pragma unroll
      for (int i = 0; i < kSteps; ++i) {
        multiply_add_tf32(weight[n], q.part[i], __float_as_uint(key[8 * i]),
                          __float_as_uint(key[8 * i + 4]));
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float top = highest[r];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const std::int32_t key = first + n * 8 + 2 * column + c;
          const bool seen =
              key <= tile.key[r] && (hidden == nullptr || hidden[key] == hidden[tile.key[r]]);
          float& logit = weight[n][2 * r + c];
          logit = seen ? logit : -INFINITY;
          top = fmaxf(top, logit);
        }
      }
      top = highest_of_lanes<4>(top);
      const bool none = top == -INFINITY;  // of these and those before is seen
      const float correction = none ? 1.0F : expf(highest[r] - top);
      highest[r] = top;
      float sum = 0;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float& w = weight[n][2 * r + c];
          w = none ? 0.0F : expf(w - top);
          sum += w;
        }
      }
      total[r] = total[r] * correction + sum;
#pragma unroll
      for (int j = 0; j < kSteps; ++j) {
        out[j][2 * r] *= correction;
        out[j][2 * r + 1] *= correction;
      }
    }
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      if (first + n * 8 > last) break;
      // Sums have weights of neighbouring keys where operands have keys of distance four. Only
      // which keys meet matters: step k of the instruction is key 2 k, or 2 (k - 4) + 1.
      const std::uint32_t w[4] = {to_tf32(weight[n][0]), to_tf32(weight[n][2]),
                                  to_tf32(weight[n][1]), to_tf32(weight[n][3])};
      const std::int32_t key = first + n * 8 + 2 * column;
      const float* const even = values + std::int64_t{min(key, last)} * pitch + row;
      const float* const odd = values + std::int64_t{min(key + 1, last)} * pitch + row;
#pragma unroll
      for (int j = 0; j < kSteps; ++j) {
        multiply_add_tf32(out[j], w, __float_as_uint(even[8 * j]), __float_as_uint(odd[8 * j]));
      }
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float v[2 * kSteps];
#pragma unroll
    for (int j = 0; j < 2 * kSteps; ++j) v[j] = out[j / 2][2 * r + j % 2];
    divide(v, sum_of_lanes<4>(total[r]));
#pragma unroll
    for (int j = 0; j < 2 * kSteps; ++j) out[j / 2][2 * r + j % 2] = v[j];
  }
}

/// A lane of the wanted call.
struct LaneAt {
  const LaneOfCall lane;
  const CallSlice& source;
  const std::int64_t first_row;
  const std::int32_t queries;

  __device__ LaneAt(const Attention& a, std::int32_t index)
      : lane(lane_of_call(*a.wanted, index)),
        source(a.all->slices[lane.slice]),
        first_row(source.row + std::int64_t{lane.variate} * source.tokens),
        queries(lane.s.tokens * (a.shape.heads / a.shape.groups)) {}
  [[nodiscard]] __device__ Queries queries_of(const Attention& a, const Tile& tile) const {
    return Queries(a, source, first_row, tile);
  }
};

/// Attends with a tile and hands on what that gives.
__device__ void finish_tile(const Attention& a, const LaneAt& at, const Tile& tile,
                            const Queries& q, const float* keys, const float* values,
                            std::int32_t pitch) {
  const CallSlice& s = at.lane.s;
  const std::uint8_t* const hidden =
      s.time_mask ? a.arrays.hidden + first_patch_of(s, at.lane.variate) + s.first_slot : nullptr;
  const int column = static_cast<int>(threadIdx.x) % 4;
  float out[kSteps][4];
  attend_tile(q, tile, keys, values, pitch, hidden, out);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (!tile.there[r]) continue;
    const std::int64_t row = s.row + std::int64_t{at.lane.variate} * s.tokens + tile.token[r];
    auto* const to = reinterpret_cast<__nv_bfloat162*>(
        a.out + row * a.shape.attended() + std::int64_t{tile.head[r]} * kWidth + 2 * column);
#pragma unroll
    for (int j = 0; j < kSteps; ++j) {
      to[4 * j] = __floats2bfloat162_rn(out[j][2 * r], out[j][2 * r + 1]);
    }
  }
}

/// The tiles of a lane and head group that are this warp's: of `warps`, number `warp`.
__device__ void attend_tiles(const Attention& a, const LaneAt& at, std::int32_t group,
                             const float* keys, const float* values, std::int32_t pitch,
                             std::int32_t warp, std::int32_t warps) {
  for (std::int32_t first = warp * kTile; first < at.queries; first += warps * kTile) {
    const Tile tile(at.lane.s, a.shape, group, first);
    finish_tile(a, at, tile, at.queries_of(a, tile), keys, values, pitch);
  }
}

/// Prepares keys and values of a lane and head group in shared memory, [n][pitch] each, by `warps`
/// warps, of which this is number `warp`. `Unroll`: keys that each of its halves asks for at once.
template <int Unroll>
__device__ void prepare_lane(const Attention& a, const LaneAt& at, std::int32_t group, float* keys,
                             float* values, std::int32_t n, int warp, int warps) {
  const CallSlice& s = at.lane.s;
  const int half = static_cast<int>(threadIdx.x) % 32 / kRowLanes;
  const int own = static_cast<int>(threadIdx.x) % kRowLanes;
  const std::int64_t slot = slot_of(s, a.shape, at.lane.variate, group);
  const std::int32_t first_key = (a.shape.heads + group) * kWidth;
  const std::int32_t first_value = (a.shape.heads + a.shape.groups + group) * kWidth;
#pragma unroll Unroll
  for (std::int32_t j0 = 2 * warp; j0 < n; j0 += 2 * warps) {
    const std::int32_t j = min(j0 + half, n - 1);
    const std::int32_t patch = s.first_slot + j;
    const bool before = patch < at.source.patch;  // in a call before
    float* const kept_key = a.keys + (slot + j) * kWidth + 4 * own;
    float* const kept_value = a.values + (slot + j) * kWidth + 4 * own;
    const float* const row =
        a.qkv + (at.first_row + max(patch - at.source.patch, 0)) * a.shape.row() + 4 * own;
    float4 value = *reinterpret_cast<const float4*>(before ? kept_value : row + first_value);
    float4 key = *reinterpret_cast<const float4*>(before ? kept_key : row + first_key);
    const float4 prepared = prepare_key(key, a, at.source, max(patch, at.source.patch), own);
    if (!before) {
      key = prepared;
      value = rounded(value);
      if (a.keep) {
        put_four(kept_key, key);
        put_four(kept_value, value);
      }
    }
    put_four(keys + j * kPitch + 4 * own, key);
    put_four(values + j * kPitch + 4 * own, value);
  }
}

/// A thread block for a lane and a head group; many at once, for each waits for memory twice.
__global__ void __launch_bounds__(32 * kLaneWarps, 8) attend_lane_tensor(Attention a) {
  extern __shared__ float4 shared[];
  begin_kernel();
  const auto index = static_cast<std::int32_t>(blockIdx.x);
  if (index >= a.wanted->lanes) return;
  const LaneAt at(a, index);
  const auto group = static_cast<std::int32_t>(blockIdx.y);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int32_t n = at.lane.s.patch + at.lane.s.tokens - at.lane.s.first_slot;
  auto* const keys = reinterpret_cast<float*>(shared);
  float* const values = keys + n * kPitch;
  prepare_lane<4>(a, at, group, keys, values, n, warp, kLaneWarps);
  __syncthreads();
  attend_tiles(a, at, group, keys, values, kPitch, warp, kLaneWarps);
}

/// The same where few lanes leave processors idle: with more warps, some of which prepare queries
/// while the others prepare keys. Nothing is unrolled, for code comes slowly where it is not near.
__global__ void __launch_bounds__(32 * kAloneWarps) attend_alone_tensor(Attention a) {
  extern __shared__ float4 shared[];
  begin_kernel();
  const auto index = static_cast<std::int32_t>(blockIdx.x);
  if (index >= a.wanted->lanes) return;
  const LaneAt at(a, index);
  const auto group = static_cast<std::int32_t>(blockIdx.y);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int32_t n = at.lane.s.patch + at.lane.s.tokens - at.lane.s.first_slot;
  auto* const keys = reinterpret_cast<float*>(shared);
  float* const values = keys + n * kPitch;
  const int tiles = (at.queries + kTile - 1) / kTile;
  if (warp >= tiles) {
    prepare_lane<1>(a, at, group, keys, values, n, warp - tiles, kAloneWarps - tiles);
    __syncthreads();
    return;
  }
  const Tile tile(at.lane.s, a.shape, group, warp * kTile);
  const Queries q = at.queries_of(a, tile);
  __syncthreads();
  finish_tile(a, at, tile, q, keys, values, kPitch);
}

/// Half a warp for each row and head group: its key and value to the cache.
__global__ void __launch_bounds__(32 * kWarps) prepare_keys(Attention a) {
  begin_kernel();
  const std::int64_t at = (std::int64_t{blockIdx.x} * 32 * kWarps + threadIdx.x) / kRowLanes;
  const std::int64_t count = std::int64_t{a.all->rows} * a.shape.groups;
  const std::int64_t from = min(at, count - 1);
  if (count == 0) return;
  const int own = static_cast<int>(threadIdx.x) % kRowLanes;
  const auto row = static_cast<std::int32_t>(from / a.shape.groups);
  const auto group = static_cast<std::int32_t>(from % a.shape.groups);
  const Token t = token_of(*a.all, row);
  const float* const x = a.qkv + std::int64_t{row} * a.shape.row() + 4 * own;
  const float4 key = *reinterpret_cast<const float4*>(x + (a.shape.heads + group) * kWidth);
  const float4 value =
      *reinterpret_cast<const float4*>(x + (a.shape.heads + a.shape.groups + group) * kWidth);
  const std::int64_t to =
      (slot_of(t.s, a.shape, t.variate, group) + t.patch() - t.s.first_slot) * kWidth + 4 * own;
  const float4 prepared = prepare_key(key, a, t.s, t.patch(), own);
  if (at >= count) return;
  put_four(a.keys + to, prepared);
  put_four(a.values + to, rounded(value));
}

/// Over the cache: thread blocks for a lane and a head group.
__global__ void __launch_bounds__(32 * kWarps) attend_cache_tensor(Attention a) {
  begin_kernel();
  const auto index = static_cast<std::int32_t>(blockIdx.x);
  if (index >= a.wanted->lanes) return;
  const LaneAt at(a, index);
  const auto group = static_cast<std::int32_t>(blockIdx.y);
  const std::int64_t slot = slot_of(at.lane.s, a.shape, at.lane.variate, group);
  const auto warp = static_cast<std::int32_t>(blockIdx.z * kWarps + threadIdx.x / 32);
  attend_tiles(a, at, group, a.keys + slot * kWidth, a.values + slot * kWidth, kWidth, warp,
               static_cast<std::int32_t>(gridDim.z) * kWarps);
}

}  // namespace

bool tensor_attention2(const Call& all, const Call& wanted, const SeriesArrays& arrays,
                       const HeadShape& shape, const HeadNorm& norm, const Rotary& rotary,
                       const float* qkv, const KvCache& kv, bool keep, const View& out,
                       const Stream& s) {
  if (shape.qk != kWidth || shape.v != kWidth) return false;
  const Attention a{all.live,
                    wanted.live,
                    DeviceArrays(arrays),
                    shape,
                    HeadGains(norm),
                    tables_of(rotary),
                    qkv,
                    typed<float>(kv.keys),
                    typed<float>(kv.values),
                    keep,
                    typed<__nv_bfloat16>(out)};
  const dim3 block(32 * kWarps);
  const auto lanes = static_cast<unsigned>(wanted.lanes);
  const auto groups = static_cast<unsigned>(shape.groups);
  const std::size_t bytes = static_cast<std::size_t>(wanted.keys) * 2 * kPitch * sizeof(float);
  if (bytes <= static_cast<std::size_t>(s.shared_bytes)) {
    const std::int64_t queries = std::int64_t{wanted.keys} * (shape.heads / shape.groups);
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
  launch(prepare_keys, dim3(ceil_div(std::int64_t{all.rows} * groups, 2 * kWarps)), block, 0, s, a);
  const std::int64_t tiles =
      (std::int64_t{wanted.keys} * (shape.heads / shape.groups) + kTile - 1) / kTile;
  const unsigned chunks = std::min(ceil_div(tiles, kWarps), 64U);
  launch(attend_cache_tensor, dim3(lanes, groups, chunks), block, 0, s, a);
  return true;
}

}  // namespace toto::cuda
