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
#include "backend/cuda/ops2/row_squares.cuh"
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
  std::int32_t heads_per_group;
  HeadGains gains;
  RotaryTables rotary;
  const float* qkv;
  float* keys;  // the cache
  float* values;
  bool keep;
  __nv_bfloat16* out;
};

/// to_tf32() for what tensor cores alone read: they do not look at the bits that it clears.
__device__ std::uint32_t operand_of(float v) {
  return __float_as_uint(v) + (fabsf(v) < INFINITY ? kHighHalf : 0U);
}
__device__ float4 rounded(const float4& v) {
  return {__uint_as_float(operand_of(v.x)), __uint_as_float(operand_of(v.y)),
          __uint_as_float(operand_of(v.z)), __uint_as_float(operand_of(v.w))};
}

/// 1 / v and 2^v to some units of the last place: what comes of them is rounded further.
__device__ float inverse_of(float v) {
  float inverse = 0;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(v));
  return inverse;
}
__device__ float power_of_two(float v) {
  float power = 0;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(v));
  return power;
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
    const auto two_of = [&](const float* table) {
      return *reinterpret_cast<const float2*>(table + 2 * own);
    };
    const float2 cosine = two_of(r.cosine);
    const float2 sine = two_of(r.sine);
    float2 by{1, 1};
    if (r.factor != nullptr) {
      const float2 factor = two_of(r.factor);
      by = {inverse_of(factor.x), inverse_of(factor.y)};
    }
    v = {(cosine.x * v.x - sine.x * v.y) * by.x, (cosine.x * v.y + sine.x * v.x) * by.x,
         (cosine.y * v.z - sine.y * v.w) * by.y, (cosine.y * v.w + sine.y * v.z) * by.y};
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

  __device__ Tile(const CallSlice& s, std::int32_t heads, std::int32_t group, std::int32_t first) {
    const std::int32_t queries = s.tokens * heads;
    const std::int32_t before = s.patch - s.first_slot;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::int32_t at = first + static_cast<std::int32_t>(threadIdx.x) % 32 / 4 + 8 * r;
      there[r] = at < queries;
      const std::int32_t query = min(at, queries - 1);
      token[r] = heads == 1 ? query : query / heads;
      head[r] = group * heads + query - token[r] * heads;
      key[r] = before + token[r];
    }
    const std::int32_t last = min(first + kTile, queries) - 1;
    count = before + (heads == 1 ? last : last / heads) + 1;
  }
};

/// The channels of a head that a lane of a tensor core step has, of queries as of keys: eight from
/// 8 * (lane % 4) on in the first half, which is rotated, and as many in the second, so that it
/// asks for four at a time. In step i of the instruction they are numbers 2 i and 2 i + 1.
constexpr int kOwn = 2 * kSteps;

/// Of the head that begins at `head`.
__device__ void load_own(float (&v)[kOwn], const float* head) {
  const auto* const from =
      reinterpret_cast<const float4*>(head + static_cast<int>(threadIdx.x) % 4 * (kOwn / 2));
#pragma unroll
  for (int i = 0; i < kOwn / 4; ++i) {
    const float4 four = from[i % 2 + i / 2 * (kWidth / 8)];
    v[4 * i] = four.x;
    v[4 * i + 1] = four.y;
    v[4 * i + 2] = four.z;
    v[4 * i + 3] = four.w;
  }
}

/// The queries of a tile as they are in memory, asked for early.
struct RawQueries {
  float v[2][kOwn];

  __device__ RawQueries(const Attention& a, const CallSlice& source, std::int64_t first_row,
                        const Tile& tile) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::int32_t patch = source.first_slot + tile.key[r];
      load_own(v[r], a.qkv + (first_row + patch - source.patch) * a.shape.row() +
                         std::int64_t{tile.head[r]} * kWidth);
    }
  }
};

/// The operands of a tile: [step][of the instruction].
struct Queries {
  std::uint32_t part[kSteps][4];

  __device__ Queries(const Attention& a, const CallSlice& source, const Tile& tile,
                     const RawQueries& raw) {
    const int column = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float v[kOwn];
#pragma unroll
      for (int i = 0; i < kOwn; ++i) v[i] = raw.v[r][i];
      if (a.gains.query != nullptr) {
        float squares = 0;
#pragma unroll
        for (int i = 0; i < kOwn; ++i) squares = __fmaf_rn(v[i], v[i], squares);
        const float root = sqrtf(sum_of_lanes<4>(squares) / kWidth + a.gains.epsilon);
        divide(v, root);
        float gain[kOwn];
        load_own(gain, a.gains.query);
#pragma unroll
        for (int i = 0; i < kOwn; ++i) v[i] *= gain[i];
      }
      const TokenRotation rotation(a.rotary, source, source.first_slot + tile.key[r], kWidth);
      const auto four_of = [&](const float* table) {
        return *reinterpret_cast<const float4*>(table + 4 * column);
      };
      const float4 cosines = four_of(rotation.cosine);
      const float4 sines = four_of(rotation.sine);
      const float4 factors =
          rotation.factor == nullptr ? float4{1, 1, 1, 1} : four_of(rotation.factor);
      const float cosine[4] = {cosines.x, cosines.y, cosines.z, cosines.w};
      const float sine[4] = {sines.x, sines.y, sines.z, sines.w};
      const float factor[4] = {factors.x, factors.y, factors.z, factors.w};
#pragma unroll
      for (int m = 0; m < 4; ++m) {
        const float x = v[2 * m];
        const float y = v[2 * m + 1];
        v[2 * m] = (cosine[m] * x - sine[m] * y) * factor[m];
        v[2 * m + 1] = (cosine[m] * y + sine[m] * x) * factor[m];
      }
#pragma unroll
      for (int i = 0; i < kSteps; ++i) {
        part[i][r] = operand_of(v[2 * i]);
        part[i][2 + r] = operand_of(v[2 * i + 1]);
      }
    }
  }
};

/// softmax(q.k) v of a tile. keys, values: rows of `pitch` floats, tf32. hidden: flags of the keys,
/// where only keys as hidden as the query are seen; or nullptr. out[4 h + j][2 r + i] is of the
/// tile's query lane / 4 + 8 r and its channel 32 h + 8 (lane % 4) + 4 i + j.
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
      float key[kOwn];
      load_own(key, keys + std::int64_t{min(first + n * 8 + row, last)} * pitch);
#pragma unroll
      for (int i = 0; i < kSteps; ++i) {
        multiply_add_tf32(weight[n], q.part[i], __float_as_uint(key[2 * i]),
                          __float_as_uint(key[2 * i + 1]));
      }
    }
    if (hidden != nullptr) {
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const std::int32_t key = min(first + n * 8 + 2 * column + c % 2, last);
          if (hidden[key] != hidden[tile.key[c / 2]]) weight[n][c] = -INFINITY;
        }
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      constexpr float kLog2E = 1.4426950408889634F;
      float top = highest[r];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float& logit = weight[n][2 * r + c];
          logit = first + n * 8 + 2 * column + c <= tile.key[r] ? logit : -INFINITY;
          top = fmaxf(top, logit);
        }
      }
      top = highest_of_lanes<4>(top);
      // Where none of these and those before is seen, all weights are zero. The difference comes
      // first: where `top` stays, the correction is 1, so keys that are not seen change no bit.
      const float base = top == -INFINITY ? 0.0F : top;
      const float correction = power_of_two((highest[r] - base) * kLog2E);
      highest[r] = top;
      float sum = 0;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float& w = weight[n][2 * r + c];
          w = power_of_two((w - base) * kLog2E);
          sum += w;
        }
      }
      total[r] = total[r] * correction + sum;
      if (first == 0) continue;
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
      const std::uint32_t w[4] = {operand_of(weight[n][0]), operand_of(weight[n][2]),
                                  operand_of(weight[n][1]), operand_of(weight[n][3])};
      const std::int32_t key = first + n * 8 + 2 * column;
      const float* const even = values + std::int64_t{min(key, last)} * pitch + 4 * row;
      const float* const odd = values + std::int64_t{min(key + 1, last)} * pitch + 4 * row;
#pragma unroll
      for (int half = 0; half < 2; ++half) {  // of the channels; column 4 row + j of step j
        const float4 e = *reinterpret_cast<const float4*>(even + half * kWidth / 2);
        const float4 o = *reinterpret_cast<const float4*>(odd + half * kWidth / 2);
        float(*const to)[4] = out + 4 * half;
        multiply_add_tf32(to[0], w, __float_as_uint(e.x), __float_as_uint(o.x));
        multiply_add_tf32(to[1], w, __float_as_uint(e.y), __float_as_uint(o.y));
        multiply_add_tf32(to[2], w, __float_as_uint(e.z), __float_as_uint(o.z));
        multiply_add_tf32(to[3], w, __float_as_uint(e.w), __float_as_uint(o.w));
      }
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float by = inverse_of(sum_of_lanes<4>(total[r]));  // of at least 1: the highest has 1
#pragma unroll
    for (int j = 0; j < kSteps; ++j) {
      out[j][2 * r] *= by;
      out[j][2 * r + 1] *= by;
    }
  }
}

/// A lane of the wanted call. Slices are copies: what is read of them stays in registers.
struct LaneAt {
  const LaneOfCall lane;
  const CallSlice s;
  const CallSlice source;
  const std::int64_t first_row;
  const std::int32_t queries;

  __device__ LaneAt(const Attention& a, std::int32_t index)
      : lane(lane_of_call(*a.wanted, index)),
        s(lane.s),
        source(a.all->slices[lane.slice]),
        first_row(source.row + std::int64_t{lane.variate} * source.tokens),
        queries(s.tokens * a.heads_per_group) {}
  [[nodiscard]] __device__ RawQueries queries_of(const Attention& a, const Tile& tile) const {
    return RawQueries(a, source, first_row, tile);
  }
};

/// Attends with a tile and hands on what that gives.
__device__ void finish_tile(const Attention& a, const LaneAt& at, const Tile& tile,
                            const Queries& q, const float* keys, const float* values,
                            std::int32_t pitch) {
  const CallSlice& s = at.s;
  const std::uint8_t* const hidden =
      s.time_mask ? a.arrays.hidden + first_patch_of(s, at.lane.variate) + s.first_slot : nullptr;
  const int column = static_cast<int>(threadIdx.x) % 4;
  float out[kSteps][4];
  attend_tile(q, tile, keys, values, pitch, hidden, out);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (!tile.there[r]) continue;
    const std::int64_t row = s.row + std::int64_t{at.lane.variate} * s.tokens + tile.token[r];
    __nv_bfloat16* const to =
        a.out + row * a.shape.attended() + std::int64_t{tile.head[r]} * kWidth + 8 * column;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float(*const of)[4] = out + 4 * half;
      const uint2 low = four_bf16({of[0][2 * r], of[1][2 * r], of[2][2 * r], of[3][2 * r]});
      const uint2 high =
          four_bf16({of[0][2 * r + 1], of[1][2 * r + 1], of[2][2 * r + 1], of[3][2 * r + 1]});
      *reinterpret_cast<uint4*>(to + half * kWidth / 2) = {low.x, low.y, high.x, high.y};
    }
  }
}

/// The tiles of a lane and head group that are this warp's: of `warps`, number `warp`. Keys and
/// values are there once prepare() has returned, before which it asks for its first queries.
template <typename Prepare>
__device__ void attend_tiles(const Attention& a, const LaneAt& at, std::int32_t group,
                             const float* keys, const float* values, std::int32_t pitch,
                             std::int32_t warp, std::int32_t warps, const Prepare& prepare) {
  std::int32_t first = warp * kTile;
  Tile tile(at.s, a.heads_per_group, group, first);
  RawQueries raw = at.queries_of(a, tile);
  prepare();
  while (first < at.queries) {
    finish_tile(a, at, tile, Queries(a, at.source, tile, raw), keys, values, pitch);
    first += warps * kTile;
    if (first >= at.queries) break;
    tile = Tile(at.s, a.heads_per_group, group, first);
    raw = at.queries_of(a, tile);
  }
}

/// Keys, then values of a lane and head group in shared memory, [n][kPitch] each. `warps` warps
/// prepare them; this one is number `warp`. Half a warp has a key at a time, a lane four channels.
/// Loops are not unrolled, for code comes slowly where it is not near.
struct LaneKeys {
  const Attention& a;
  const LaneAt& at;
  std::int32_t group;
  float* keys;
  std::int32_t n;
  int warp, warps;

  /// Asks for what prepare() takes.
  __device__ void bring() const {
    const std::int32_t row = a.shape.row();
    const std::int32_t values_after = a.shape.groups * kWidth;  // keys
    const std::int32_t behind = at.s.first_slot + first() - at.source.patch;
    const float* from = a.qkv + (at.first_row + behind) * row +
                        std::int64_t{a.shape.heads + group} * kWidth + own();
    float* key = keys + first() * kPitch + own();
#pragma unroll 1
    for (std::int32_t j = first(); j < n; j += 2 * warps) {
      if (at.s.first_slot + j >= at.source.patch) {
        copy_16(key, from, 16);
        copy_16(key + n * kPitch, from + values_after, 16);
      } else {  // of a call before
        copy_16(key, a.keys + kept_at(j) + own(), 16);
        copy_16(key + n * kPitch, a.values + kept_at(j) + own(), 16);
      }
      from += std::int64_t{2} * warps * row;
      key += 2 * warps * kPitch;
    }
    commit_copies();
  }

  /// In place; every lane works with what it has brought itself. Where `n` is odd, half a warp has
  /// no key at the end: what it makes of the last one is thrown away.
  __device__ void prepare() const {
    wait_copies<0>();
#pragma unroll 1
    for (std::int32_t j0 = first() - half(); j0 < n; j0 += 2 * warps) {
      const std::int32_t j = min(j0 + half(), n - 1);
      const std::int32_t patch = at.s.first_slot + j;
      auto* const key = reinterpret_cast<float4*>(keys + j * kPitch + own());
      float4* const value = key + n * kPitch / 4;
      const float4 prepared =
          prepare_key(*key, a, at.source, max(patch, at.source.patch), own() / 4);
      if (patch < at.source.patch || j0 + half() >= n) continue;
      const float4 kept = rounded(*value);
      *key = prepared;
      *value = kept;
      if (a.keep) {
        put_four(a.keys + kept_at(j) + own(), prepared);
        put_four(a.values + kept_at(j) + own(), kept);
      }
    }
  }

 private:
  [[nodiscard]] static __device__ int half() {
    return static_cast<int>(threadIdx.x) % 32 / kRowLanes;
  }
  [[nodiscard]] static __device__ int own() {
    return static_cast<int>(threadIdx.x) % kRowLanes * 4;
  }
  [[nodiscard]] __device__ std::int32_t first() const { return 2 * warp + half(); }
  [[nodiscard]] __device__ std::int64_t kept_at(std::int32_t j) const {
    return (slot_of(at.s, a.shape, at.lane.variate, group) + j) * kWidth;
  }
};

/// A thread block for a lane and a head group; many at once, for each waits for memory.
__global__ void __launch_bounds__(32 * kLaneWarps, 8) attend_lane_tensor(Attention a) {
  extern __shared__ float4 shared[];
  begin_kernel();
  const auto index = static_cast<std::int32_t>(blockIdx.x);
  if (index >= a.wanted->lanes) return;
  const LaneAt at(a, index);
  const auto group = static_cast<std::int32_t>(blockIdx.y);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int32_t n = at.s.patch + at.s.tokens - at.s.first_slot;
  auto* const keys = reinterpret_cast<float*>(shared);
  const LaneKeys own{a, at, group, keys, n, warp, kLaneWarps};
  attend_tiles(a, at, group, keys, keys + n * kPitch, kPitch, warp, kLaneWarps, [&] {
    own.bring();
    own.prepare();
    __syncthreads();
  });
}

/// The same where few lanes leave processors idle: with more warps, some of which prepare queries
/// while the others prepare keys.
__global__ void __launch_bounds__(32 * kAloneWarps) attend_alone_tensor(Attention a) {
  extern __shared__ float4 shared[];
  begin_kernel();
  const auto index = static_cast<std::int32_t>(blockIdx.x);
  if (index >= a.wanted->lanes) return;
  const LaneAt at(a, index);
  const auto group = static_cast<std::int32_t>(blockIdx.y);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int32_t n = at.s.patch + at.s.tokens - at.s.first_slot;
  auto* const keys = reinterpret_cast<float*>(shared);
  float* const values = keys + n * kPitch;
  const int tiles = (at.queries + kTile - 1) / kTile;
  if (warp >= tiles) {
    const LaneKeys own{a, at, group, keys, n, warp - tiles, kAloneWarps - tiles};
    own.bring();
    own.prepare();
    __syncthreads();
    return;
  }
  const Tile tile(at.s, a.heads_per_group, group, warp * kTile);
  const Queries q(a, at.source, tile, at.queries_of(a, tile));
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
  const std::int64_t slot = slot_of(at.s, a.shape, at.lane.variate, group);
  const auto warp = static_cast<std::int32_t>(blockIdx.z * kWarps + threadIdx.x / 32);
  if (warp * kTile >= at.queries) return;
  attend_tiles(a, at, group, a.keys + slot * kWidth, a.values + slot * kWidth, kWidth, warp,
               static_cast<std::int32_t>(gridDim.z) * kWarps, [] {});
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
                    shape.heads / shape.groups,
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
  launch(prepare_keys, dim3(ceil_div(std::int64_t{all.rows} * groups, 2 * kWarps)), block, 0, s, a);
  const std::int64_t tiles = (std::int64_t{wanted.keys} * a.heads_per_group + kTile - 1) / kTile;
  const unsigned chunks = std::min(ceil_div(tiles, kWarps), 64U);
  launch(attend_cache_tensor, dim3(lanes, groups, chunks), block, 0, s, a);
  return true;
}

}  // namespace toto::cuda
