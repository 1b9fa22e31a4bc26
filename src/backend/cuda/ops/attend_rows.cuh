// SPDX-License-Identifier: Apache-2.0
// Attention of 16 queries by one warp: what it has of their softmax so far, and keys that each
// query has to itself. `Lanes` neighbouring lanes have a query between them, a part of its channels
// each.
#pragma once

#include "backend/cuda/ops/attend.cuh"

namespace toto::cuda::attend {

inline constexpr int kWarpQueries = 16;

/// Room for the channels of a head. `Exact`: there are as many, a number known to the compiler, and
/// rows are read and written four channels at a time.
template <int Channels, bool Exact>
struct Room {
  static constexpr int D = Channels;

  /// How many channels there are.
  static __device__ int width(int d) { return Exact ? D : d; }
  static __device__ float4 load(const float* row, int e, int d) {
    return Exact ? *reinterpret_cast<const float4*>(row + e) : four(row, e, d, false);
  }
  template <typename T>
  static __device__ void store(T* row, int e, int d, const float4& v) {
    if constexpr (Exact) {
      put_four(row + e, v);
    } else {
      const float each[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (e + i < d) put(row, e + i, each[i]);
      }
    }
  }
};

/// e^x: of the whole range to the last bits for float32 outputs, fast for bfloat16 ones.
template <bool Fast>
__device__ float exponential(float x) {
  if constexpr (Fast) {
    return __expf(x);
  } else {
    return expf(x);
  }
}

template <typename Room, int Lanes, bool Fast>
struct Rows {
  using Place = Room;
  static constexpr int D = Room::D;
  static constexpr int kLanes = Lanes;
  static constexpr bool kFast = Fast;
  static constexpr int kRows = Lanes / 2;         // queries that a lane has a part of
  static constexpr int kFours = D / (4 * Lanes);  // its channels of each, in fours
  float highest[kRows];
  float total[kRows] = {};
  float out[kRows][4 * kFours] = {};

  __device__ Rows() {
#pragma unroll
    for (int i = 0; i < kRows; ++i) highest[i] = none();
  }

  /// Query i of this lane.
  static __device__ int query(int i) {
    return static_cast<int>(threadIdx.x) % 32 / Lanes + 32 / Lanes * i;
  }
  /// The first channel of its four j.
  static __device__ int channel(int j) {
    constexpr int kTogether = 8 / Lanes;
    return j / kTogether * 32 + static_cast<int>(threadIdx.x) % Lanes * (32 / Lanes) +
           j % kTogether * 4;
  }

  /// Takes in that keys follow whose highest score is `score`: returns what to subtract from
  /// theirs. A query that sees none of them stays as it is in every bit.
  __device__ float raise(int i, float score) {
    const float now = fmaxf(highest[i], score);
    const float base = now == none() ? 0 : now;
    const float correction = exponential<Fast>(highest[i] - base);
    highest[i] = now;
    total[i] *= correction;
#pragma unroll
    for (int j = 0; j < 4 * kFours; ++j) out[i][j] *= correction;
    return base;
  }
};

/// Keys of each query's own, one after another: query(i) of this lane sees seen[i] of them, from
/// at[i] on. `tile` has the queries.
template <typename Tile, typename Softmax>
__device__ void attend_own(Softmax& rows, const Tile& tile,
                           const std::int32_t (&seen)[Softmax::kRows],
                           const std::int64_t (&at)[Softmax::kRows], const float* keys,
                           const float* values, int d, float scale) {
  constexpr int kRows = Softmax::kRows;
  constexpr int kFours = Softmax::kFours;
  static_assert(Tile::kFours == kFours);
  using Room = typename Softmax::Place;
  std::int32_t most = 0;
#pragma unroll
  for (int i = 0; i < kRows; ++i) most = max(most, seen[i]);
  most = __reduce_max_sync(~0U, most);
  if (most == 0) return;
  float4 k[kRows][kFours];
  float4 v[kRows][kFours];
  // A query's loads are never skipped, so that they overlap: beyond its end the last key stands in.
  const auto place = [&](int i, std::int32_t key) {
    return at[i] + std::int64_t{max(min(key, seen[i] - 1), 0)} * d;
  };
  const auto load_keys = [&](std::int32_t key) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float* const row = keys + place(i, key);
#pragma unroll
      for (int j = 0; j < kFours; ++j) k[i][j] = Room::load(row, Tile::channel(j), d);
    }
  };
  const auto load_values = [&](std::int32_t key) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float* const row = values + place(i, key);
#pragma unroll
      for (int j = 0; j < kFours; ++j) v[i][j] = Room::load(row, Softmax::channel(j), d);
    }
  };
  load_keys(0);
  load_values(0);
  for (std::int32_t key = 0; key < most; ++key) {
    float score[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      Chains c;
#pragma unroll
      for (int j = 0; j < kFours; ++j) c.add(tile.query(i, j), k[i][j]);
      const float sum = sum_of_lanes<Softmax::kLanes>(c.sum());
      score[i] = key < seen[i] ? sum * scale : none();
    }
    if (key + 1 < most) load_keys(key + 1);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float base = rows.raise(i, score[i]);
      const float weight = exponential<Softmax::kFast>(score[i] - base);
      rows.total[i] += weight;
#pragma unroll
      for (int j = 0; j < kFours; ++j) {
        float(&out)[4 * kFours] = rows.out[i];
        out[4 * j] = __fmaf_rn(weight, v[i][j].x, out[4 * j]);
        out[4 * j + 1] = __fmaf_rn(weight, v[i][j].y, out[4 * j + 1]);
        out[4 * j + 2] = __fmaf_rn(weight, v[i][j].z, out[4 * j + 2]);
        out[4 * j + 3] = __fmaf_rn(weight, v[i][j].w, out[4 * j + 3]);
      }
    }
    if (key + 1 < most) load_values(key + 1);
  }
}

}  // namespace toto::cuda::attend
