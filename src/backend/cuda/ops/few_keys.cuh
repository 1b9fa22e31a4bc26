// SPDX-License-Identifier: Apache-2.0
// Attention of queries that all see some of the same few keys, by one warp: every lane has one key
// of one query, so a pass takes 4 queries of up to 8 keys or 2 of up to 16. The arithmetic of each
// query is that of one tile of 32 keys in attend.cuh, to the bit: lanes without a key add nothing
// there.
#pragma once

#include "backend/cuda/ops/attend_rows.cuh"

namespace toto::cuda::attend {

inline constexpr int kMaxFew = 16;

/// What a warp has in shared memory.
template <int D>
struct FewShared {
  float keys[kMaxFew][D + 4];
  float queries[kMaxFew][D];
};
/// Warps of a block of threads that fit with it into 48 KiB.
template <int D>
inline constexpr int kFewWarps = D <= 64 ? 4 : 2;

/// Up to kMaxFew rows [count][pitch], row j from row(j).
template <typename Room, typename RowAt>
__device__ void load_few(float* to, int pitch, int count, int d, const RowAt& row) {
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x) % 32; i < count * (Room::D / 4); i += 32) {
    const int j = i / (Room::D / 4);
    const int e = i % (Room::D / 4) * 4;
    *reinterpret_cast<float4*>(to + j * pitch + e) = Room::load(row(j), e, d);
  }
}

/// sees(q, key): whether query q sees a key; value(key): where its value lies; put(q, e, v) takes
/// four channels of the output.
template <typename Room, int Lanes, typename Sees, typename Value, typename Put>
__device__ void attend_few_of(const FewShared<Room::D>& shared, int queries, int keys, int d,
                              const Sees& sees, const Value& value, const Put& put) {
  constexpr int D = Room::D;
  constexpr int kFours = D < 4 * Lanes ? 1 : D / (4 * Lanes);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int key = lane % Lanes;
  const float root = sqrtf(static_cast<float>(d));
  for (int first = 0; first < queries; first += 32 / Lanes) {
    const int q = first + lane / Lanes;
    float score = none();
    if (q < queries && key < keys && sees(q, key)) {
      score = dot<D>(shared.queries[q], shared.keys[key], D, true) / root;
    }
    const float highest = highest_of_lanes<Lanes>(score);
    const float weight = score == none() ? 0 : expf(score - highest);
    const float total = sum_of_lanes<Lanes>(weight);
    float4 out[kFours] = {};
#pragma unroll 4
    for (int j = 0; j < keys; ++j) {
      const float p = __shfl_sync(~0U, weight, j, Lanes);
      const bool counts = q < queries && sees(q, j);
#pragma unroll
      for (int i = 0; i < kFours; ++i) {
        const float4 v = Room::load(value(j), 4 * Lanes * i + 4 * key, d);
        if (!counts) continue;
        out[i].x = __fmaf_rn(p, v.x, out[i].x);
        out[i].y = __fmaf_rn(p, v.y, out[i].y);
        out[i].z = __fmaf_rn(p, v.z, out[i].z);
        out[i].w = __fmaf_rn(p, v.w, out[i].w);
      }
    }
    if (q >= queries) continue;
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      put(q, 4 * Lanes * i + 4 * key,
          float4{out[i].x / total, out[i].y / total, out[i].z / total, out[i].w / total});
    }
  }
}

template <typename Room, typename Sees, typename Value, typename Put>
__device__ void attend_few(const FewShared<Room::D>& shared, int queries, int keys, int d,
                           const Sees& sees, const Value& value, const Put& put) {
  if (keys <= 8) {
    attend_few_of<Room, 8>(shared, queries, keys, d, sees, value, put);
  } else {
    attend_few_of<Room, 16>(shared, queries, keys, d, sees, value, put);
  }
}

}  // namespace toto::cuda::attend
