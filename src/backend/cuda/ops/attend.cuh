// SPDX-License-Identifier: Apache-2.0
// Attention by one warp, a key for each lane: the arithmetic of one query, whichever kernel has it.
// A query meets its keys in tiles of 32, which are merged by log-sum-exp in order.
#pragma once

#include <cstdint>
#include <limits>

#include "backend/cuda/runtime/warp.cuh"

namespace toto::cuda::attend {

inline constexpr int kTile = 32;

__device__ inline float none() { return -std::numeric_limits<float>::infinity(); }

/// One query's softmax so far. Each lane has the outputs lane, lane + 32, ...
template <int D>
struct Running {
  float highest = -std::numeric_limits<float>::infinity();
  float total = 0;
  float out[D / 32] = {};
};

/// Sums of products in four chains, by channel mod 4.
struct Chains {
  float s[4] = {};
  __device__ void add(const float4& a, const float4& b) {
    s[0] = __fmaf_rn(a.x, b.x, s[0]);
    s[1] = __fmaf_rn(a.y, b.y, s[1]);
    s[2] = __fmaf_rn(a.z, b.z, s[2]);
    s[3] = __fmaf_rn(a.w, b.w, s[3]);
  }
  [[nodiscard]] __device__ float sum() const { return (s[0] + s[1]) + (s[2] + s[3]); }
};

/// Four channels of a row from `e` on, zero beyond its end.
__device__ inline float4 four(const float* row, int e, int d, bool wide) {
  float4 v{0, 0, 0, 0};
  if (e >= d) return v;
  if (wide) return *reinterpret_cast<const float4*>(row + e);
  v.x = row[e];
  if (e + 1 < d) v.y = row[e + 1];
  if (e + 2 < d) v.z = row[e + 2];
  if (e + 3 < d) v.w = row[e + 3];
  return v;
}

/// q . k of a query in shared memory (zero beyond its end) and a key anywhere.
template <int D>
__device__ float dot(const float* query, const float* key, int d, bool wide) {
  Chains c;
#pragma unroll 8
  for (int e = 0; e < D; e += 4) {
    c.add(*reinterpret_cast<const float4*>(query + e), four(key, e, d, wide));
  }
  return c.sum();
}

/// Weights of a tile of up to 32 keys: `score` is this lane's, -inf where it has none; not all are.
template <int D>
__device__ float weigh(Running<D>& r, float score) {
  const float highest = fmaxf(r.highest, highest_of_lanes(score));
  const float correction = expf(r.highest - highest);
  const float weight = score == none() ? 0 : expf(score - highest);
  r.highest = highest;
  r.total = r.total * correction + sum_of_lanes(weight);
#pragma unroll
  for (int i = 0; i < D / 32; ++i) r.out[i] *= correction;
  return weight;
}

/// Takes the values of a tile in, for N queries side by side: key j of query q counts where
/// j < count[q], and value(q, j, e) reads it.
template <int D, int N, typename Value>
__device__ void take_values(Running<D> (&r)[N], const float (&weight)[N], const int (&count)[N],
                            int most, int d, const Value& value) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 4
  for (int j = 0; j < most; ++j) {
    float p[N];
#pragma unroll
    for (int q = 0; q < N; ++q) p[q] = __shfl_sync(~0U, weight[q], j);
#pragma unroll
    for (int i = 0; i < D / 32; ++i) {
      const int e = lane + 32 * i;
      if (e >= d) continue;
#pragma unroll
      for (int q = 0; q < N; ++q) {
        if (j < count[q]) r[q].out[i] = __fmaf_rn(p[q], value(q, j, e), r[q].out[i]);
      }
    }
  }
}

}  // namespace toto::cuda::attend
