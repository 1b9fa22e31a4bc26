// SPDX-License-Identifier: Apache-2.0
// A tile of keys that the queries of a block of threads share, in float32. Four warps of 16 queries
// each; eight lanes have a query between them, and a lane has four queries, so that every number
// read from shared memory is used four times or more.
#pragma once

#include "backend/cuda/ops/attend_rows.cuh"

namespace toto::cuda::attend {

template <typename Room>
class TileF32 {
 public:
  static constexpr int D = Room::D;
  static constexpr int kLanes = 8;
  static constexpr int kKeys = D <= 64 ? 64 : 32;
  using Softmax = Rows<Room, kLanes, false>;

 private:
  static constexpr int kRows = Softmax::kRows;
  static constexpr int kEach = kKeys / kLanes;  // keys of a lane
  static constexpr int kKeyPitch = D + 4;       // eight rows lie in different banks
  static constexpr int kWeightPitch = kKeys + 8;
  static constexpr int kKeyFloats = kKeys * kKeyPitch;
  static constexpr int kWeightFloats = 4 * kWarpQueries * kWeightPitch;

 public:
  struct Shared {
    float queries[4 * kWarpQueries][D];
    float values[kKeys][D];
    // Keys, and once all warps have met them, weights [query][kWeightPitch].
    float keys[kKeyFloats < kWeightFloats ? kWeightFloats : kKeyFloats];
  };

  /// Before any other: row(q) is where query q < count lies.
  template <typename RowAt>
  __device__ TileF32(Shared& shared, int count, int d, const RowAt& row) : shared_(shared) {
    for (int i = static_cast<int>(threadIdx.x); i < 4 * kWarpQueries * (D / 4); i += 128) {
      const int q = i / (D / 4);
      const int e = i % (D / 4) * 4;
      const float4 v = q < count ? Room::load(row(q), e, d) : float4{0, 0, 0, 0};
      *reinterpret_cast<float4*>(&shared.queries[q][e]) = v;
    }
  }

  /// The channels of a query that a lane has, in so many fours.
  static constexpr int kFours = Softmax::kFours;
  static __device__ int channel(int j) { return Softmax::channel(j); }
  [[nodiscard]] __device__ const float4& query(int i, int j) const {
    const int q = static_cast<int>(threadIdx.x) / 32 * kWarpQueries + Softmax::query(i);
    return *reinterpret_cast<const float4*>(&shared_.queries[q][channel(j)]);
  }

  /// Loads `count` keys and values; zero from there on.
  __device__ void load(const float* keys, const float* values, int count, int d) {
#pragma unroll 8
    for (int i = static_cast<int>(threadIdx.x); i < kKeys * (D / 4); i += 128) {
      const int j = i / (D / 4);
      const int e = i % (D / 4) * 4;
      float4 k{0, 0, 0, 0};
      float4 v{0, 0, 0, 0};
      if (j < count) {
        k = Room::load(keys + std::int64_t{j} * d, e, d);
        v = Room::load(values + std::int64_t{j} * d, e, d);
      }
      *reinterpret_cast<float4*>(&shared_.keys[j * kKeyPitch + e]) = k;
      *reinterpret_cast<float4*>(&shared_.values[j][e]) = v;
    }
  }

  /// Takes the tile in: query i of this lane sees the first count[i] keys. Called by all warps;
  /// in those with `works` a query sees any.
  __device__ void take(Softmax& rows, const int (&count)[kRows], bool works, float scale) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    float score[kRows][kEach] = {};
    if (works) form_scores(score, warp, lane);
    __syncthreads();  // keys are read
    if (!works) return;
    float* const weights = shared_.keys + warp * kWarpQueries * kWeightPitch;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      float highest = none();
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const bool sees = lane % kLanes + kLanes * j < count[i];
        score[i][j] = sees ? score[i][j] * scale : none();
        highest = fmaxf(highest, score[i][j]);
      }
      const float base = rows.raise(i, highest_of_lanes<kLanes>(highest));
      float sum = 0;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const float weight = expf(score[i][j] - base);
        sum += weight;
        weights[Softmax::query(i) * kWeightPitch + lane % kLanes + kLanes * j] = weight;
      }
      rows.total[i] += sum_of_lanes<kLanes>(sum);
    }
    __syncwarp();
    take_values(rows, weights);
  }

 private:
  /// Products of up to 16 channels are summed by themselves.
  __device__ void form_scores(float (&score)[kRows][kEach], int warp, int lane) const {
    const float* const key = shared_.keys + lane % kLanes * kKeyPitch;
    for (int part = 0; part < D; part += 16) {
      float sum[kRows][kEach] = {};
#pragma unroll
      for (int e = part; e < part + 16; e += 4) {
        float4 q[kRows];
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          q[i] = *reinterpret_cast<const float4*>(
              &shared_.queries[warp * kWarpQueries + Softmax::query(i)][e]);
        }
#pragma unroll
        for (int j = 0; j < kEach; ++j) {
          const float4 k = *reinterpret_cast<const float4*>(key + j * kLanes * kKeyPitch + e);
#pragma unroll
          for (int i = 0; i < kRows; ++i) {
            sum[i][j] = __fmaf_rn(q[i].x, k.x, sum[i][j]);
            sum[i][j] = __fmaf_rn(q[i].y, k.y, sum[i][j]);
            sum[i][j] = __fmaf_rn(q[i].z, k.z, sum[i][j]);
            sum[i][j] = __fmaf_rn(q[i].w, k.w, sum[i][j]);
          }
        }
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) score[i][j] += sum[i][j];
      }
    }
  }

  __device__ void take_values(Softmax& rows, const float* weights) const {
#pragma unroll 2
    for (int first = 0; first < kKeys; first += 4) {
      float weight[kRows][4];
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const float4 w =
            *reinterpret_cast<const float4*>(weights + Softmax::query(i) * kWeightPitch + first);
        weight[i][0] = w.x;
        weight[i][1] = w.y;
        weight[i][2] = w.z;
        weight[i][3] = w.w;
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int j = 0; j < Softmax::kFours; ++j) {
          const float4 v =
              *reinterpret_cast<const float4*>(&shared_.values[first + k][Softmax::channel(j)]);
#pragma unroll
          for (int i = 0; i < kRows; ++i) {
            float(&out)[4 * Softmax::kFours] = rows.out[i];
            out[4 * j] = __fmaf_rn(weight[i][k], v.x, out[4 * j]);
            out[4 * j + 1] = __fmaf_rn(weight[i][k], v.y, out[4 * j + 1]);
            out[4 * j + 2] = __fmaf_rn(weight[i][k], v.z, out[4 * j + 2]);
            out[4 * j + 3] = __fmaf_rn(weight[i][k], v.w, out[4 * j + 3]);
          }
        }
      }
    }
  }

  Shared& shared_;
};

}  // namespace toto::cuda::attend
