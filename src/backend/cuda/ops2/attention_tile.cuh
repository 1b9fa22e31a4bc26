// SPDX-License-Identifier: Apache-2.0
// A warp's tile of queries in attention over time on tensor cores (attention_tensor.cu): keys and
// queries as operands, rounded to tf32, and the softmax over 32 keys at a time.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backend/cuda/gemm/mma.cuh"
#include "backend/cuda/gemm/product.h"
#include "backend/cuda/ops2/calls.cuh"
#include "backend/cuda/ops2/heads.cuh"
#include "backend/cuda/ops2/ops2.h"
#include "backend/cuda/runtime/warp.cuh"

namespace toto::cuda::tiles {

inline constexpr int kWidth = kTensorHead2;  // channels of a head
inline constexpr int kSteps = kWidth / 8;    // of a tensor core over them
inline constexpr int kRowLanes = 16;         // lanes that bring a key, four channels each
inline constexpr int kPitch = kWidth + 4;    // of rows in shared memory: no bank conflicts
inline constexpr int kTile = 16;             // queries of a warp
inline constexpr int kKeys = 32;             // at a time

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
  bool known;  // Stream::calls_known
  bool early;  // lets_next_begin_early(), and calls are known
  __nv_bfloat16* out;
  Passed passed;
};

/// to_tf32() for what tensor cores alone read: they do not look at the bits that it clears.
__device__ inline std::uint32_t operand_of(float v) {
  return __float_as_uint(v) + (fabsf(v) < INFINITY ? kHighHalf : 0U);
}
__device__ inline float4 rounded(const float4& v) {
  return {__uint_as_float(operand_of(v.x)), __uint_as_float(operand_of(v.y)),
          __uint_as_float(operand_of(v.z)), __uint_as_float(operand_of(v.w))};
}

/// 1 / v, 1 / sqrt(v) and 2^v to some units of the last place: what comes of them is rounded
/// further.
__device__ inline float inverse_of(float v) {
  float inverse = 0;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(v));
  return inverse;
}
__device__ inline float inverse_root_of(float v) {
  float inverse = 0;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(v));
  return inverse;
}
__device__ inline float power_of_two(float v) {
  float power = 0;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(v));
  return power;
}

/// What a lane needs to rotate its four channels of a key: of pairs `own` * 2 and the next, of
/// those eight lanes that have channels to rotate.
struct KeyRotation {
  float2 cosine, sine, factor;

  __device__ KeyRotation(const Attention& a, const CallSlice& s, std::int32_t patch, int own)
      : cosine(), sine(), factor{1, 1} {
    if (own >= kRowLanes / 2) return;
    const TokenRotation r(a.rotary, s, patch, kWidth);
    const auto two_of = [&](const float* table) {
      return *reinterpret_cast<const float2*>(table + 2 * own);
    };
    cosine = two_of(r.cosine);
    sine = two_of(r.sine);
    if (r.factor != nullptr) factor = two_of(r.factor);
  }
};

/// The gains of a lane's four channels of a key; any where there is no norm.
__device__ inline float4 key_gain(const Attention& a, int own) {
  return a.gains.query == nullptr ? float4{}
                                  : *reinterpret_cast<const float4*>(a.gains.key + 4 * own);
}

/// A key as attention takes it, by sixteen lanes: normed, rotated, rounded. All lanes of the warp
/// take part.
__device__ inline float4 prepare_key(float4 v, const Attention& a, const float4& gain,
                                     const KeyRotation& r, int own) {
  if (a.gains.query != nullptr) {
    float squares = v.x * v.x;
    squares = __fmaf_rn(v.y, v.y, squares);
    squares = __fmaf_rn(v.z, v.z, squares);
    squares = __fmaf_rn(v.w, v.w, squares);
    const float by = inverse_root_of(sum_of_lanes<kRowLanes>(squares) / kWidth + a.gains.epsilon);
    v = {v.x * by * gain.x, v.y * by * gain.y, v.z * by * gain.z, v.w * by * gain.w};
  }
  if (own < kRowLanes / 2) {
    float2 by{1, 1};
    if (a.rotary.factor != nullptr) by = {inverse_of(r.factor.x), inverse_of(r.factor.y)};
    v = {(r.cosine.x * v.x - r.sine.x * v.y) * by.x, (r.cosine.x * v.y + r.sine.x * v.x) * by.x,
         (r.cosine.y * v.z - r.sine.y * v.w) * by.y, (r.cosine.y * v.w + r.sine.y * v.z) * by.y};
  }
  return rounded(v);
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
inline constexpr int kOwn = 2 * kSteps;

/// Of the head that begins at `head`.
__device__ inline void load_own(float (&v)[kOwn], const float* head) {
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

/// Gains of those channels of queries or keys; any where there is no norm.
struct Gain {
  float v[kOwn];

  __device__ Gain(const Attention& a, const float* gains) {
    if (a.gains.query != nullptr) load_own(v, gains);
  }
};
/// What a query or a key is rotated with, of the pairs that a lane has.
struct Rotation {
  float4 cosine, sine, factor;

  __device__ Rotation(const Attention& a, const CallSlice& s, std::int32_t patch) {
    const TokenRotation of(a.rotary, s, patch, kWidth);
    const auto four_of = [](const float* table) {
      return *reinterpret_cast<const float4*>(table + static_cast<int>(threadIdx.x) % 4 * 4);
    };
    cosine = four_of(of.cosine);
    sine = four_of(of.sine);
    factor = of.factor == nullptr ? float4{1, 1, 1, 1} : four_of(of.factor);
  }
  /// Of keys, where there are factors.
  __device__ void invert() {
    factor = {inverse_of(factor.x), inverse_of(factor.y), inverse_of(factor.z),
              inverse_of(factor.w)};
  }
  __device__ void rotate(float (&v)[kOwn]) const {
    const float c[4] = {cosine.x, cosine.y, cosine.z, cosine.w};
    const float s[4] = {sine.x, sine.y, sine.z, sine.w};
    const float f[4] = {factor.x, factor.y, factor.z, factor.w};
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      const float x = v[2 * m];
      const float y = v[2 * m + 1];
      v[2 * m] = (c[m] * x - s[m] * y) * f[m];
      v[2 * m + 1] = (c[m] * y + s[m] * x) * f[m];
    }
  }
};

/// prepare_key() by four lanes, each with its channels as above, and with the same bits; not yet
/// rounded. gain(): a Gain.
template <typename GainOf>
__device__ inline void prepare_own_key(float (&v)[kOwn], const Attention& a, const GainOf& gain,
                                       Rotation rotation) {
  if (a.gains.query != nullptr) {
    float of[4];  // numbers 2 l, 2 l + 1, 2 l + 8 and 2 l + 9 of sixteen lanes
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      of[i] = v[4 * i] * v[4 * i];
#pragma unroll
      for (int c = 1; c < 4; ++c) of[i] = __fmaf_rn(v[4 * i + c], v[4 * i + c], of[i]);
    }
    const float squares = sum_of_lanes<4>(of[0] + of[2]) + sum_of_lanes<4>(of[1] + of[3]);
    const float by = inverse_root_of(squares / kWidth + a.gains.epsilon);
    const Gain gains = gain();
#pragma unroll
    for (int i = 0; i < kOwn; ++i) v[i] = v[i] * by * gains.v[i];
  }
  if (a.rotary.factor != nullptr) rotation.invert();
  rotation.rotate(v);
}
/// Rounds a lane's channels to where the head begins.
__device__ inline void put_own(float* head, const float (&v)[kOwn]) {
  auto* const to = reinterpret_cast<float4*>(head + static_cast<int>(threadIdx.x) % 4 * (kOwn / 2));
#pragma unroll
  for (int i = 0; i < kOwn / 4; ++i) {
    to[i % 2 + i / 2 * (kWidth / 8)] =
        rounded({v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]});
  }
}

/// Where the queries of a tile are.
struct QueriesAt {
  const float* head[2];

  __device__ QueriesAt(const Attention& a, const CallSlice& source, std::int64_t first_row,
                       const Tile& tile) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::int32_t patch = source.first_slot + tile.key[r];
      head[r] = a.qkv + (first_row + patch - source.patch) * a.shape.row() +
                std::int64_t{tile.head[r]} * kWidth;
    }
  }
};
/// The queries of a tile as they are in memory, asked for early.
struct RawQueries {
  float v[2][kOwn];

  __device__ explicit RawQueries(const QueriesAt& at) {
#pragma unroll
    for (int r = 0; r < 2; ++r) load_own(v[r], at.head[r]);
  }
};

/// The operands of a tile: [step][of the instruction].
struct Queries {
  std::uint32_t part[kSteps][4];

  /// gain(), rotation(r): a Gain, and the Rotation of query r.
  template <typename GainOf, typename RotationOf>
  __device__ Queries(const Attention& a, const RawQueries& raw, const GainOf& gain,
                     const RotationOf& rotation) {
    float v[2][kOwn];  // both queries side by side
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int i = 0; i < kOwn; ++i) v[r][i] = raw.v[r][i];
    }
    if (a.gains.query != nullptr) {
      const float squares[2] = {squares_of(v[0]), squares_of(v[1])};
      const float sums[2] = {sum_of_lanes<4>(squares[0]), sum_of_lanes<4>(squares[1])};
      const Gain by = gain();
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float inverse = inverse_root_of(sums[r] / kWidth + a.gains.epsilon);
#pragma unroll
        for (int i = 0; i < kOwn; ++i) v[r][i] *= inverse * by.v[i];
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      rotation(r).rotate(v[r]);
#pragma unroll
      for (int i = 0; i < kSteps; ++i) {
        part[i][r] = operand_of(v[r][2 * i]);
        part[i][2 + r] = operand_of(v[r][2 * i + 1]);
      }
    }
  }

 private:
  /// In four sums side by side.
  static __device__ float squares_of(const float (&v)[kOwn]) {
    float of[4] = {};
#pragma unroll
    for (int i = 0; i < kOwn; ++i) of[i % 4] = __fmaf_rn(v[i], v[i], of[i % 4]);
    return (of[0] + of[1]) + (of[2] + of[3]);
  }
};

/// Calls run(integral constant) with `count`, 1 to Most, or with Most where there are more.
template <int Most, typename Run>
__device__ void with_count(std::int32_t count, const Run& run) {
  if constexpr (Most > 1) {
    if (count < Most) return with_count<Most - 1>(count, run);
  }
  run(std::integral_constant<int, Most>{});
}

/// softmax(q.k) v of a tile. keys, values: rows of `pitch` floats, tf32. hidden: flags of the keys,
/// where only keys as hidden as the query are seen; or nullptr. Of the values `Halves` of the
/// channels are taken, from `values` on: out[4 h + j][2 r + i] is of the tile's query
/// lane / 4 + 8 r and its channel 32 h + 8 (lane % 4) + 4 i + j of those.
/// Warps that share a tile, and so have half of the channels, are few: they have the registers to
/// take eights of keys side by side, which is sooner done.
template <int Halves>
__device__ inline void attend_tile(const Queries& q, const Tile& tile, const float* keys,
                                   const float* values, std::int32_t pitch,
                                   const std::uint8_t* hidden, float (&out)[4 * Halves][4]) {
  constexpr bool kSideBySide = Halves == 1;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = lane / 4;
  const int column = lane % 4;
  const std::int32_t last = tile.count - 1;
  float highest[2] = {-INFINITY, -INFINITY};
  float total[2] = {};
#pragma unroll
  for (int j = 0; j < 4 * Halves; ++j) {
#pragma unroll
    for (int c = 0; c < 4; ++c) out[j][c] = 0;
  }
  for (std::int32_t first = 0; first < tile.count; first += kKeys) {
    float weight[kKeys / 8][4] = {};
    const auto load_key = [&](int n, float(&key)[kOwn]) {
      load_own(key, keys + std::int64_t{min(first + n * 8 + row, last)} * pitch);
    };
    const auto multiply_key = [&](int n, int i, const float(&key)[kOwn]) {
      multiply_add_tf32(weight[n], q.part[i], __float_as_uint(key[2 * i]),
                        __float_as_uint(key[2 * i + 1]));
    };
    if constexpr (kSideBySide) {
      const std::int32_t eights = min((last - first) / 8 + 1, kKeys / 8);
      with_count<kKeys / 8 - 1>(eights, [&](auto count) {
        float key[count()][kOwn];
#pragma unroll
        for (int n = 0; n < count(); ++n) load_key(n, key[n]);
#pragma unroll
        for (int i = 0; i < kSteps; ++i) {
#pragma unroll
          for (int n = 0; n < count(); ++n) multiply_key(n, i, key[n]);
        }
      });
      if (eights == kKeys / 8) {
        float key[kOwn];
        load_key(kKeys / 8 - 1, key);
#pragma unroll
        for (int i = 0; i < kSteps; ++i) multiply_key(kKeys / 8 - 1, i, key);
      }
    } else {
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        if (first + n * 8 > last) break;
        float key[kOwn];
        load_key(n, key);
#pragma unroll
        for (int i = 0; i < kSteps; ++i) multiply_key(n, i, key);
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
      for (int j = 0; j < 4 * Halves; ++j) {
        out[j][2 * r] *= correction;
        out[j][2 * r + 1] *= correction;
      }
    }
    const auto add_values = [&](int n) {
      // Sums have weights of neighbouring keys where operands have keys of distance four. Only
      // which keys meet matters: step k of the instruction is key 2 k, or 2 (k - 4) + 1.
      const std::uint32_t w[4] = {operand_of(weight[n][0]), operand_of(weight[n][2]),
                                  operand_of(weight[n][1]), operand_of(weight[n][3])};
      const std::int32_t key = first + n * 8 + 2 * column;
      const float* const even = values + std::int64_t{min(key, last)} * pitch + 4 * row;
      const float* const odd = values + std::int64_t{min(key + 1, last)} * pitch + 4 * row;
#pragma unroll
      for (int half = 0; half < Halves; ++half) {  // of the channels; column 4 row + j of step j
        const float4 e = *reinterpret_cast<const float4*>(even + half * kWidth / 2);
        const float4 o = *reinterpret_cast<const float4*>(odd + half * kWidth / 2);
        float(*const to)[4] = out + 4 * half;
        multiply_add_tf32(to[0], w, __float_as_uint(e.x), __float_as_uint(o.x));
        multiply_add_tf32(to[1], w, __float_as_uint(e.y), __float_as_uint(o.y));
        multiply_add_tf32(to[2], w, __float_as_uint(e.z), __float_as_uint(o.z));
        multiply_add_tf32(to[3], w, __float_as_uint(e.w), __float_as_uint(o.w));
      }
    };
    if constexpr (kSideBySide) {
      with_count<kKeys / 8>(min((last - first) / 8 + 1, kKeys / 8), [&](auto count) {
#pragma unroll
        for (int n = 0; n < count(); ++n) add_values(n);
      });
    } else {
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        if (first + n * 8 > last) break;
        add_values(n);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float by = inverse_of(sum_of_lanes<4>(total[r]));  // of at least 1: the highest has 1
#pragma unroll
    for (int j = 0; j < 4 * Halves; ++j) {
      out[j][2 * r] *= by;
      out[j][2 * r + 1] *= by;
    }
  }
}

}  // namespace toto::cuda::tiles
